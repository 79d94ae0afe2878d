"""Helpers of the softib tests: start programs on softib, wait for conditions, clean up.

A test is a function. run_tests() calls the tests named on the command line, or all, prints failures, and exits with 77 if
all tests were skipped. Tests do not sleep to synchronise: a server is ready when its port is listening.

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


def require_programs(*programs):
    for p in programs:
        if not shutil.which(p):
            raise Skip(f"{p} is not installed")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def port_is_listening(port, pid):
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


def wait_until(condition, text, proc=None):
    """Waits until condition() is true. Fails if `proc` ends before or the time limit is reached."""
    end = time.monotonic() + LIMIT
    while not condition():
        if proc and proc.poll() is not None:
            raise AssertionError(f"the program ended with status {proc.returncode} before {text} was ready")
        if time.monotonic() > end:
            raise AssertionError(f"{text} was not ready in {LIMIT} s")
        time.sleep(0.005)


def make_env(fabric=None, node=None, **more):
    """Returns the environment of a program on this fabric and node, with the settings in `more`."""
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


def start_program(cmd, **kw):
    kw.setdefault("env", make_env())
    return subprocess.Popen([SOFTIB, "run", *map(str, cmd)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, **kw)


def finish_program(proc, what, status=0):
    """Waits for the program and returns its output. Fails if its exit status differs from `status` (None: any is accepted)."""
    try:
        out, _ = proc.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        proc.kill()
        out, _ = proc.communicate()
        raise AssertionError(f"{what} did not end in {LIMIT} s; its output:\n{out}")
    if status is not None and proc.returncode != status:
        raise AssertionError(f"{what} ended with status {proc.returncode}, expected {status}; its output:\n{out}")
    return out


def run_program(cmd, status=0, **kw):
    return finish_program(start_program(cmd, **kw), " ".join(map(str, cmd)), status)


def run_server_and_client(cmd, port_option="-p", server_env=None, client_env=None, server_prefix=(), client_prefix=(),
                          host="127.0.0.1"):
    """Runs a program as server, without a host name, and as client, with one. Returns the output of the client."""
    port = free_port()
    cmd = [*cmd, port_option, port]
    server = start_program([*server_prefix, *cmd], env=server_env or make_env())
    try:
        wait_until(lambda: port_is_listening(port, server.pid), f"port {port} of {cmd[0]}", server)
        client = start_program([*client_prefix, *cmd, host], env=client_env or server_env or make_env())
        out = finish_program(client, "client " + " ".join(map(str, cmd)))
        finish_program(server, "server " + " ".join(map(str, cmd)))
        return out
    except AssertionError as e:
        server.kill()
        raise AssertionError(f"{e}\noutput of the server:\n{server.communicate()[0]}") from None


def scratch_folder():
    return tempfile.TemporaryDirectory(prefix="softib-test-")


def run_tests(tests):
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
    leftovers = [f for f in set(os.listdir("/dev/shm")) - before if "softib" in f]
    if leftovers:
        print(f"FAILED: files remain in /dev/shm: {leftovers}")
        failed += 1
    sys.exit(1 if failed else 77 if skipped == len(chosen) else 0)


def collect_tests(namespace):
    return {k[5:]: v for k, v in namespace.items() if k.startswith("test_")}


__all__ = [n for n in dir() if not n.startswith("_")]
assert signal  # re-exported for the tests
