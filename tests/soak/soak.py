#!/usr/bin/env python3
"""Soak: mixed traffic for an hour, with fewer connections than pairs of ranks, so that connections are opened and closed. Fails if the
memory of a rank grows.

    soak.py --build build --seconds 3600 [--svg memory.svg] [--markdown table.md]

Three measures of each rank are sampled sixty times:

- resident: resident memory of the rank without shared memory.
- live: memory allocated by malloc. A leak shows here first, since nothing else changes it once buffers and caches are filled.
- holes: free memory of the heap below blocks in use. Small blocks that the library retains between short-lived buffers of the
program show here.

Memory may grow while buffers and caches fill. In the second half of the run it must be constant: the mean of the last fifth may exceed
the mean of the third fifth by 2 % plus LIMITS. --short has larger limits, for runs of seconds, in which buffers are still filling. Holes
may reach HOLES_MAX at the end. All threads use one malloc arena, since the free end of another arena would count as a hole.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import statistics
import subprocess
import sys

BARS = "▁▂▃▄▅▆▇█"
MEASURES = ("resident", "live", "holes")
LIMITS = {"resident": 1024, "live": 256}  # KiB
SHORT = {"resident": 16384, "live": 512}
HOLES_MAX = 2560  # KiB at the end, mean of all ranks: a single rank may have a block of a pool that grew late


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default="build")
    p.add_argument("--seconds", type=float, default=3600)
    p.add_argument("--ranks", type=int, default=8)
    p.add_argument("--nodes", type=int, default=4)
    p.add_argument("--budget", type=int, default=2, help="FISHPLATE_IB_MAX_CONNECTIONS")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--lines", type=int, default=60, help="samples")
    p.add_argument("--short", action="store_true", help="the limits of a run of seconds")
    p.add_argument("--no-memory", action="store_true", help="check only bytes and connections")
    p.add_argument("--svg", metavar="FILE", help="draw the curves of resident memory to this file")
    p.add_argument("--markdown", metavar="FILE", help="write the table to this file")
    return p.parse_args()


def parse_sample(line):
    """Returns (seconds, rounds, bytes, opened, closed, {measure: [KiB of each rank]})."""
    head, memory = line[5:].split("|")
    seconds, *numbers = head.split()
    kib = [int(k) for k in memory.split()]
    return float(seconds), *map(int, numbers), {m: kib[i::len(MEASURES)] for i, m in enumerate(MEASURES)}


def run_soak(args):
    build = os.path.abspath(args.build)
    command = [f"{build}/bin/mpiexec", "-n", str(args.ranks), "-vnodes", str(args.nodes), "-timeout",
               str(int(args.seconds * 2 + 300)), f"{build}/tests/soak/soak", str(args.seconds), str(args.lines), str(args.seed)]
    env = dict(os.environ, FISHPLATE_IB_MAX_CONNECTIONS=str(args.budget), MALLOC_ARENA_MAX="1")
    samples = []
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as job:
        for line in job.stdout:
            if not line.startswith("soak "):
                print(line, end="", flush=True)
                continue
            s = parse_sample(line)
            samples.append(s)
            words = (f"{s[0]:6.0f} s, {s[1]} rounds, {s[2] / 1e9:.1f} GB right, {s[3]} connections opened, {s[4]} closed; MiB: "
                     + " ".join(f"{k / 1024:.1f}" for k in s[5]["resident"]))
            print(f"\r\033[K{words[:150]}" if sys.stdout.isatty() else words, end="" if sys.stdout.isatty() else "\n", flush=True)
    print()
    return samples, job.returncode


def compute_means(curve):
    """Returns the means of the third and of the last fifth."""
    fifth = max(1, len(curve) // 5)
    return statistics.mean(curve[2 * fifth:3 * fifth] or curve), statistics.mean(curve[-fifth:])


def has_grown(measure, curve, limits):
    middle, last = compute_means(curve)
    return measure in limits and last > middle * 1.02 + limits[measure]


def format_sparkline(curve):
    low, high = min(curve), max(curve)
    return "".join(BARS[(k - low) * (len(BARS) - 1) // max(1, high - low)] for k in curve)


def write_svg(samples, path):
    width, height, left, bottom = 760, 300, 60, 40
    ranks = len(samples[0][5]["resident"])
    end, top = samples[-1][0], max(max(s[5]["resident"]) for s in samples) * 1.1
    lines = []
    for r in range(ranks):
        points = " ".join(f"{left + s[0] / end * (width - left - 10):.1f},"
                          f"{height - bottom - s[5]['resident'][r] / top * (height - bottom - 20):.1f}" for s in samples)
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


def print_curves(samples, args):
    """Prints the curves and returns the names of the measures that grew."""
    limits, bad, rows = SHORT if args.short else LIMITS, [], []
    for r in range(args.ranks):
        cells = []
        for m in MEASURES:
            curve = [s[5][m][r] for s in samples]
            middle, last = compute_means(curve)
            wrong = has_grown(m, curve, limits)
            bad += [f"{m} of rank {r}"] if wrong else []
            cells.append(f"{curve[0] / 1024:.1f} | {last / 1024:.2f} | {(last - middle) / 1024:+.2f}{' **grew**' if wrong else ''}")
            print(f"rank {r} {m:8}: {format_sparkline(curve)} {curve[0] / 1024:.1f} to {last / 1024:.1f} MiB, "
                  f"{(last - middle) / 1024:+.2f} MiB since the middle{'  GREW' if wrong else ''}")
        rows.append(f"| {r} | " + " | ".join(cells) + " |")
    if args.markdown:
        with open(args.markdown, "w") as f:
            f.write("| rank | " + " | ".join(f"{m} at first | last fifth | since the middle" for m in MEASURES) + " |\n"
                    + "|---" * (1 + 3 * len(MEASURES)) + "|\n" + "\n".join(rows) + "\n")
    means = [statistics.mean(s[5]["holes"]) for s in samples]
    last = compute_means(means)[1]
    print(f"holes: {last / 1024:.1f} MiB at the end, mean of all ranks; {HOLES_MAX / 1024:.1f} may be")
    return bad + (["holes in the heap"] if last > HOLES_MAX else [])


def main():
    args = parse_arguments()
    samples, status = run_soak(args)
    if status != 0:
        sys.exit(f"soak: the job ended with status {status} after {len(samples)} samples")
    if len(samples) < 5:
        print("soak: every byte was right; the machine was busy, and there are too few samples to check the memory")
        sys.exit(0)
    bad = print_curves(samples, args)
    seconds, rounds, total, opened, closed, _ = samples[-1]
    print(f"{seconds:.0f} s, {rounds} rounds, {total / 1e9:.1f} GB right, {opened} connections opened, {closed} closed under a "
          f"budget of {args.budget}")
    if args.svg:
        write_svg(samples, args.svg)
    if args.budget and closed == samples[len(samples) // 2][4]:
        sys.exit("soak: no connection was closed in the second half, although FISHPLATE_IB_MAX_CONNECTIONS limits their number")
    if bad and not args.no_memory:
        sys.exit("soak: memory grows: " + ", ".join(bad))


main()
