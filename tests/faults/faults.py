#!/usr/bin/env python3
"""The fault matrix: every fault in every situation. No job may hang, deliver a wrong byte, leave processes or files behind, or end without
an error message that explains the end.

    faults.py --build build                         all cells
    faults.py --build build --only 'rank killed'    one fault, or one cell: 'rank killed/rput'
    faults.py --build build --sample 12 --seed 3    12 cells, chosen by the seed

The seed selects the rank that causes the fault, the round or the delay. The same seed repeats the same run.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import random
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import cell
import matrix

SHORT = {matrix.COMPLETES: "ok", matrix.ENDS: "end"}


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default="build", help="the build folder")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", action="append", default=[], metavar="FAULT[/SITUATION]")
    p.add_argument("--sample", type=int, metavar="N", help="N cells, chosen by the seed")
    p.add_argument("--repeat", type=int, default=1, metavar="N", help="N times, with seeds that follow each other")
    p.add_argument("--jobs", type=int, default=1, help="cells that run at the same time")
    p.add_argument("--markdown", metavar="FILE", help="write the table there too")
    return p.parse_args()


def choose_cells(args):
    cells = [(f, s) for f in matrix.FAULTS for s in matrix.SITUATIONS]
    if args.only:
        cells = [(f, s) for f, s in cells if f.name in args.only or f"{f.name}/{s.name}" in args.only]
    if args.sample:
        cells = random.Random(args.seed).sample(cells, min(args.sample, len(cells)))
    if not cells:
        sys.exit(f"faults: no such cell; faults: {', '.join(f.name for f in matrix.FAULTS)}; "
                 f"situations: {', '.join(s.name for s in matrix.SITUATIONS)}")
    return [(f, s, args.seed + i) for i in range(args.repeat) for f, s in cells]


def print_progress(done, total, began, words):
    line = f"[{done}/{total}, {time.monotonic() - began:.0f} s] {words}"
    if sys.stdout.isatty():
        print(f"\r\033[K{line[:110]}", end="", flush=True)
    elif done % 20 == 0 or done == total:
        print(line, flush=True)


def run_all(args, cells):
    """Returns {(fault, situation): [result, ...]}; prints bad results at once."""
    results, began, done = {}, time.monotonic(), 0
    build = os.path.abspath(args.build)
    with ThreadPoolExecutor(args.jobs) as pool:
        for (f, s, seed), r in zip(cells, pool.map(lambda c: cell.Cell(build, *c).run(), cells)):
            done += 1
            results.setdefault((f.name, s.name), []).append(r)
            print_progress(done, len(cells), began, f"{f.name} / {s.name}: {r.verdict}")
            if not r.good:
                print(f"\nFAILED: {f.name}/{s.name} with --seed {seed}: {r.verdict}\n    "
                      + "\n    ".join(r.detail.splitlines()[:40]), flush=True)
    return results, time.monotonic() - began


def format_table_cell(results):
    """Returns the text of a table cell; the runs with different seeds may have ended differently."""
    bad = [r.verdict for r in results if not r.good]
    return bad[0] if bad else "/".join(sorted({SHORT.get(r.verdict, r.verdict) for r in results}, reverse=True))


def format_table(results):
    faults = [f.name for f in matrix.FAULTS if any(k[0] == f.name for k in results)]
    situations = [s.name for s in matrix.SITUATIONS if any(k[1] == s.name for k in results)]
    rows = [["", *situations]]
    for f in faults:
        rows.append([f, *[format_table_cell(results[f, s]) if (f, s) in results else "" for s in situations]])
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(text.ljust(w) for text, w in zip(row, width)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("---" for _ in width) + "|", *lines[1:]])


def list_explanations(results):
    """Returns the error messages of the jobs that ended: each once per fault, ignoring numbers and names."""
    found = {}
    for (fault, _), several in results.items():
        for r in several:
            if r.sentence:
                text = re.sub(r"\(rank \d+ on [^)]*\)", "", r.sentence)
                found.setdefault((fault, re.sub(r"\d+", "N", text)), r.sentence)
    return "\n".join(f"- {fault}: `{text.strip()}`" for (fault, _), text in found.items())


def format_report(results, seconds, seed):
    every = [r for several in results.values() for r in several]
    count = {v: sum(r.verdict == v for r in every) for v in ("completes", "ends", "HANG", "WRONG", "LEFT", "MUTE", "BAD", "-")}
    return (f"{format_table(results)}\n\n{len(every)} jobs in {seconds:.0f} s, seed {seed}: {count['completes']} completed with every byte "
            f"right, {count['ends']} ended with a sentence, {count['-']} not possible here; {count['HANG']} hangs, "
            f"{count['WRONG']} with wrong bytes, {count['LEFT']} left something behind, {count['MUTE']} ended without an "
            f"explanation, {count['BAD']} ended otherwise than they should.\n\n{list_explanations(results)}\n"), all(r.good for r in every)


def main():
    args = parse_arguments()
    if subprocess.run([f"{args.build}/bin/mpiexec", "--version"], capture_output=True).returncode:
        sys.exit(f"faults: {args.build}/bin/mpiexec does not run; build first")
    results, seconds = run_all(args, choose_cells(args))
    text, good = format_report(results, seconds, args.seed)
    print("\n" + text)
    if args.markdown:
        with open(args.markdown, "w") as f:
            f.write(text)
    sys.exit(0 if good else 1)


main()
