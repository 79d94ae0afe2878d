#!/usr/bin/env python3
"""Soak: mixed traffic for an hour, connections opened and closed under a budget. Fails when the memory of a rank grows.

    soak.py --build build --seconds 3600 [--svg memory.svg]

Memory is what a rank has for itself (resident without shared), sampled sixty times. It may grow while buffers and caches fill.
From the middle of the run on it must be flat: the mean of the last fifth may exceed the mean of the third fifth by 2 % and
--tolerance MiB, no more. A run of seconds is all warm-up and needs a larger one.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import statistics
import subprocess
import sys

BARS = "▁▂▃▄▅▆▇█"


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default="build")
    p.add_argument("--seconds", type=float, default=3600)
    p.add_argument("--ranks", type=int, default=8)
    p.add_argument("--nodes", type=int, default=4)
    p.add_argument("--budget", type=int, default=2, help="FISHPLATE_IB_MAX_CONNECTIONS")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--lines", type=int, default=60, help="samples")
    p.add_argument("--tolerance", type=float, default=1, metavar="MIB")
    p.add_argument("--svg", metavar="FILE", help="draw the curves there")
    return p.parse_args()


def run(args):
    """The samples: (seconds, rounds, bytes, opened, closed, [KiB of each rank])."""
    build = os.path.abspath(args.build)
    command = [f"{build}/bin/mpiexec", "-n", str(args.ranks), "-vnodes", str(args.nodes), "-timeout",
               str(int(args.seconds * 2 + 300)), f"{build}/tests/soak/soak", str(args.seconds), str(args.lines), str(args.seed)]
    env = dict(os.environ, FISHPLATE_IB_MAX_CONNECTIONS=str(args.budget))
    samples = []
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as job:
        for line in job.stdout:
            if not line.startswith("soak "):
                print(line, end="", flush=True)
                continue
            head, memory = line[5:].split("|")
            seconds, *numbers = head.split()
            samples.append((float(seconds), *map(int, numbers), [int(k) for k in memory.split()]))
            s = samples[-1]
            words = (f"{s[0]:6.0f} s, {s[1]} rounds, {s[2] / 1e9:.1f} GB right, {s[3]} connections opened, {s[4]} closed; MiB: "
                     + " ".join(f"{k / 1024:.1f}" for k in s[5]))
            print(f"\r\033[K{words[:150]}" if sys.stdout.isatty() else words, end="" if sys.stdout.isatty() else "\n", flush=True)
    print()
    return samples, job.returncode


def verdict(curve, tolerance):
    """(grew, middle, last): means of the third and the last fifth."""
    fifth = max(1, len(curve) // 5)
    middle = statistics.mean(curve[2 * fifth:3 * fifth] or curve)
    last = statistics.mean(curve[-fifth:])
    return last > middle * 1.02 + tolerance * 1024, middle, last


def sparkline(curve):
    low, high = min(curve), max(curve)
    return "".join(BARS[(k - low) * (len(BARS) - 1) // max(1, high - low)] for k in curve)


def svg(samples, path):
    width, height, left, bottom = 760, 300, 60, 40
    ranks = len(samples[0][5])
    end, top = samples[-1][0], max(max(s[5]) for s in samples) * 1.1
    lines = []
    for r in range(ranks):
        points = " ".join(f"{left + s[0] / end * (width - left - 10):.1f},{height - bottom - s[5][r] / top * (height - bottom - 20):.1f}"
                          for s in samples)
        lines.append(f'<polyline fill="none" stroke="hsl({r * 360 // ranks},60%,45%)" points="{points}"/>')
    for i in range(5):
        y = height - bottom - i / 4 * (height - bottom - 20)
        lines.append(f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{top * i / 4 / 1024:.0f}</text>')
        x = left + i / 4 * (width - left - 10)
        lines.append(f'<text x="{x:.0f}" y="{height - bottom + 18}" text-anchor="middle">{end * i / 4:.0f}</text>')
    with open(path, "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">\n'
                f'<rect width="100%" height="100%" fill="white"/>\n'
                f'<path d="M{left},20V{height - bottom}H{width - 10}" stroke="black" fill="none"/>\n' + "\n".join(lines)
                + f'\n<text x="{width / 2}" y="{height - 6}" text-anchor="middle">seconds</text>\n'
                f'<text x="{left}" y="14">MiB that each of {ranks} ranks has for itself</text>\n</svg>\n')


def main():
    args = arguments()
    samples, status = run(args)
    if status != 0:
        sys.exit(f"soak: the job ended with status {status} after {len(samples)} samples")
    if len(samples) < 5:
        print("soak: every byte was right; too few samples to judge memory by: the machine was busy")
        sys.exit(0)
    grown = False
    for r in range(args.ranks):
        curve = [s[5][r] for s in samples]
        grew, middle, last = verdict(curve, args.tolerance)
        grown |= grew
        print(f"rank {r}: {sparkline(curve)} {curve[0] / 1024:.1f} to {last / 1024:.1f} MiB, "
              f"{(last - middle) / 1024:+.2f} MiB since the middle{'  GREW' if grew else ''}")
    seconds, rounds, total, opened, closed, _ = samples[-1]
    print(f"{seconds:.0f} s, {rounds} rounds, {total / 1e9:.1f} GB right, {opened} connections opened, {closed} closed under a "
          f"budget of {args.budget}")
    if args.svg:
        svg(samples, args.svg)
    if args.budget and closed == samples[len(samples) // 2][4]:
        sys.exit("soak: no connection was closed in the second half: the budget is not kept any more")
    sys.exit("soak: memory grows" if grown else 0)


main()
