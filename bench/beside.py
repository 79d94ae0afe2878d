"""Lays one benchmark of Fishplate beside the same with the other MPI libraries of this machine: compiles it with each library's
mpicc and runs all in turns. From the turns comes the best of each row and a table with the ratio to the better peer, or a
verdict (verdict.py)."""
# SPDX-License-Identifier: Apache-2.0
import argparse
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
NOISE = 0.02  # two runs of the same program differ by so much
SECONDS = 300  # longer than this is stuck
MAIN = """#include "{name}.h"
#include "../bench.h"
static const struct bench_host host = {{.program = "bench"}};
int main(int argc, char **argv) {{ return bench_{name}_main(&host, argc, argv); }}
"""


def libraries(build, ranks):
    """(name, compiler, launcher, what stands before the program): ours first. Ranks have a core each where there are enough, else
    none of them is bound: each library gets an option for that, since their defaults differ."""
    bind = "core" if ranks <= len(os.sched_getaffinity(0)) else "none"
    found = [("Fishplate", str(build / "bin/mpicc"), [str(build / "bin/mpiexec"), "-bind-to", bind], [])]
    if shutil.which("mpicc.mpich"):
        found.append(("MPICH", "mpicc.mpich", ["mpiexec.mpich", "-bind-to", bind], []))
    if shutil.which("mpicc.openmpi"):
        found.append(("Open MPI", "mpicc.openmpi", ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", bind], []))
    return found


def libraries_softib(build):
    """The same over software InfiniBand. Each rank is a node with an adapter of its own, as with our -vnodes."""
    found = [("Fishplate", str(build / "bin/mpicc"), [str(build / "bin/mpiexec"), "-vnodes", "2", "-bind-to", "core"], [])]
    if shutil.which("mpicc.openmpi"):
        settings = [f"SOFTIB_FABRIC=nodes=2 name=beside-{os.getpid()}", "UCX_TLS=rc,self", "UCX_NET_DEVICES=softib0:1"]
        ucx = ["--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib"]
        found.append(("UCX", "mpicc.openmpi", ["env", *settings, str(build / "bin/softib"), "run", "mpiexec.openmpi", "--allow-run-as-root",
                                               "--oversubscribe", "--bind-to", "core", *ucx],
                      ["sh", "-c", 'SOFTIB_NODE=$OMPI_COMM_WORLD_RANK exec "$0" "$@"']))
    return found


def parser(doc):
    """The options that all such comparisons have."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=HERE.parent / "build", type=Path, help="build directory of Fishplate")
    p.add_argument("--ranks", default=2, type=int)
    p.add_argument("--repeat", default=3, type=int, help="number of times to run all libraries in turn")
    p.add_argument("--limit", default=SECONDS, type=int, help="seconds after which a run is ended and its library left out")
    p.add_argument("--budget", type=float, metavar="S", help="stop after S seconds, and print the results so far")
    p.add_argument("--resume", metavar="FILE", help="store results in this file, and do not repeat runs whose results it has")
    return p


def compiled(name, found, folder):
    main_c = folder / "main.c"
    main_c.write_text(MAIN.format(name=name))
    for library, mpicc, _, _ in found:
        shared = [str(path) for path in [HERE / "transports.c", *sorted(HERE.parent.glob("cli/*.c"))]]
        subprocess.run([mpicc, "-O2", "-D_GNU_SOURCE=", f"-I{HERE.parent}", f"-I{HERE / name}", str(main_c), str(HERE / name / f"{name}.c"), *shared, "-lm", "-o",
                        str(folder / library)], check=True)


def run_once(command, limit):
    """What it printed, and its status; None after the limit. A launcher that is terminated ends its ranks too."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        try:
            out, err = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            run.terminate()
            try:
                run.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                run.kill()
            return b"", b"", None
        return out, err, run.returncode


class Kept:
    """Runs that were made before: with --resume every run is a line of JSON in a file, and is not made again."""

    def __init__(self, file):
        self.file, self.known = file, {}
        for line in open(file, encoding="utf-8") if file and os.path.exists(file) else ():
            entry = json.loads(line)
            self.known[tuple(entry["run"])] = entry

    def find(self, run):
        """(rows, why there are none), or None when the run was not made."""
        entry = self.known.get(run)
        return entry and ({tuple(row): value for *row, value in entry["rows"]}, entry["failure"])

    def add(self, run, rows, failure):
        if self.file:
            with open(self.file, "a", encoding="utf-8") as out:
                print(json.dumps({"run": run, "rows": [[*row, value] for row, value in rows.items()], "failure": failure}), file=out)


def run_library(command, limit, rows):
    """Its rows, and why there are none."""
    out, err, status = run_once(command, limit)
    if status is None:
        return {}, f"did not end in {limit} s"
    if status != 0:
        return {}, f"failed with status {status}: {err.decode(errors='replace').strip()}"
    return rows(out), None


def measure(name, options, arguments, rows):
    """([{library: {row: value}}], {library: why it was left out}): one entry for each turn, in which every library runs once.
    Turns have all orders of the libraries, one after another. rows(text) reads what one run printed. A library that fails is not run again."""
    found = libraries_softib(options.build) if getattr(options, "softib", False) else libraries(options.build, options.ranks)
    orders = list(itertools.permutations(found))
    kept, turns, left_out = Kept(options.resume), [], {}
    end = time.time() + options.budget if options.budget else math.inf
    with tempfile.TemporaryDirectory() as folder:
        compiled(name, found, Path(folder))
        for number in range(options.repeat):
            turn = {library: {} for library, _, _, _ in found if library not in left_out}
            known = all(kept.find((options.ranks, *arguments, number, library)) for library in turn)
            if time.time() > end and not known:
                print(f"stopped after {options.budget:g} s; the same command with --resume goes on", file=sys.stderr)
                break
            for library, _, launcher, before in orders[number % len(orders)]:
                if library in left_out:
                    continue
                run = (options.ranks, *arguments, number, library)
                done = kept.find(run)
                if done is None:
                    print(f"turn {number + 1} of {options.repeat}: {library}", file=sys.stderr)
                    command = [*launcher, "-n", str(options.ranks), *before, f"{folder}/{library}", *arguments]
                    done = run_library(command, min(options.limit, max(1, end - time.time())), rows)
                    if time.time() >= end and done[1]:  # the end of the budget ended it
                        continue
                    kept.add(run, *done)
                turn[library], failure = done
                if failure and library == "Fishplate":
                    sys.exit(f"Fishplate {failure}")
                if failure:
                    left_out[library] = failure
                    print(f"{library} {failure}: it is left out from now on", file=sys.stderr)
            turns.append(turn)
    if not turns:
        sys.exit("no turn was made: there was no time for one")
    return [{library: values for library, values in turn.items() if values} for turn in turns], left_out


def best_of(turns, better):
    """The best of every row: {library: {row: value}}."""
    best = {}
    for turn in turns:
        for library, values in turn.items():
            mine = best.setdefault(library, {})
            for row, value in values.items():
                mine[row] = better(value, mine.get(row, value))
    return best


def table(best, better, form, counts=lambda row: True):
    """Prints the rows with ours/better peer, below 1.0 when we are ahead, and the geometric mean."""
    print(f"{'case':28}" + "".join(f"{library:>12}" for library in best) + f"{'ratio':>8}")
    ratios = []
    for row, ours in best["Fishplate"].items():
        peers = [values[row] for library, values in best.items() if library != "Fishplate"]
        ratio = better(peers) / ours if peers else 0
        ratio = 1 / ratio if peers and better is min else ratio
        if peers and counts(row):
            ratios.append(ratio)
        print(f"{', '.join(row):28}" + "".join(f"{values[row]:12{form}}" for values in best.values()) +
              (f"{ratio:8.2f}" if peers else ""))
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        slower = sum(r > 1 + NOISE for r in ratios)
        print(f"geometric mean of the ratios {mean:.2f}; {slower} of {len(ratios)} rows slower than the better peer")
