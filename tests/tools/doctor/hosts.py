#!/usr/bin/env python3
"""`fishplate ps` and `why` on a job on several hosts, run on the host of mpiexec: the diagnosis pages of all ranks come through the tree
of agents. The hosts are pid namespaces of this machine with their own names, so that only the agents can read the pages. Another user
gets no answer.

    hosts.py BIN ZOO
"""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BIN, ZOO = sys.argv[1:3]
LIMIT = 100
NOBODY = 65534
SHELL = """#!/bin/sh
host=$1
shift
exec unshare --pid --uts --fork --kill-child --mount-proc sh -c 'hostname "$0"; exec "$@"' "$host" "$@"
"""


def run_tool(*words, **how):
    return subprocess.run([f"{BIN}/fishplate", *words], capture_output=True, text=True, **how)


def query_until(job, right, *words):
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        answer = run_tool(*words, "--json", str(job.pid))
        if answer.returncode in (0, 1) and right(json.loads(answer.stdout)):
            return json.loads(answer.stdout)
        if job.poll() is not None:
            sys.exit(f"the job ended:\n{job.communicate()[1]}")
    sys.exit(f"fishplate {' '.join(words)}: not the right answer, but:\n{answer.stdout}{answer.stderr}")


def shows_ring_deadlock(answer):
    return any(f["kind"] == "deadlock" and sorted(f["ranks"]) == list(range(6)) for f in answer["findings"])


def read_answer(name):
    """Returns the answer of mpiexec's socket to a connection of this process."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(LIMIT)
        s.connect("\0" + name)
        said = b""
        while piece := s.recv(65536):
            said += piece
        return said


def read_answer_as_nobody(name):
    """Returns the length of the answer to a connection of another user; 0 if the connection is refused."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            said = len(read_answer(name))
        except OSError:
            said = 0  # the connection was reset, which counts as refused
        os.write(writer, str(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    return int(os.read(reader, 100))


def expect_others_refused(job):
    """Another user sees no job, and mpiexec's socket closes without an answer."""
    sockets = open("/proc/net/unix").read().split()
    name = next(s[1:] for s in sockets if s.startswith(f"@fishplate-job-fp{job.pid}-"))
    if not read_answer(name):
        sys.exit("mpiexec's socket does not answer its own user")
    if read_answer_as_nobody(name) != 0:
        sys.exit("mpiexec's socket answers another user")
    with tempfile.TemporaryDirectory() as at:  # a copy, since the other user may not be able to read the build folder
        os.chmod(at, 0o755)
        os.makedirs(f"{at}/bin")
        shutil.copy(f"{BIN}/fishplate", f"{at}/bin")
        shutil.copytree(f"{BIN}/../lib", f"{at}/lib", symlinks=False, ignore=shutil.ignore_patterns("*.a", "pkgconfig"))
        for words in (["ps"], ["why"], ["ps", str(job.pid)], ["why", str(job.pid)], ["ps", "--json"]):
            run = subprocess.run(
                [f"{at}/bin/fishplate", *words],
                capture_output=True,
                text=True,
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                cwd="/",
                env={**os.environ, "LD_LIBRARY_PATH": f"{at}/lib"},
            )
            if f"fp{job.pid}-" in run.stdout or "MPI_Recv" in run.stdout or (words[-1] != "--json" and run.returncode != 2):
                sys.exit(f"fishplate {' '.join(words)} answers another user ({run.returncode}):\n{run.stdout}{run.stderr}")


class ForeignProcess:
    """Another user's process: 900 sockets with the name of an mpiexec, and a FIFO that /proc shows under the name of a page.
Neither may hide ranks from root or make root's command wait forever."""

    def __enter__(self):
        ready, tell = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            try:
                self.make_fifo()
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
                held = [socket.socket(socket.AF_UNIX) for _ in range(900)]
                for i, s in enumerate(held):
                    s.bind(f"\0fishplate-job-fp1-{i}")
                    s.listen()
                os.write(tell, b"1")
                signal.pause()
            finally:
                os._exit(1)
        os.close(tell)
        if os.read(ready, 1) != b"1":
            sys.exit("the stranger failed")
        os.close(ready)

    def make_fifo(self):
        """In a mount namespace with a separate root, /proc shows paths as if they were in the reader's namespace."""
        libc = ctypes.CDLL(None, use_errno=True)
        with tempfile.TemporaryDirectory() as at:
            done = (
                libc.unshare(0x20000) == 0  # CLONE_NEWNS
                and libc.mount(None, b"/", None, 0x44000, None) == 0  # MS_REC | MS_PRIVATE
                and libc.mount(b"none", at.encode(), b"tmpfs", 0, None) == 0
            )
            os.mkdir(f"{at}/old")
            os.mkfifo(f"{at}/memfd:fishplate-rank", 0o644)
            if not done or libc.pivot_root(at.encode(), f"{at}/old".encode()) != 0:
                sys.exit("no mount name space")
            os.open("/memfd:fishplate-rank", os.O_RDONLY | os.O_NONBLOCK)
            os.chdir("/old")
            os.chroot("/old")
            libc.umount2(at.encode(), 2)  # MNT_DETACH

    def __exit__(self, *_):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


def expect_ranks_seen_despite_foreign_sockets(job):
    with ForeignProcess():
        run = subprocess.run(
            [f"{BIN}/fishplate", "ps", "--json", str(job.pid)], capture_output=True, text=True, timeout=LIMIT
        )
        jobs = [j for j in json.loads(run.stdout)["jobs"] if j["job"].startswith(f"fp{job.pid}-")]
        if len(jobs) != 1 or len(jobs[0]["ranks"]) != 6 or any(r["host"] is None for r in jobs[0]["ranks"]):
            sys.exit(f"fishplate ps beside another user's sockets: {jobs}")


def main():
    if os.geteuid() != 0 or subprocess.run(["unshare", "--pid", "--uts", "--fork", "--mount-proc", "true"]).returncode:
        print("skipped: process name spaces need root")
        return 77
    if not glob.glob(f"{BIN}/../lib/softib/libibverbs.so.1"):
        print("skipped: without softib there are no messages between hosts")
        return 77
    os.environ["FISHPLATE_SPIN_US"] = "0"
    with tempfile.TemporaryDirectory() as at:
        with open(f"{at}/shell", "w") as f:
            f.write(SHELL)
        os.chmod(f"{at}/shell", 0o755)
        command = [f"{BIN}/mpiexec", "-launcher-exec", f"{at}/shell", "-hosts", "here,there,yonder", "-fanout", "1"]
        job = subprocess.Popen([*command, "-n", "6", ZOO, "ring"], stderr=subprocess.PIPE, text=True)
        try:
            query_until(job, shows_ring_deadlock, "why")
            jobs = query_until(job, lambda a: any(j["job"].startswith(f"fp{job.pid}-") for j in a["jobs"]), "ps")["jobs"]
            ranks = next(j["ranks"] for j in jobs if j["job"].startswith(f"fp{job.pid}-"))
            hosts = [r["host"] for r in ranks]
            if sorted(hosts) != ["here", "here", "there", "there", "yonder", "yonder"]:
                sys.exit(f"fishplate ps: hosts {hosts}")
            expect_others_refused(job)
            expect_ranks_seen_despite_foreign_sockets(job)
            job.send_signal(signal.SIGQUIT)
            while "Deadlock: ranks 0-5" not in (line := job.stderr.readline()):
                if not line:
                    sys.exit("kill -QUIT: no answer")
        finally:
            job.send_signal(signal.SIGTERM)
            job.communicate()
    print("ranks of three hosts are seen from where mpiexec runs, and by nobody else")
    return 0


sys.exit(main())
