"""Compares Fishplate with the other MPI libraries of this machine by one benchmark: compiles it with each library's mpicc and runs the
libraries in turn. The result is a table of the best figures with the ratio to the better peer, or a verdict (verdict.py)."""
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
NOISE = 0.02  # relative difference between two runs of the same program
SECONDS = 300  # time limit of a run
MAIN = """#include "{name}.h"
#include "../bench.h"
static const struct bench_host host = {{.program = "bench"}};
int main(int argc, char **argv) {{ return bench_{name}_main(&host, argc, argv); }}
"""


def find_libraries(build, ranks):
    """Returns (name, compiler, launcher, command before the program) of each library, Fishplate first. Ranks are bound to a core each if
    there are enough cores, else not at all: each launcher gets an option for this, since the defaults differ."""
    bind = "core" if ranks <= len(os.sched_getaffinity(0)) else "none"
    found = [("Fishplate", str(build / "bin/mpicc"), [str(build / "bin/mpiexec"), "-bind-to", bind], [])]
    if shutil.which("mpicc.mpich"):
        found.append(("MPICH", "mpicc.mpich", ["mpiexec.mpich", "-bind-to", bind], []))
    if shutil.which("mpicc.openmpi"):
        found.append(("Open MPI", "mpicc.openmpi", ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", bind], []))
    return found


def find_libraries_softib(build):
    """Returns the libraries with options for software InfiniBand. Each rank is a node with its own adapter, as with our -vnodes."""
    found = [("Fishplate", str(build / "bin/mpicc"), [str(build / "bin/mpiexec"), "-vnodes", "2", "-bind-to", "core"], [])]
    if shutil.which("mpicc.openmpi"):
        settings = [f"SOFTIB_FABRIC=nodes=2 name=beside-{os.getpid()}", "UCX_TLS=rc,self", "UCX_NET_DEVICES=softib0:1"]
        ucx = ["--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib"]
        found.append(("UCX", "mpicc.openmpi", ["env", *settings, str(build / "bin/softib"), "run", "mpiexec.openmpi", "--allow-run-as-root",
                                               "--oversubscribe", "--bind-to", "core", *ucx],
                      ["sh", "-c", 'SOFTIB_NODE=$OMPI_COMM_WORLD_RANK exec "$0" "$@"']))
    return found


def make_parser(doc):
    """Returns a parser of the options that all comparisons have."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=HERE.parent / "build", type=Path, help="build directory of Fishplate")
    p.add_argument("--ranks", default=2, type=int)
    p.add_argument("--repeat", default=3, type=int, help="number of times to run all libraries in turn")
    p.add_argument("--limit", default=SECONDS, type=int, help="seconds after which a run is ended and its library left out")
    p.add_argument("--budget", type=float, metavar="S", help="stop after S seconds, and print the results so far")
    p.add_argument("--resume", metavar="FILE", help="store results in this file, and do not repeat runs whose results it has")
    return p


def compile_benchmark(name, found, folder):
    main_c = folder / "main.c"
    main_c.write_text(MAIN.format(name=name))
    for library, mpicc, _, _ in found:
        shared = [str(path) for path in [HERE / "transports.c", *sorted(HERE.parent.glob("cli/*.c"))]]
        subprocess.run([mpicc, "-O2", "-D_GNU_SOURCE=", f"-I{HERE.parent}", f"-I{HERE / name}", str(main_c), str(HERE / name / f"{name}.c"), *shared, "-lm", "-o",
                        str(folder / library)], check=True)


def run_command(command, limit):
    """Returns output, errors and exit status of the command; status None if the limit was exceeded. A launcher that is terminated ends its
    ranks too."""
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


class StoredRuns:
    """Results of earlier runs: with --resume every run is stored as a line of JSON in a file and is not repeated."""

    def __init__(self, file):
        self.file, self.known = file, {}
        for line in open(file, encoding="utf-8") if file and os.path.exists(file) else ():
            entry = json.loads(line)
            self.known[tuple(entry["run"])] = entry

    def find_run(self, run):
        """Returns (rows, error message or None) of an earlier run, or None."""
        entry = self.known.get(run)
        return entry and ({tuple(row): value for *row, value in entry["rows"]}, entry["failure"])

    def append_run(self, run, rows, failure):
        if self.file:
            with open(self.file, "a", encoding="utf-8") as out:
                print(json.dumps({"run": run, "rows": [[*row, value] for row, value in rows.items()], "failure": failure}), file=out)


def run_library(command, limit, rows):
    """Runs the command and returns (rows, error message or None)."""
    out, err, status = run_command(command, limit)
    if status is None:
        return {}, f"did not end in {limit} s"
    if status != 0:
        return {}, f"failed with status {status}: {err.decode(errors='replace').strip()}"
    return rows(out), None


def measure_in_turns(name, options, arguments, rows):
    """Returns ([{library: {row: value}}], {library: reason why it was left out}). The list has one entry for each turn, in which every
    library runs once; successive turns use different orders of the libraries. rows(text) parses the output of a run. A library that fails
    is not run again."""
    found = find_libraries_softib(options.build) if getattr(options, "softib", False) else find_libraries(options.build, options.ranks)
    orders = list(itertools.permutations(found))
    kept, turns, left_out = StoredRuns(options.resume), [], {}
    end = time.time() + options.budget if options.budget else math.inf
    with tempfile.TemporaryDirectory() as folder:
        compile_benchmark(name, found, Path(folder))
        for number in range(options.repeat):
            turn = {library: {} for library, _, _, _ in found if library not in left_out}
            known = all(kept.find_run((options.ranks, *arguments, number, library)) for library in turn)
            if time.time() > end and not known:
                print(f"stopped after {options.budget:g} s; the same command with --resume goes on", file=sys.stderr)
                break
            for library, _, launcher, before in orders[number % len(orders)]:
                if library in left_out:
                    continue
                run = (options.ranks, *arguments, number, library)
                done = kept.find_run(run)
                if done is None:
                    print(f"turn {number + 1} of {options.repeat}: {library}", file=sys.stderr)
                    command = [*launcher, "-n", str(options.ranks), *before, f"{folder}/{library}", *arguments]
                    done = run_library(command, min(options.limit, max(1, end - time.time())), rows)
                    if time.time() >= end and done[1]:  # the run was ended because the time was over
                        continue
                    kept.append_run(run, *done)
                turn[library], failure = done
                if failure and library == "Fishplate":
                    sys.exit(f"Fishplate {failure}")
                if failure:
                    left_out[library] = failure
                    print(f"{library} {failure}: it is left out from now on", file=sys.stderr)
            turns.append(turn)
    if not turns:
        sys.exit("the budget ended before the first turn")
    return [{library: values for library, values in turn.items() if values} for turn in turns], left_out


def best_of(turns, better):
    """Returns the best value of every row: {library: {row: value}}."""
    best = {}
    for turn in turns:
        for library, values in turn.items():
            mine = best.setdefault(library, {})
            for row, value in values.items():
                mine[row] = better(value, mine.get(row, value))
    return best


def print_table(best, better, form, counts=lambda row: True):
    """Prints the rows with the ratio of our time to that of the better peer, below 1.0 if Fishplate is faster, and the geometric mean."""
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
