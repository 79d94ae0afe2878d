#!/usr/bin/env python3
"""Tests FISHPLATE_DEBUG: `leaks` names the objects that careless.c does not free, `match` names the messages whose types differ, each
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


def run_careless(checks, *words):
    env = dict(os.environ, FISHPLATE_DEBUG=checks, ASAN_OPTIONS="detect_leaks=0")
    options = [o if o != "NODES" else "2" for o in OPTIONS]
    command = [f"{BIN}/mpiexec", "-timeout", "120", "-n", "2", *options, CARELESS, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0 or done.stdout.count("end of rank") != 2:
        sys.exit(f"FISHPLATE_DEBUG={checks} {' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr


def find_lines(mark):
    """Returns the lines of the call below a mark; debug information may name any of them."""
    lines = open(SOURCE).read().split("\n")
    first = last = next(i for i, line in enumerate(lines) if mark in line) + 1
    while ";" not in lines[last]:
        last += 1
    return range(first + 1, last + 2)


def source_pattern(mark):
    return "|".join(f"careless.c:{n}" for n in find_lines(mark)) if LINES else r"careless\+0x[0-9a-f]+"


def expect_count(text, pattern, times):
    found = len(re.findall(pattern, text))
    if found != times:
        sys.exit(f"{found} times instead of {times}: {pattern}\n{text}")


def check_leaks():
    with tempfile.NamedTemporaryFile() as f:
        text = run_careless("leaks", "leaks", f.name)
    marks = re.findall(r"/\* (leak: (\d+) (.*) from (MPI_\w+)) \*/", open(SOURCE).read())
    for mark, count, what, call in marks:
        expect_count(text, rf"Never freed \(FISHPLATE_DEBUG=leaks\): {count} {what} from {call} at ({source_pattern(mark)})\.", 2)
    expect_count(text, "Never freed", 2 * len(marks))
    expect_count(text, "Not received at MPI_Finalize .* 4 bytes from rank [01] with tag 6 on MPI_COMM_WORLD", 2)
    expect_count(text, "Not received", 2)


def check_match():
    text = run_careless("match,coll", "match")
    for what, sent, received in (
        ("small", "10 x MPI_INT", "10 x MPI_FLOAT"),
        ("large", "1048576 x MPI_INT", "1048576 x MPI_FLOAT"),
        ("derived", "1 of a derived type: 1 x MPI_INT, 1 x MPI_DOUBLE", "12 x MPI_BYTE"),
    ):
        there, here = source_pattern(f"send: {what}"), source_pattern(f"receive: {what}")
        expect_count(text, rf"rank 0 sends {sent} at ({there}), and this rank receives it as {received} at ({here})", 1)
    expect_count(text, "do not match", 3)


def check_clean():
    for checks in ("leaks", "match", "leaks,match,coll,rma"):
        text = run_careless(checks, "clean")
        if "FISHPLATE_DEBUG" in text:
            sys.exit(f"FISHPLATE_DEBUG={checks}: false alarm:\n{text}")


check_leaks()
check_match()
check_clean()
print("leaks and types that do not match are reported with their lines")
