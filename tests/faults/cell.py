"""Runs one cell of the fault matrix: a job in one situation with one fault. Returns how the job ended and which processes and files it
left behind.

SPDX-License-Identifier: Apache-2.0
"""
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import matrix

GRACE = 20  # seconds beyond mpiexec's own limit until a job counts as hung, and for its processes to end

FULL = 'mount -t tmpfs -o size=64k none /dev/shm || exit 77; cat /dev/zero > /dev/shm/full 2>/dev/null; exec "$@"'


class Result:
    def __init__(self, verdict, sentence="", detail="", seconds=0.0):
        self.verdict = verdict  # completes, ends, HANG, WRONG, MUTE, LEFT, BAD, -
        self.sentence, self.detail, self.seconds = sentence, detail, seconds

    @property
    def good(self):
        return self.verdict in (matrix.COMPLETES, matrix.ENDS, "-")


def find_processes(mark):
    """Returns {pid: state} of the living processes that have this word in their environment."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as f:
                ours = mark.encode() in f.read()
            with open(f"/proc/{entry}/stat") as f:
                state = f.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if ours and state not in "ZX":
            found[int(entry)] = state
    return found


class Cell:
    ranks, nodes, rounds = 4, 2, 8

    def __init__(self, build, fault, situation, seed):
        self.build, self.fault, self.situation, self.seed = build, fault, situation, seed
        self.random = random.Random(f"{seed}/{fault.name}/{situation.name}")
        self.mark = f"FAULTS_CELL={os.getpid()}-{self.random.getrandbits(64):x}"
        self.folder = tempfile.mkdtemp(prefix="faults-")

    def make_environment(self):
        f, s = self.fault, self.situation
        env = {k: v for k, v in os.environ.items() if not k.startswith(("FISHPLATE_", "SOFTIB_", "PMI_"))}
        env.update([self.mark.split("=")])
        env.update(f.env)
        env.update(s.env)
        env.update(f.kept)
        env.update(TMPDIR=self.folder, SOFTIB=f"{self.build}/bin/softib", FAULTS_RANK=str(self.random.randrange(self.ranks)),
                   FAULTS_ROUND=str(self.random.randrange(1, self.rounds)), FAULTS_DELAY=str(self.choose_delay_us()))
        if f.what:
            env["FAULTS_WHAT"] = f.what
        if f.what == "qp":
            env["FISHPLATE_VERBS"] = f"{self.build}/tests/faults/libfaults_breaker.so"
        if fabric := self.fabric_settings():
            name = self.mark.split("=")[1]
            env["SOFTIB_FABRIC"] = f"nodes={self.nodes} name=faults-{name} seed={self.random.randrange(1, 1000)} {fabric}"
        return env

    def fabric_settings(self):
        """Returns the settings for SOFTIB_FABRIC; if empty, mpiexec creates the fabric."""
        return self.fault.fabric

    def timeout_seconds(self):
        """mpiexec's -timeout in seconds."""
        return self.fault.timeout

    def program_command(self):
        return [f"{self.build}/tests/faults/faults_traffic", self.situation.traffic]

    def correct_endings(self):
        return matrix.correct_endings(self.fault, self.situation)

    def find_explanation(self, err):
        return matrix.find_explanation(self.fault, err)

    def act_periodically(self):
        """A periodic action while the job runs; returns the seconds until its next execution."""
        return 0.2 if self.fault.resume else 0.05

    def all_bytes_are_right(self, out):
        """True if the job's output states that every byte was correct."""
        return out.count("bytes right") == self.ranks

    def has_wrong_bytes(self, out):
        return "WRONG BYTES" in out

    def choose_delay_us(self):
        """Returns a random delay in microseconds, during which MPI_Init or MPI_Finalize usually runs."""
        return self.random.randrange(2000 if self.situation.name == "finalize" else 30000)

    def mpiexec_command(self):
        f = self.fault
        where = ["-vnodes", str(self.nodes)]
        if f.agents:
            shell = os.path.join(self.folder, "shell")
            with open(shell, "w") as script:
                script.write('#!/bin/sh\nshift\nexec "$@"\n')
            os.chmod(shell, 0o755)
            hosts = ",".join(f"{chr(ord('a') + i)}:{self.ranks // self.nodes}" for i in range(self.nodes))
            where = ["-launcher-exec", shell, "-hosts", hosts]
        program = self.program_command()
        if f.within:
            program = ["sh", "-c", f.within + '; exec "$@"', "sh", *program]
        job = [f"{self.build}/bin/mpiexec", "-n", str(self.ranks), *where, "-timeout", str(self.timeout_seconds()), *program]
        if f.wrap == "full":
            return ["unshare", "-m", "sh", "-c", FULL, "sh", *job]
        return [f"{self.build}/tests/faults/faults_deny", *job] if f.wrap == "deny" else job

    def set_limits(self):
        for name, value in self.fault.limits.items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))

    def wait_for_job(self, job, deadline):
        """Waits until the job ends. A rank that has stopped itself is continued after a second if the fault requires it (resume)."""
        stopped_since = {}
        while job.poll() is None and time.monotonic() < deadline:
            try:
                job.wait(self.act_periodically())
            except subprocess.TimeoutExpired:
                pass
            if not self.fault.resume or job.poll() is not None:
                continue
            for pid, state in find_processes(self.mark).items():
                since = stopped_since.setdefault(pid, time.monotonic()) if state == "T" else None
                if since and time.monotonic() - since > 1:
                    os.kill(pid, signal.SIGCONT)
        return job.poll() is not None

    def find_leftovers(self):
        """Processes that do not end by themselves, and files."""
        end = time.monotonic() + GRACE
        while (left := find_processes(self.mark)) and time.monotonic() < end:
            time.sleep(0.05)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        files = [name for name in os.listdir(self.folder) if name not in ("out", "err", "shell")]
        return [f"process {pid}" for pid in left] + [f"file {name}" for name in files]

    def run(self):
        began = time.monotonic()
        out, err = (os.path.join(self.folder, name) for name in ("out", "err"))
        try:
            with open(out, "wb") as o, open(err, "wb") as e:
                job = subprocess.Popen(self.mpiexec_command(), stdin=subprocess.DEVNULL, stdout=o, stderr=e, env=self.make_environment(),
                                       preexec_fn=self.set_limits, start_new_session=True)
                ended = self.wait_for_job(job, began + self.timeout_seconds() + GRACE)
                if not ended:
                    job.kill()
                    job.wait()
            left = self.find_leftovers()
            with open(out, errors="replace") as o, open(err, errors="replace") as e:
                result = self.judge(job.returncode, ended, left, o.read(), e.read())
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        result.seconds = time.monotonic() - began
        return result

    def judge(self, status, ended, left, out, err):
        f = self.fault
        right = self.correct_endings()
        detail = f"exit status {status}\n{out}{err}"
        sentence = self.find_explanation(err)
        # If the job ended before its mpiexec was killed, only the exit status is lost.
        complete = status in (0, -signal.SIGKILL if f.what == "front" else 0) and self.all_bytes_are_right(out)
        timed_out = status == 124 and f.timeout == 60
        if status == 77 and f.wrap:
            return Result("-", detail="not possible here: " + err.strip())
        if not ended or timed_out:
            return Result("HANG", detail=detail)
        if self.has_wrong_bytes(out) or (status == 0 and not complete):
            return Result("WRONG", detail=detail)
        if left:
            return Result("LEFT", detail=", ".join(left) + "\n" + detail)
        if complete and (matrix.COMPLETES in right or f.what == "front"):
            return Result(matrix.COMPLETES, detail=detail)
        if not complete and matrix.ENDS in right:
            return Result(matrix.ENDS, sentence, detail) if sentence else Result("MUTE", detail=detail)
        return Result("BAD", sentence or "", detail)
