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
FIRST_WORD = "rig: booted"         # first line that guest/init prints
# Limits in seconds until the guest prints its first line, and until its first job starts. With KVM this takes 2 s and 5 s. If a limit is
# exceeded with KVM, the guest is emulated, which is only slower. Emulation on a busy machine is slow.
SILENCE = {"kvm": 20, "emulation": 180}
BOOT_LIMIT = {"kvm": 60, "emulation": 240}
PATIENCE = {"kvm": 1, "emulation": 4}  # factor of the jobs' time limits, which are given for KVM
GRACE = 30        # seconds beyond a job's limit, which the guest enforces itself
# Without "erms" the kernel does not copy and clear memory by string instructions, which QEMU emulates byte by byte. On Arm the processor
# "max" would compute pointer authentication in software.
CPU = {"x86_64": "max,erms=off", "aarch64": "neoverse-n1"}
BOARD = {"x86_64": "q35", "aarch64": "virt"}
CONSOLE = {"x86_64": "ttyS0", "aarch64": "ttyAMA0"}
KERNEL_LINE = ("quiet mitigations=off nokaslr random.trust_cpu=on random.trust_bootloader=on watchdog_thresh=20 tsc=reliable "
               "no_timer_check oops=panic panic=-1 net.ifnames=0")


class Job:
    def __init__(self, name, devices, limit, command, can_wait=False):
        self.can_wait = can_wait  # skipped if the guest is emulated
        self.name, self.devices, self.limit, self.command = name, devices, int(limit), command
        self.status, self.output, self.seconds = None, "", 0.0


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class BootFailed(Exception):
    """The guest did not start its first job; contains the reason and the last lines of its console."""


class KvmBroken(Exception):
    """KVM is available but does not run the guest; contains the reason. No job is the cause."""


def choose_accelerator():
    """Returns the accelerator of the first guest of a run."""
    return "kvm" if os.access(KVM, os.R_OK | os.W_OK) else "emulation"


def host_has_few_cores():
    """True if the host has too few cores for the processors of an emulated guest and other programs."""
    return len(os.sched_getaffinity(0)) <= 2


def guest_processors(way):
    """Returns the number of processors of the guest: two, or one if the guest is emulated on a host with few cores. There one host thread
    would run two processors alternately for 0.1 s each, and each message between them would wait that long. Yielding ranks kept
    soft-RoCE from running for up to 20 s."""
    return "1" if way == "emulation" and host_has_few_cores() else "2"


def accelerator_options(way, arch):
    """Returns the accelerator options of QEMU. On a host with few cores one host thread emulates all processors of the guest: if a rank
    polls, it executes "pause", and the thread switches to the other processor. With a thread for each processor half of the guest's
    time would be spent in polling."""
    if way == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", f"tcg,thread={'single' if host_has_few_cores() else 'multi'},tb-size=512", "-cpu", CPU[arch]]


def qemu_command_line(kernel, initramfs, share, way):
    arch = image.guest_architecture()
    return [image.find_qemu(), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", BOARD[arch],
            *accelerator_options(way, arch), "-smp", guest_processors(way), "-m", "3072", "-kernel", kernel, "-initrd", initramfs,
            "-append", f"console={CONSOLE[arch]} {KERNEL_LINE}", "-serial", "stdio",
            "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
            "-fsdev", f"local,id=share,path={share},security_model=none",
            "-device", "virtio-9p-pci,fsdev=share,mount_tag=share"]


class Guest:
    """A guest that boots and runs a list of jobs; run() returns when the jobs are done or the guest has ended."""

    def __init__(self, folder, build, jobs, report, way):
        self.jobs, self.report, self.way = jobs, report, way
        self.share = tempfile.mkdtemp(prefix="share-", dir=folder)
        self.write_file("rig-folder", image.HERE)
        self.write_file("build-folder", build)
        self.write_file("todo", "".join(f"{j.name} {j.devices} {self.limit_seconds(j)} {j.command}\n" for j in jobs))
        kernel, initramfs = image.prepare_files(folder)
        self.console = open(os.path.join(self.share, "console"), "wb")
        self.process = subprocess.Popen(qemu_command_line(kernel, initramfs, self.share, way), stdin=subprocess.DEVNULL,
                                        stdout=self.console, stderr=subprocess.STDOUT, preexec_fn=end_with_parent)

    def write_file(self, name, text):
        with open(os.path.join(self.share, name), "w") as f:
            f.write(text)

    def read_file(self, name):
        """The contents of the file; empty if it does not exist yet."""
        try:
            with open(os.path.join(self.share, name), errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def limit_seconds(self, job):
        return job.limit * PATIENCE[self.way]

    def finish_job(self, job, status, started, note=""):
        job.status, job.seconds = status, time.monotonic() - started
        job.output = self.read_file(job.name + ".out") + note
        self.report(job)

    def wait_for_file(self, name, until):
        """True if the file gets contents before that time and before the guest ends."""
        while not self.read_file(name):
            if self.way == "kvm" and KVM_BROKEN in self.read_file("console"):
                raise KvmBroken(f"it reports a \"{KVM_BROKEN}\"")
            if self.process.poll() is not None:
                return bool(self.read_file(name))
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True

    def last_console_lines(self, lines=25):
        return "\n".join(self.read_file("console").splitlines()[-lines:]) + "\n"

    def wait_for_boot(self, started):
        """Returns when the first job starts. Watches the console, to give up at once on a guest that cannot boot."""
        first = self.jobs[0].name + ".start"
        why = ""
        while not self.wait_for_file(first, time.monotonic() + 0.5):
            console, seconds = self.read_file("console"), time.monotonic() - started
            if self.process.poll() is not None:
                why = f"QEMU ended with status {self.process.returncode}"
            elif "Kernel panic" in console:
                why = "its kernel panicked"
            elif seconds > SILENCE[self.way] and FIRST_WORD not in console:
                why = f"it printed nothing in {SILENCE[self.way]} s"
            elif seconds > BOOT_LIMIT[self.way]:
                why = f"it did not start a job in {BOOT_LIMIT[self.way]} s"
            if why and self.way == "kvm":
                raise KvmBroken(f"with it, the guest did not boot: {why}: {self.last_console_lines(1).strip() or 'no output'}")
            if why:
                raise BootFailed(f"the guest did not boot: {why}. Last on its console:\n{self.last_console_lines()}")

    def fail_job(self, job, started, what):
        how = "hung and was ended" if self.process.poll() is None else "ended by itself"
        self.finish_job(job, 1, started, f"rig: the guest {how} {what}. Last on its console:\n{self.last_console_lines()}")

    def run(self):
        try:
            started = time.monotonic()
            self.wait_for_boot(started)
            for job in self.jobs:
                if not self.wait_for_file(job.name + ".start", started + GRACE):
                    return self.fail_job(job, started, "before the job began")
                started = time.monotonic()
                if not self.wait_for_file(job.name + ".rc", started + self.limit_seconds(job) + GRACE):
                    return self.fail_job(job, started, "in this job")
                self.finish_job(job, int(self.read_file(job.name + ".rc")), started)
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


def skip_waiting_jobs(jobs, report):
    """Skips the jobs that can wait for a machine with KVM; returns the others."""
    waiting = [j for j in jobs if j.can_wait]
    if waiting:
        print(f"rig: {len(waiting)} jobs are left out because emulation is slow; 'rig.py all NAME' runs one of them.",
              flush=True)
    for job in waiting:
        job.status, job.output = SKIPPED, "rig: left out because the guest is emulated.\n"
        report(job)
    return [j for j in jobs if not j.can_wait]


def run_jobs(folder, build, jobs, report):
    """Gives every job a status: a failing guest fails only its current job. Raises BootFailed if a guest does not boot, since
the next one would not boot either."""
    os.makedirs(folder, exist_ok=True)
    left, way = list(jobs), choose_accelerator()
    while left:
        if way == "emulation":
            left = skip_waiting_jobs(left, report)
            if not left:
                return
        try:
            Guest(folder, build, left, report, way).run()
        except KvmBroken as why:
            print(f"rig: {KVM} does not run the guest, so it is emulated from here on, which is slower ({why}).", flush=True)
            way = "emulation"
        left = [j for j in left if j.status is None]
