"""Helpers of the softib tests: starting programs on softib, waiting for conditions, cleaning up.

A test is a function; run() calls those named on the command line (or all), prints what failed, and exits 77 when
everything was skipped. Nothing sleeps to synchronise: a server is ready when its port is listening.

SPDX-License-Identifier: Apache-2.0
"""
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["SOFTIB_BUILD"]
SOFTIB = os.path.join(BUILD, "bin", "softib")
VERBS = os.path.join(BUILD, "tests", "verbs")
KEY = secrets.token_hex(16)  # key of the fabrics of this run
LIMIT = 120  # seconds for any program; only a hang reaches the limit


class Skip(Exception):
    pass


def need(*programs):
    for p in programs:
        if not shutil.which(p):
            raise Skip(f"{p} is not installed")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listening(port, pid):
    """True if a socket listens on that TCP port in the network namespace of pid."""
    want = f":{port:04X} "
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{name}") as f:
                if any(want in line and line.split()[3] == "0A" and line.split()[1].endswith(want.strip()) for line in f):
                    return True
        except OSError:
            pass
    return False


def wait_until(what, text, proc=None):
    end = time.monotonic() + LIMIT
    while not what():
        if proc and proc.poll() is not None:
            raise AssertionError(f"ended with {proc.returncode} before {text}")
        if time.monotonic() > end:
            raise AssertionError(f"{text} did not appear")
        time.sleep(0.005)


def env(fabric=None, node=None, **more):
    e = dict(os.environ)
    e.pop("SOFTIB_FABRIC", None)
    e.pop("SOFTIB_NODE", None)
    e["SOFTIB_KEY"] = KEY
    if fabric is not None:
        e["SOFTIB_FABRIC"] = fabric
    if node is not None:
        e["SOFTIB_NODE"] = str(node)
    e.update({k: str(v) for k, v in more.items()})
    return e


def start(cmd, **kw):
    kw.setdefault("env", env())
    return subprocess.Popen([SOFTIB, "run", *map(str, cmd)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, **kw)


def finish(proc, what, status=0):
    """The output; fails unless the program ends with that status. None: any."""
    try:
        out, _ = proc.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        proc.kill()
        out, _ = proc.communicate()
        raise AssertionError(f"{what} hangs; it said:\n{out}")
    if status is not None and proc.returncode != status:
        raise AssertionError(f"{what} ended with {proc.returncode}:\n{out}")
    return out


def once(cmd, status=0, **kw):
    return finish(start(cmd, **kw), " ".join(map(str, cmd)), status)


def pair(cmd, port_option="-p", server_env=None, client_env=None, server_prefix=(), client_prefix=(), host="127.0.0.1"):
    """A program that is server without a host name and client with one. Returns the client's output."""
    port = free_port()
    cmd = [*cmd, port_option, port]
    server = start([*server_prefix, *cmd], env=server_env or env())
    try:
        wait_until(lambda: listening(port, server.pid), f"port {port} of {cmd[0]}", server)
        client = start([*client_prefix, *cmd, host], env=client_env or server_env or env())
        out = finish(client, "client " + " ".join(map(str, cmd)))
        finish(server, "server " + " ".join(map(str, cmd)))
        return out
    except AssertionError as e:
        server.kill()
        raise AssertionError(f"{e}\nserver said:\n{server.communicate()[0]}") from None


def scratch():
    return tempfile.TemporaryDirectory(prefix="softib-test-")


def run(tests):
    chosen = sys.argv[1:] or list(tests)
    skipped = failed = 0
    before = set(os.listdir("/dev/shm"))
    for name in chosen:
        begin = time.monotonic()
        try:
            tests[name]()
            verdict = "ok"
        except Skip as why:
            skipped += 1
            verdict = f"SKIPPED: {why}"
        except AssertionError as why:
            failed += 1
            verdict = f"FAILED: {why}"
        print(f"{name}: {verdict} ({time.monotonic() - begin:.1f} s)", flush=True)
    left = [f for f in set(os.listdir("/dev/shm")) - before if "softib" in f]
    if left:
        print(f"FAILED: left in /dev/shm: {left}")
        failed += 1
    sys.exit(1 if failed else 77 if skipped == len(chosen) else 0)


def collect(namespace):
    return {k[5:]: v for k, v in namespace.items() if k.startswith("test_")}


__all__ = [n for n in dir() if not n.startswith("_")]
assert signal  # re-exported for the tests
