#!/usr/bin/env python3
"""Tests bench/verdict.py, the time budget of bench/peers, and bench/compare_libraries.py: rows with known differences get the right verdict;
libraries (here: programs that print a number) run in all orders, failing libraries are left out, and stored runs are not repeated.

    bench_verdict.py SOURCE
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import importlib.machinery
import json
import os
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, f"{sys.argv[1]}/bench")
import compare_libraries  # noqa: E402
import verdict  # noqa: E402


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found}, expected {wanted}")


def make_turns(count, rows, plain_noise):
    """Returns simulated results of `count` turns. rows: {name: function of the turn that gives the time of our library A divided by the
time of B}. Library C is always 10 % slower than B. The row "plain" measures no library."""
    chance = random.Random(1)
    turns = []
    for i in range(count):
        machine = chance.uniform(0.5, 1.5)  # speed of the machine, the same for all libraries of a turn
        turn = {"A": {}, "B": {}, "C": {}}
        for name, ratio in rows.items():
            turn["A"][name, "write"] = 1000 * machine / ratio(i)
            turn["B"][name, "write"] = 1000 * machine
            turn["C"][name, "write"] = 900 * machine
        for library in turn:
            turn[library]["plain", "write"] = 1000 * machine * (1 + chance.uniform(-plain_noise, plain_noise))
        turns.append(turn)
    return turns


def compare_turns(turns, better=max):
    rows, limits = verdict.judge_rows(turns, better, lambda row: row[0] == "plain", lambda row: row[1])
    return {row["row"][0]: row for row in rows}, limits, verdict.summarise(rows)


def check_verdicts():
    rows = {"far behind": lambda i: 1.2, "far ahead": lambda i: 0.8, "the same": lambda i: 1 + 0.001 * (i % 2),
            "now and then": lambda i: 1.2 if i % 20 < 12 else 0.5}
    found, limits, total = compare_turns(make_turns(20, rows, 0.02))
    expect("verdicts", {name: row["verdict"] for name, row in found.items()},
           {"far behind": "behind", "far ahead": "ahead", "the same": "equal", "now and then": "equal", "plain": "plain"})
    expect("better peer", {row["peer"] for name, row in found.items() if name != "plain"}, {"B"})
    expect("turns behind", (found["far behind"]["behind_in"], found["now and then"]["behind_in"]), (20, 12))
    expect("ratio", round(found["far behind"]["ratio"], 6), 1.2)
    expect("summary", (total["rows"], total["behind"], total["equal"], total["ahead"], total["unknown"]), (4, 1, 2, 1, 0))
    if not 1 < limits["write", "B"] < 1.04:
        sys.exit(f"spread: {limits}")
    # The row without a library varies more than the difference between the libraries.
    found, limits, _ = compare_turns(make_turns(7, {"behind": lambda i: 1.02}, 0.3))
    expect("a noisy machine", found["behind"]["verdict"], "equal")
    found, _, total = compare_turns(make_turns(5, {"behind": lambda i: 1.2}, 0.01))
    expect("few turns", (found["behind"]["verdict"], total["unknown"]), ("unknown", 1))


def check_times():
    """Microseconds: the lower the better."""
    turns = [{"A": {("x", "us"): 2.0 + i, ("plain", "us"): 1.0 + i}, "B": {("x", "us"): 1.0 + i, ("plain", "us"): 1.0 + i}} for i in range(8)]
    found, limits, _ = compare_turns(turns, min)
    expect("times", (found["x"]["verdict"], found["x"]["behind_in"], limits["us", "B"]), ("behind", 8, 1.0))


def check_decisive():
    expect("turns that must agree", [verdict.turns_to_reject_chance(n) for n in (5, 6, 8, 20)], [6, 6, 8, 15])


def check_turns():
    """Our library and B run in every turn; C fails in its second run and is left out."""
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/log"
        program = f"{folder}/program"
        Path(program).write_text(f'#!/bin/sh\necho "$1" >>{log}\n'
                                 f'[ "$1" != C ] || [ "$(grep -c C {log})" = 1 ] || exit 3\necho \'{{"x": 5}}\'\n')
        os.chmod(program, 0o700)
        compare_libraries.find_libraries = lambda build, ranks: [(name, None, [program, name], []) for name in ("Fishplate", "B", "C")]
        compare_libraries.compile_benchmark = lambda *_: None
        options = argparse.Namespace(build=Path("."), ranks=2, repeat=3, limit=60, budget=None, resume=f"{folder}/kept")
        turns, left_out = compare_libraries.measure_in_turns("io", options, ["--size", "1"], lambda out: {(name, "write"): v for name, v in json.loads(out).items()})
        expect("turns", [sorted(turn) for turn in turns], [["B", "C", "Fishplate"], ["B", "Fishplate"], ["B", "Fishplate"]])
        expect("first of a turn", [list(turn)[0] for turn in turns], ["Fishplate"] * 3)
        expect("left out", "status 3" in left_out["C"], True)
        ran = Path(log).read_text().split()
        expect("orders", ran, ["Fishplate", "B", "C", "Fishplate", "C", "B", "B", "Fishplate"])
        again, _ = compare_libraries.measure_in_turns("io", options, ["--size", "1"], lambda out: {})
        expect("kept", (again, Path(log).read_text().split()), (turns, ran))
        compare_libraries.measure_in_turns("io", options, ["--size", "2"], lambda out: {("x", "write"): 1})
        expect("other arguments are other runs", len(Path(log).read_text().split()) > len(ran), True)
        expect("the best", compare_libraries.best_of(turns, max)["B"], {("x", "write"): 5})


def check_budget():
    """When the budget of bench/peers is spent, all programs that it started are ended, whatever their own limits."""
    peers = importlib.machinery.SourceFileLoader("peers", f"{sys.argv[1]}/bench/peers").load_module()
    peers.BUDGET.end = 0
    sleep = peers.Library("sleep", None, "env", [], [], before=["sh", "-c", "exec sleep 1000"])
    for start in (lambda: peers.measure_init(sleep, 16, 3), lambda: peers.Group(2, ["bcast"], ["8"]).measure(sleep, 0.05)):
        try:
            start()
            sys.exit("a program ran to its end without a budget")
        except RuntimeError as error:
            expect("the budget ended it", "did not end within 0 s" in str(error), True)


check_verdicts()
check_times()
check_budget()
check_decisive()
check_turns()
