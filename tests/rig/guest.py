"""One guest and its jobs. The guest reports its progress by files in a shared folder; a guest that hangs or dies is ended,
its current job is reported as the cause, and another guest takes the remaining jobs. If KVM does not run the guest, all
further guests of the run are emulated, and jobs that can wait for another machine are left out. A guest that does not boot
ends the run.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time

import image

SKIPPED = 77  # a job's status
KVM = "/dev/kvm"
KVM_BROKEN = "KVM internal error"  # QEMU prints this and stops the guest; it does not end
FIRST_WORD = "rig: booted"         # what guest/init prints first
# Seconds until the guest prints its first line, and until its first job starts. KVM needs two and five: with KVM, giving
# up too early costs only speed. An emulated processor on a busy machine is slow.
SILENCE = {"kvm": 20, "emulation": 180}
BOOT_LIMIT = {"kvm": 60, "emulation": 240}
PATIENCE = {"kvm": 1, "emulation": 4}  # the limits of jobs are for a processor that is not emulated
GRACE = 30        # seconds beyond a job's limit, which the guest enforces itself
# On x86-64 a processor with fast string instructions has the kernel copy and clear memory by them, and emulation does so byte by
# byte. On Arm "max" computes pointer authentication in software.
CPU = {"x86_64": "max,erms=off", "aarch64": "neoverse-n1"}
BOARD = {"x86_64": "q35", "aarch64": "virt"}
CONSOLE = {"x86_64": "ttyS0", "aarch64": "ttyAMA0"}
KERNEL_LINE = ("quiet mitigations=off nokaslr random.trust_cpu=on random.trust_bootloader=on watchdog_thresh=20 tsc=reliable "
               "no_timer_check oops=panic panic=-1 net.ifnames=0")


class Job:
    def __init__(self, name, devices, limit, command, can_wait=False):
        self.can_wait = can_wait  # for a machine whose guests are not emulated
        self.name, self.devices, self.limit, self.command = name, devices, int(limit), command
        self.status, self.output, self.seconds = None, "", 0.0


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class BootFailed(Exception):
    """The guest did not start its first job; contains the reason and the last lines of its console."""


class KvmBroken(Exception):
    """KVM is available but does not run the guest; contains the reason. No job is the cause."""


def kvm_or_emulation():
    """The accelerator that the first guest of a run uses."""
    return "kvm" if os.access(KVM, os.R_OK | os.W_OK) else "emulation"


def few_cores():
    """True if the host has too few cores for the processors of an emulated guest and other programs."""
    return len(os.sched_getaffinity(0)) <= 2


def processors(way):
    """Two; one if the guest is emulated on a host with few cores: there one host thread runs both in turn, a tenth of a second each, and
    each message between them waits that long. (Ranks that yield were seen to keep soft-RoCE from running for 20 s.)"""
    return "1" if way == "emulation" and few_cores() else "2"


def accelerator(way, arch):
    """One thread for all processors of the guest where cores are few. A rank that polls executes "pause", and the thread goes on with
    the other processor; with a thread each, the host does not know, and half of what it gives the guest is polling."""
    if way == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", f"tcg,thread={'single' if few_cores() else 'multi'},tb-size=512", "-cpu", CPU[arch]]


def command_line(kernel, initramfs, share, way):
    arch = image.machine()
    return [image.qemu(), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", BOARD[arch],
            *accelerator(way, arch), "-smp", processors(way), "-m", "3072", "-kernel", kernel, "-initrd", initramfs,
            "-append", f"console={CONSOLE[arch]} {KERNEL_LINE}", "-serial", "stdio",
            "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
            "-fsdev", f"local,id=share,path={share},security_model=none",
            "-device", "virtio-9p-pci,fsdev=share,mount_tag=share"]


class Guest:
    """Boots with a list of jobs; run() returns when they are done or the guest has ended."""

    def __init__(self, folder, build, jobs, tell, way):
        self.jobs, self.tell, self.way = jobs, tell, way
        self.share = tempfile.mkdtemp(prefix="share-", dir=folder)
        self.write("rig-folder", image.HERE)
        self.write("build-folder", build)
        self.write("todo", "".join(f"{j.name} {j.devices} {self.limit(j)} {j.command}\n" for j in jobs))
        kernel, initramfs = image.prepare(folder)
        self.console = open(os.path.join(self.share, "console"), "wb")
        self.process = subprocess.Popen(command_line(kernel, initramfs, self.share, way), stdin=subprocess.DEVNULL,
                                        stdout=self.console, stderr=subprocess.STDOUT, preexec_fn=die_with_parent)

    def write(self, name, text):
        with open(os.path.join(self.share, name), "w") as f:
            f.write(text)

    def read(self, name):
        """The contents of the file; empty if it does not exist yet."""
        try:
            with open(os.path.join(self.share, name), errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def limit(self, job):
        return job.limit * PATIENCE[self.way]

    def finish(self, job, status, started, note=""):
        job.status, job.seconds = status, time.monotonic() - started
        job.output = self.read(job.name + ".out") + note
        self.tell(job)

    def await_file(self, name, until):
        """True if the file gets contents before that time and before the guest ends."""
        while not self.read(name):
            if self.way == "kvm" and KVM_BROKEN in self.read("console"):
                raise KvmBroken(f"it reports a \"{KVM_BROKEN}\"")
            if self.process.poll() is not None:
                return bool(self.read(name))
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True

    def last_words(self, lines=25):
        return "\n".join(self.read("console").splitlines()[-lines:]) + "\n"

    def await_boot(self, started):
        """Returns when the first job starts. Watches the console, to give up at once on a guest that cannot boot."""
        first = self.jobs[0].name + ".start"
        why = ""
        while not self.await_file(first, time.monotonic() + 0.5):
            console, seconds = self.read("console"), time.monotonic() - started
            if self.process.poll() is not None:
                why = f"QEMU ended with status {self.process.returncode}"
            elif "Kernel panic" in console:
                why = "its kernel panicked"
            elif seconds > SILENCE[self.way] and FIRST_WORD not in console:
                why = f"it said nothing in {SILENCE[self.way]} s"
            elif seconds > BOOT_LIMIT[self.way]:
                why = f"it did not start a job in {BOOT_LIMIT[self.way]} s"
            if why and self.way == "kvm":
                raise KvmBroken(f"with it, the guest did not boot: {why}: {self.last_words(1).strip() or 'no output'}")
            if why:
                raise BootFailed(f"the guest did not boot: {why}. Last on its console:\n{self.last_words()}")

    def blame(self, job, started, what):
        how = "hung and was ended" if self.process.poll() is None else "ended by itself"
        self.finish(job, 1, started, f"rig: the guest {how} {what}. Last on its console:\n{self.last_words()}")

    def run(self):
        try:
            started = time.monotonic()
            self.await_boot(started)
            for job in self.jobs:
                if not self.await_file(job.name + ".start", started + GRACE):
                    return self.blame(job, started, "before the job began")
                started = time.monotonic()
                if not self.await_file(job.name + ".rc", started + self.limit(job) + GRACE):
                    return self.blame(job, started, "in this job")
                self.finish(job, int(self.read(job.name + ".rc")), started)
                started = time.monotonic()
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            print("rig: the guest did not power off; it was ended.", flush=True)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.console.close()
            shutil.rmtree(self.share, ignore_errors=True)


def leave_out(jobs, tell):
    """Skips the jobs that can wait; returns the others."""
    waiting = [j for j in jobs if j.can_wait]
    if waiting:
        print(f"rig: {len(waiting)} jobs are left out, for emulation is slow; 'rig.py all NAME' runs one all the same.",
              flush=True)
    for job in waiting:
        job.status, job.output = SKIPPED, "rig: left out, for the guest is emulated.\n"
        tell(job)
    return [j for j in jobs if not j.can_wait]


def run_all(folder, build, jobs, tell):
    """Gives every job a status: a failing guest fails only its current job. Raises BootFailed if a guest does not boot, since
the next one would not boot either."""
    os.makedirs(folder, exist_ok=True)
    left, way = list(jobs), kvm_or_emulation()
    while left:
        if way == "emulation":
            left = leave_out(left, tell)
            if not left:
                return
        try:
            Guest(folder, build, left, tell, way).run()
        except KvmBroken as why:
            print(f"rig: {KVM} does not run the guest, so it is emulated from here on, which is slower ({why}).", flush=True)
            way = "emulation"
        left = [j for j in left if j.status is None]
