#!/usr/bin/env python3
"""FISHPLATE_DEBUG=leaks names the objects that careless.c does not free, FISHPLATE_DEBUG=match the messages whose types differ, each
with its line; for a correct program neither prints anything.

    careless.py BIN CARELESS [mpiexec options]
"""
# SPDX-License-Identifier: Apache-2.0
import os
import re
import shutil
import subprocess
import sys
import tempfile

BIN, CARELESS, OPTIONS = sys.argv[1], sys.argv[2], sys.argv[3:]
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "careless.c")
LINES = shutil.which("addr2line") is not None


def run(checks, *words):
    env = dict(os.environ, FISHPLATE_DEBUG=checks, ASAN_OPTIONS="detect_leaks=0")
    options = [o if o != "NODES" else "2" for o in OPTIONS]
    command = [f"{BIN}/mpiexec", "-timeout", "120", "-n", "2", *options, CARELESS, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0 or done.stdout.count("end of rank") != 2:
        sys.exit(f"FISHPLATE_DEBUG={checks} {' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr


def line_with(mark):
    """The lines of the call below a mark; the call may have several lines, of which the compiler may name any."""
    lines = open(SOURCE).read().split("\n")
    first = last = next(i for i, line in enumerate(lines) if mark in line) + 1
    while ";" not in lines[last]:
        last += 1
    return range(first + 1, last + 2)


def place(mark):
    return "|".join(f"careless.c:{n}" for n in line_with(mark)) if LINES else r"careless\+0x[0-9a-f]+"


def expect(text, pattern, times):
    found = len(re.findall(pattern, text))
    if found != times:
        sys.exit(f"{found} times instead of {times}: {pattern}\n{text}")


def leaks():
    with tempfile.NamedTemporaryFile() as f:
        text = run("leaks", "leaks", f.name)
    marks = re.findall(r"/\* (leak: (\d+) (.*) from (MPI_\w+)) \*/", open(SOURCE).read())
    for mark, count, what, call in marks:
        expect(text, rf"Never freed \(FISHPLATE_DEBUG=leaks\): {count} {what} from {call} at ({place(mark)})\.", 2)
    expect(text, "Never freed", 2 * len(marks))
    expect(text, "Not received at MPI_Finalize .* 4 bytes from rank [01] with tag 6 on MPI_COMM_WORLD", 2)
    expect(text, "Not received", 2)


def match():
    text = run("match,coll", "match")
    for what, sent, received in (
        ("small", "10 x MPI_INT", "10 x MPI_FLOAT"),
        ("large", "1048576 x MPI_INT", "1048576 x MPI_FLOAT"),
        ("derived", "1 of a derived type: 1 x MPI_INT, 1 x MPI_DOUBLE", "12 x MPI_BYTE"),
    ):
        there, here = place(f"send: {what}"), place(f"receive: {what}")
        expect(text, rf"rank 0 sends {sent} at ({there}), and this rank receives it as {received} at ({here})", 1)
    expect(text, "do not match", 3)


def clean():
    for checks in ("leaks", "match", "leaks,match,coll,rma"):
        text = run(checks, "clean")
        if "FISHPLATE_DEBUG" in text:
            sys.exit(f"FISHPLATE_DEBUG={checks}: false alarm:\n{text}")


leaks()
match()
clean()
print("leaks and types that do not match are reported with their lines")
