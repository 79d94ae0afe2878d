#!/usr/bin/env python3
"""count: instructions per message on soft-RoCE, in a ping-pong with this library and with others. QEMU counts them
(count/plugin.c), so unlike times the figures depend little on other load of the machine: only timer interrupts and ranks that
went to sleep are counted too.

    count.py [--build DIR] [--bytes N] [--rounds N] [--only NAME...] [--set NAME=VALUE...] [--functions N]

A waiting rank polls a random number of times: instructions of the program that run more than POLLED times per message are
excluded. The rest is the path of one message at both ends: the kernel's part (soft-RoCE does the adapter's work and the
receiver's half in the sender's system call) and the libraries.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import bisect
import collections
import os
import shutil
import subprocess
import sys

import compare
import guest
import image

HERE = os.path.join(image.HERE, "count")
POLLED = 4
KERNEL = 1 << 63


def build_plugin(folder):
    path = os.path.join(folder, "count.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", os.path.join(HERE, "plugin.c"), "-o", path], check=True)
    return path


def compile_ping(lib, folder):
    if not shutil.which(lib.mpicc):
        return None
    path = os.path.join(folder, f"ping.{os.path.basename(lib.mpicc)}")
    subprocess.run([lib.mpicc, "-std=gnu11", "-O2", os.path.join(HERE, "ping.c"), "-o", path], check=True)
    return path


def read_kernel_symbols(path):
    with open(path) as f:
        for line in f:
            address, kind, name, *module = line.split()
            if kind in "tTwW":
                yield int(address, 16), name, module[0] if module else "[kernel]"


def read_code_offset(path):
    """Returns the difference between addresses and file offsets of the code segment."""
    for line in subprocess.run(["readelf", "-lW", path], capture_output=True, text=True).stdout.splitlines():
        word = line.split()
        if len(word) > 7 and word[0] == "LOAD" and "E" in word[-2]:
            return int(word[2], 16) - int(word[1], 16)
    return 0


def read_program_symbols(maps):
    with open(maps) as f:
        for line in f:
            word = line.split()
            if len(word) < 6 or "x" not in word[1] or not os.path.exists(word[5]):
                continue
            start, end = (int(a, 16) for a in word[0].split("-"))
            name, base = os.path.basename(word[5]), start - int(word[2], 16) - read_code_offset(word[5])
            yield start, "?", name
            yield end, "?", "?"
            for option in ("-D", "-a"):
                listing = subprocess.run(["nm", option, "--defined-only", word[5]], capture_output=True, text=True).stdout
                for symbol in listing.splitlines():
                    at, kind, *rest = symbol.split()
                    if kind in "tTwWiI" and start <= base + int(at, 16) < end:
                        yield base + int(at, 16), rest[0].split("@")[0], name


def count_by_function(share, name, messages):
    """Returns {(file, function): instructions per message}, and the system calls per message."""
    symbols = sorted({s[0]: s for s in [*read_kernel_symbols(f"{share}/kallsyms"), *read_program_symbols(f"{share}/{name}.maps")]}
                     .values())
    starts = [s[0] for s in symbols]
    found, calls = collections.Counter(), 0.0
    with open(f"{share}/{name}.blocks") as f:
        for line in f:
            address, length, runs = line.split()
            address, length, runs = int(address, 16), int(length), int(runs) / messages
            at = bisect.bisect_right(starts, address) - 1
            _, function, place = symbols[at] if at >= 0 else (0, "?", "?")
            if function == "invoke_syscall" and address == starts[at]:
                calls += runs
            if address >= KERNEL or runs <= POLLED:
                found[place if address < KERNEL else "kernel " + place, function] += length * runs
    return found, calls


def print_counts(lib, found, calls, functions):
    def sum_instructions(test):
        return sum(n for (place, _), n in found.items() if test(place))
    print(f"{lib.title}: {sum_instructions(lambda p: p.startswith('kernel')):.0f} instructions of the kernel, "
          f"{sum_instructions(lambda p: not p.startswith('kernel')):.0f} of the program and its libraries, {calls:.2f} system calls")
    places = collections.Counter()
    for (place, _), n in found.items():
        places[place] += n
    for place, n in places.most_common():
        if n >= 10:
            print(f"    {n:7.0f}  {place}")
    for (place, function), n in found.most_common(functions):
        print(f"        {n:7.0f}  {function} ({place})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--bytes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--only", nargs="*", default=["fishplate", "openmpi-ucx", "mpich-ucx"])
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--functions", type=int, default=0)
    o = parser.parse_args()
    build = os.path.abspath(o.build)
    folder = os.path.join(build, "rig")
    os.makedirs(folder, exist_ok=True)
    try:
        blocks = os.path.join(folder, "blocks")
        plugin = f"{build_plugin(folder)},out={blocks}"
        guest.guest_processors = lambda way: "2"  # one processor per rank
        plain = guest.qemu_command_line
        guest.qemu_command_line = lambda *a: [*plain(*a), "-plugin", plugin]
        for lib in compare.list_libraries(build):
            program = compile_ping(lib, folder) if lib.name in o.only else None
            if program:
                count_one(lib, program, folder, build, blocks, o)
    except image.Missing as why:
        print(f"count: skipped: {why}.")
        return 77
    return 0


def count_one(lib, program, folder, build, blocks, o):
    """Counts in a separate guest, so that addresses of ended programs are not counted."""
    job = guest.Job(lib.name, "one", compare.LIMIT,
                    "echo 0 >/proc/sys/kernel/randomize_va_space; "
                    f"env {' '.join(o.set)} {lib.start} {program} {o.rounds} {o.bytes} /run/rig/{lib.name}.maps && "
                    "cat /proc/kallsyms >/run/rig/kallsyms")

    def print_result(done):
        if done.status:
            print(done.output, file=sys.stderr)
            return
        shutil.copy(blocks, f"{machine.share}/{lib.name}.blocks")
        print_counts(lib, *count_by_function(machine.share, lib.name, 2 * o.rounds), o.functions)

    machine = guest.Guest(folder, build, [job], print_result, "emulation")  # QEMU's plugins need emulation
    machine.run()


if __name__ == "__main__":
    sys.exit(main())
