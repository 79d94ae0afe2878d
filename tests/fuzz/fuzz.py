#!/usr/bin/env python3
"""Runs every fuzz target for some seconds or for a number of inputs, with a progress line; keeps the input of a failure.

    fuzz.py --build build-fuzz --seconds 60 [--only link ...]
    fuzz.py --build build --runs 10000000 --record FILE

--record appends a line to FILE as each target ends: target, inputs, seconds of processor time, seconds, result.

New inputs that libFuzzer finds interesting go to FOLDER/fuzz-corpus/TARGET of the build; `--merge` adds those that reach new
code to the kept corpus beside this file. The kept corpus stays under 500 KiB.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import re
import resource
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default="build-fuzz")
    p.add_argument("--seconds", type=int, default=60, help="for each target")
    p.add_argument("--runs", type=int, default=0, help="inputs for each target, in place of --seconds")
    p.add_argument("--record", help="file that gets a line of figures for each target")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--merge", action="store_true", help="needs libFuzzer")
    return p.parse_args()


def find_targets(args):
    folder = os.path.join(os.path.abspath(args.build), "tests/fuzz")
    names = sorted(n[5:] for n in os.listdir(folder) if n.startswith("fuzz_") and os.access(os.path.join(folder, n), os.X_OK))
    return folder, [n for n in names if not args.only or n in args.only]


def run_target(folder, name, args):
    """Runs a target and returns (inputs, processor seconds, passed). Prints the target's messages if it fails."""
    kept, found = os.path.join(HERE, "corpus", name), os.path.join(folder, "corpus", name)
    os.makedirs(found, exist_ok=True)
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0", UBSAN_OPTIONS="print_stacktrace=1")
    limit = f"-runs={args.runs}" if args.runs else f"-max_total_time={args.seconds}"
    command = [os.path.join(folder, "fuzz_" + name), limit, f"-seed={args.seed}", "-max_len=2048", "-rss_limit_mb=4096",
               f"-timeout={3600 if args.runs else 60}", "-print_final_stats=1", found, kept]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, errors="replace")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    counts = re.findall(r"Done (\d+) runs|number_of_executed_units: (\d+)", done.stderr)
    runs = max((int(a or b) for a, b in counts), default=0)
    if done.returncode != 0:
        print(f"\n{name} FAILED; the input is in {folder}\n{done.stderr[-4000:]}")
    elif args.merge:
        subprocess.run([command[0], "-merge=1", kept, found], cwd=folder, env=env, check=True, capture_output=True)
    return runs, processor, done.returncode == 0


def append_record(args, name, runs, processor, seconds, passed):
    """Appends the line of a target as soon as the target has ended, so that an interrupted run leaves its figures."""
    if args.record:
        with open(args.record, "a", encoding="utf-8") as f:
            f.write(f"{name} {runs} {processor:.0f} {seconds:.0f} {'passed' if passed else 'FAILED'}\n")


def main():
    args = parse_arguments()
    folder, names = find_targets(args)
    if not names:
        sys.exit(f"fuzz: no targets in {folder}; build fuzz_targets first")
    total, failed = 0, []
    for i, name in enumerate(names):
        limit = f"{args.runs} inputs" if args.runs else f"{args.seconds} s"
        print(f"[{i + 1}/{len(names)}] {name}: {limit} ...", end="", flush=True)
        began = time.monotonic()
        runs, processor, passed = run_target(folder, name, args)
        append_record(args, name, runs, processor, time.monotonic() - began, passed)
        total += runs
        failed += [] if passed else [name]
        print(f" {runs} inputs, {'no failure' if passed else 'FAILED'}", flush=True)
    print(f"{total} inputs to {len(names)} targets; {'failed: ' + ', '.join(failed) if failed else 'no failure'}")
    sys.exit(1 if failed else 0)


main()
