#!/usr/bin/env python3
"""fresh: runs the README's commands as a new user would, on a bare Debian with only `git` and `make`.

    fresh.py [--folder DIR] [--keep] [--compare BUILD] [COMMAND...]

The commands are those of the README's section "Begin", or the arguments (for example "make test" alone). Then the README's first programs
are compiled and run. The build must have tests of every part, which an incomplete build has not. With --compare, the libraries must have
the same bytes as those of BUILD, which was built from the same commit in another folder: builds are reproducible. The commit that is
checked out is cloned. Exits 77 with the reason if the bare Debian cannot be created.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import root

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
SKIPPED = 77
EVERY = 10  # seconds between progress lines
# One test of each part that an incomplete build would lack.
TESTS = (r"^(examples/|unit/net/|tools/info$|mpi/p2p/modes/|softib.shm.t_rc_ops$|softib.programs.examples$|ib/port$|"
         r"fortran/f08_basic/2$)")
PARTS = {"softib": r"softib\.", "InfiniBand": r"ib/", "virtual nodes": r"mpi/.*/nodes-", "Fortran": r"fortran/"}

LIBRARIES = ["lib/libmpi_abi.so.1.0", "lib/softib/libibverbs.so.1"]


class Failed(Exception):
    pass


class Runner:
    def __init__(self, folder):
        self.log = os.path.join(folder, "log")

    def __call__(self, name, command):
        """Runs a command with its output in the log and a line every few seconds; returns the output."""
        started = said = time.monotonic()
        print(f"fresh: {name}", flush=True)
        with open(self.log, "wb") as log:
            job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            try:
                while job.poll() is None:
                    time.sleep(0.2)
                    if time.monotonic() - said >= EVERY:
                        said = time.monotonic()
                        print(f"fresh: {name}: {said - started:.0f} s: {self.last_lines(1)[0][:90]}", flush=True)
            finally:
                if job.poll() is None:
                    job.kill()  # unshare then ends all processes in the root
                    job.wait()
        if job.returncode:
            lines = "\n".join(self.last_lines(60))
            raise Failed(f"'{name}' failed with status {job.returncode} after {time.monotonic() - started:.0f} s:\n{lines}")
        print(f"fresh: {name}: done in {time.monotonic() - started:.0f} s", flush=True)
        with open(self.log, errors="replace") as f:
            return f.read()

    def last_lines(self, count):
        with open(self.log, errors="replace") as f:
            return f.read().splitlines()[-count:] or [""]


def readme_commands(title):
    """Returns the commands of a section of the README, without their comments."""
    with open(os.path.join(SOURCE, "README.md")) as f:
        section = re.search(rf"^## {title}\n(.*?)^## ", f.read(), re.M | re.S)
    block = re.search(r"^```sh\n(.*?)^```", section[1], re.M | re.S)
    return [re.sub(r"\s+#.*", "", line).strip() for line in block[1].splitlines()]


def run_as_new_user(machine, run, commands):
    # In CI a failed test is repeated once and listed, as in the other steps.
    variables = ["TESTS=" + TESTS] + (["CI=true"] if os.environ.get("CI") else [])

    def run_typed(command):
        return run(command, machine.enter([*variables, "sh", "-c", "cd /root/fishplate && " + command]))
    for command in commands:
        output = run_typed(command)
        for line in re.findall(r"^(?:transport: .*|\d+% tests passed.*|configure.*left out.*)$", output, re.M):
            print(f"fresh:     {line}", flush=True)
    for command in readme_commands("Compile and run your program"):
        run_typed(command)
    known = run_typed("ctest --test-dir build --show-only")
    for part, pattern in PARTS.items():
        if not re.search(rf"Test +#\d+: {pattern}", known):
            raise Failed(f"this build has no tests of {part}: it was built without")
    print(f"fresh: {re.search(r'Total Tests: (.*)', known)[1]} tests, of all parts", flush=True)


def compare_libraries(machine, run, build):
    """Fails when a library differs from the one that the same compiler made of the same commit in another folder."""
    def compiler_version(command):
        return run("gcc -dumpfullversion", command).strip()
    ours, theirs = compiler_version(machine.enter(["gcc", "-dumpfullversion"])), compiler_version(["gcc", "-dumpfullversion"])
    if ours != theirs:
        print(f"fresh: {build} is not compared: it was made by gcc {theirs}, this one by gcc {ours}", flush=True)
        return
    for name in LIBRARIES:
        with open(os.path.join(machine.path, "root/fishplate/build", name), "rb") as one, \
             open(os.path.join(build, name), "rb") as two:
            if one.read() != two.read():
                raise Failed(f"{name} differs from the one in {build}, which was built from the same commit")
    print(f"fresh: the libraries are the same bytes as those in {build}", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--folder", default="build/fresh")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--compare")
    parser.add_argument("commands", nargs="*")
    o = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = os.path.abspath(o.folder)
    os.makedirs(folder, exist_ok=True)
    run = Runner(folder)
    machine = None
    try:
        machine = root.Root(folder, run)
        machine.make(["git", "make"])
        shutil.rmtree(os.path.join(machine.path, "root", "fishplate"), ignore_errors=True)
        run("git clone", ["git", "clone", "-q", "--no-hardlinks", SOURCE, os.path.join(machine.path, "root", "fishplate")])
        run_as_new_user(machine, run, o.commands or readme_commands("Begin"))
        if o.compare:
            compare_libraries(machine, run, os.path.abspath(o.compare))
    except root.Missing as why:
        print(f"fresh: skipped: {why}.")
        return SKIPPED
    except Failed as why:
        print(f"fresh: {why}")
        return 1
    finally:
        if machine and not o.keep:
            machine.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
