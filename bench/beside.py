"""Lays one benchmark of Fishplate beside the same with the other MPI libraries of this machine: compiles it with each library's
mpicc, runs all in turn several times, keeps the best of each row, and prints a table with the ratio to the better peer."""
# SPDX-License-Identifier: Apache-2.0
import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NOISE = 0.02  # two runs of the same program differ by so much
SECONDS = 300  # longer than this is stuck
MAIN = """#include "{name}.h"
#include "../bench.h"
static const struct bench_host host = {{.program = "bench"}};
int main(int argc, char **argv) {{ return bench_{name}_main(&host, argc, argv); }}
"""


def libraries(build):
    """(name, compiler, launcher, what stands before the program): ours first. Ranks have a core each where there are enough."""
    found = [("Fishplate", str(build / "bin/mpicc"), [str(build / "bin/mpiexec")], [])]
    if shutil.which("mpicc.mpich"):
        found.append(("MPICH", "mpicc.mpich", ["mpiexec.mpich"], []))
    if shutil.which("mpicc.openmpi"):
        found.append(("Open MPI", "mpicc.openmpi", ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe"], []))
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
    p.add_argument("--limit", default=SECONDS, type=int, help="seconds after which a run is ended and left out")
    return p


def compiled(name, found, folder):
    main_c = folder / "main.c"
    main_c.write_text(MAIN.format(name=name))
    for library, mpicc, _, _ in found:
        subprocess.run([mpicc, "-O2", f"-I{HERE / name}", str(main_c), str(HERE / name / f"{name}.c"), str(HERE / "ways.c"), "-o",
                        str(folder / library)], check=True)


def run_once(command, limit):
    """What it printed, and its status; None after the limit. A launcher that is asked to end ends its ranks too."""
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


def measure(name, options, arguments, rows, better):
    """The best of every row: {library: {row: value}}. rows(text) reads what one run printed; better is max or min."""
    found = (libraries_softib if getattr(options, "softib", False) else libraries)(options.build)
    best = {library: {} for library, _, _, _ in found}
    with tempfile.TemporaryDirectory() as folder:
        compiled(name, found, Path(folder))
        for turn in range(options.repeat):
            for library, _, launcher, before in found:
                print(f"turn {turn + 1} of {options.repeat}: {library}", file=sys.stderr)
                command = [*launcher, "-n", str(options.ranks), *before, f"{folder}/{library}", *arguments]
                out, err, status = run_once(command, options.limit)
                if status != 0 and library == "Fishplate":
                    sys.exit(err.decode() if status else f"Fishplate did not end in {options.limit} s")
                if status != 0:
                    why = f"failed with status {status}" if status else f"did not end in {options.limit} s"
                    print(f"{library} {why}: this run is skipped", file=sys.stderr)
                    continue
                for row, value in rows(out).items():
                    best[library][row] = better(value, best[library].get(row, value))
    return {library: values for library, values in best.items() if values}


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
