#!/usr/bin/env python3
"""compare: runs the benchmark of `fishplate bench` with Fishplate and other libraries over one soft-RoCE device in the guest.

    compare.py [--build DIR] [--repeat N] [--time SECONDS] [--only NAME...] [--set "NAME=VALUE..."]...

The sources in bench/ are compiled with each library's mpicc. The libraries run in turn in one guest, with two ranks and no shared memory
between them. Prints a table in the form of lab/notes/networks.md: the best figure of all runs, and in parentheses the median of the runs,
which shows the variation. Each --set adds a column for Fishplate with these settings.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

import guest
import image

BENCH = os.path.join(os.path.dirname(os.path.dirname(image.HERE)), "bench")
SIZES = "8,1k,64k,1M"
LIMIT = 240
OPENMPI = "mpiexec.openmpi --allow-run-as-root --oversubscribe -n 2 --bind-to core"
# UCX connects by datagrams, and on this device ignores those sent to an IPv4 address: GID 0 is the link-local address.
UCX = "UCX_TLS=rc,self UCX_NET_DEVICES=rxe0:1 UCX_IB_GID_INDEX=0"


class Library:
    def __init__(self, name, title, mpicc, start):
        self.name, self.title, self.mpicc, self.start = name, title, mpicc, start
        self.program = None


def list_libraries(build):
    return [
        Library("fishplate", "Fishplate", f"{build}/bin/mpicc",
                f"{build}/bin/mpiexec -n 2 -vnodes 2 -bind-to core"),
        Library("openib", "Open MPI, btl openib", "mpicc.openmpi",
                OPENMPI + " --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 "
                "--mca btl_openib_if_include rxe0 --mca btl_openib_gid_index 1 "
                "--mca btl_openib_warn_no_device_params_found 0"),
        Library("openmpi-ucx", "Open MPI, UCX", "mpicc.openmpi",
                f"env {UCX} " + OPENMPI + " --mca pml ucx --mca osc ucx --mca btl self"),
        Library("mpich-ucx", "MPICH, UCX", "mpicc.mpich", f"env {UCX} mpiexec.mpich -n 2 -bind-to core"),
    ]


def add_settings(build, number, settings):
    plain = list_libraries(build)[0]
    return Library(f"set{number}", f"Fishplate, {settings}", plain.mpicc, f"env {settings} {plain.start}")


def compile_bench(lib, folder):
    """Compiles the benchmark once for each compiler; all networks use the same program."""
    if not shutil.which(lib.mpicc):
        return False
    os.makedirs(folder, exist_ok=True)
    lib.program = os.path.join(folder, os.path.basename(lib.mpicc))
    cli = os.path.join(os.path.dirname(BENCH), "cli")
    core = [os.path.join(d, f) for d in (BENCH, cli) for f in sorted(os.listdir(d)) if f.endswith(".c")]
    subprocess.run([lib.mpicc, "-std=c11", "-O3", "-Wno-stringop-overflow", "-pthread", "-D_GNU_SOURCE=", "-I" + os.path.dirname(BENCH), *core,
                    os.path.join(BENCH, "programs", "main.c"), "-o", lib.program, "-lm"], check=True)
    return True


def parse_figures(output):
    """Returns {(test, bytes): best figure}; empty if the run failed."""
    at = output.find("{")
    try:
        answer = json.loads(output[at:output.rfind("}") + 1])
    except ValueError:
        return {}
    if answer["wrong"]:
        sys.exit(f"compare: {answer['wrong']} wrong bytes")
    return {(row["test"], row["bytes"]): row["best"] for row in answer["results"]}


def format_number(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def format_cell(values, better):
    return f"{format_number(better(values))} ({format_number(statistics.median(values))})" if values else "—"


def format_table(all_runs, libs):
    rows = ["| | " + " | ".join(lib.title for lib in libs) + " |", "|---" + "|---:" * len(libs) + "|"]
    for test, unit in (("latency", "us"), ("bw", "MB/s")):
        for size, text in ((8, "8 B"), (1024, "1 KiB"), (65536, "64 KiB"), (1 << 20, "1 MiB")):
            better, name = (min, "latency") if test == "latency" else (max, "bandwidth")
            cells = [format_cell(all_runs[lib.name].get((test, size)), better) for lib in libs]
            rows.append(f"| {name} {text}, {unit} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--time", type=float, default=1.0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--verbose", action="store_true")
    o = parser.parse_args()
    build = os.path.abspath(o.build)
    folder = os.path.join(build, "rig")
    libs = [lib for lib in list_libraries(build) if not o.only or lib.name in o.only]
    libs += [add_settings(build, i, settings) for i, settings in enumerate(o.set)]
    libs = [lib for lib in libs if compile_bench(lib, os.path.join(folder, "compare"))]
    jobs = [guest.Job(f"{lib.name}.{i}", "one", LIMIT,
                      f"{lib.start} {lib.program} --json --time {o.time} --sizes {SIZES} latency bw >answer 2>said; "
                      "s=$?; [ $s = 0 ] || cat said; cat answer; exit $s")
            for i in range(o.repeat) for lib in libs]

    all_runs = {lib.name: {} for lib in libs}

    def keep_result(job):
        found = parse_figures(job.output)
        print(f"compare: {job.name}: status {job.status}, {job.seconds:.0f} s", file=sys.stderr)
        if job.status or not found or o.verbose:
            print(job.output, file=sys.stderr)
        for key, value in found.items():
            all_runs[job.name.rsplit(".", 1)[0]].setdefault(key, []).append(value)

    guest.guest_processors = lambda way: "2"  # one processor per rank
    try:
        guest.run_jobs(folder, build, jobs, keep_result)
    except image.Missing as why:
        print(f"compare: skipped: {why}.")
        return 77
    print(format_table(all_runs, libs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
