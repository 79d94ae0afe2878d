#!/usr/bin/env python3
"""A job on several hosts, asked about on the one where mpiexec runs: the pages of all ranks come through the tree of
agents. The hosts are process name spaces of this machine, with names of their own: a reader outside sees nothing of the
ranks in them but what the agents tell. Another user gets no answer.

    hosts.py BIN ZOO
"""
# SPDX-License-Identifier: Apache-2.0
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


def tool(*words, **how):
    return subprocess.run([f"{BIN}/fishplate", *words], capture_output=True, text=True, **how)


def ask_until(job, right, *words):
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        answer = tool(*words, "--json", str(job.pid))
        if answer.returncode in (0, 1) and right(json.loads(answer.stdout)):
            return json.loads(answer.stdout)
        if job.poll() is not None:
            sys.exit(f"the job ended:\n{job.communicate()[1]}")
    sys.exit(f"fishplate {' '.join(words)}: not the right answer, but:\n{answer.stdout}{answer.stderr}")


def circle(answer):
    return any(f["kind"] == "deadlock" and sorted(f["ranks"]) == list(range(6)) for f in answer["findings"])


def call(name):
    """What mpiexec's socket says to whoever we are."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(LIMIT)
        s.connect("\0" + name)
        said = b""
        while piece := s.recv(65536):
            said += piece
        return said


def call_as_nobody(name):
    """The same as another user; -1 when not even a connection is possible."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            said = len(call(name))
        except OSError:
            said = 0  # reset: refused as well
        os.write(writer, str(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    return int(os.read(reader, 100))


def refuses_others(job):
    """Another user sees no job, and mpiexec's socket closes without a word."""
    sockets = open("/proc/net/unix").read().split()
    name = next(s[1:] for s in sockets if s.startswith(f"@fishplate-job-fp{job.pid}-"))
    if not call(name):
        sys.exit("mpiexec's socket does not answer its own user")
    if call_as_nobody(name) != 0:
        sys.exit("mpiexec's socket answers another user")
    with tempfile.TemporaryDirectory() as at:  # the build folder may not be theirs to read
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
            ask_until(job, circle, "why")
            jobs = ask_until(job, lambda a: any(j["job"].startswith(f"fp{job.pid}-") for j in a["jobs"]), "ps")["jobs"]
            ranks = next(j["ranks"] for j in jobs if j["job"].startswith(f"fp{job.pid}-"))
            hosts = [r["host"] for r in ranks]
            if sorted(hosts) != ["here", "here", "there", "there", "yonder", "yonder"]:
                sys.exit(f"fishplate ps: hosts {hosts}")
            refuses_others(job)
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
