#!/usr/bin/env python3
"""rig: runs jobs on the kernel's soft-RoCE in a QEMU guest that sees the host's files.

    rig.py prepare                      fetch the kernel, build the initramfs
    rig.py all [NAME...]                the jobs of jobs.txt (or those whose name begins so), in one guest
    rig.py result NAME                  prints the output of that job and exits with its status
    rig.py do DEVICES COMMAND           runs this command; DEVICES: one, hosts or none (guest/devices)

Options before the word: --build DIR (default: build), --limit SECONDS (for `do`; default 120).

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import shutil
import sys

import guest
import image
from guest import SKIPPED


def read_jobs():
    jobs = []
    with open(os.path.join(image.HERE, "jobs.txt")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, where, devices, limit, command = line.split(None, 4)
                jobs.append(guest.Job(name, devices, limit, command.strip(), where == "kvm"))
    return jobs


def make_reporter(results):
    def report_job(job):
        if job.status != SKIPPED:
            print(f"rig: {job.name}: {'passed' if job.status == 0 else f'status {job.status}'} in {job.seconds:.1f} s",
                  flush=True)
        with open(os.path.join(results, job.name), "w") as f:
            f.write(f"{job.status}\n{job.output}")
    return report_job


def run_listed_jobs(folder, build, names):
    jobs = [j for j in read_jobs() if not names or any(j.name.startswith(n) for n in names)]
    if not jobs:
        sys.exit(f"rig: no job is called {' or '.join(names)}; tests/rig/jobs.txt lists them.")
    for job in jobs:
        job.can_wait &= not names
    results = os.path.join(folder, "results")
    shutil.rmtree(results, ignore_errors=True)
    os.makedirs(results)
    guest.run_jobs(folder, build, jobs, make_reporter(results))
    again = [j for j in jobs if j.status not in (0, SKIPPED)]
    if again:  # repeats failed jobs once, as ctest does with other tests; .ci/run lists them
        for job in again:
            print(f"rig: {job.name} failed, and is run again:\n{job.output}", flush=True)
            job.status = None
        guest.run_jobs(folder, build, again, make_reporter(results))
    return 0  # a failed job is reported by its own test


def show_result(folder, name):
    try:
        with open(os.path.join(folder, "results", name)) as f:
            status, output = f.read().split("\n", 1)
    except OSError:
        if os.path.exists(os.path.join(folder, "skipped")):
            with open(os.path.join(folder, "skipped")) as f:
                print(f.read(), end="")
            return SKIPPED
        print(f"rig: the job {name} has not been run; 'rig.py all' runs it.")
        return 1
    print(output, end="")
    return int(status)


def run_own_command(folder, build, devices, limit, command):
    job = guest.Job("job", devices, limit, command)
    guest.run_jobs(folder, build, [job], lambda j: print(j.output, end=""))
    return job.status


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("word", choices=["prepare", "all", "result", "do"])
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    o = parser.parse_args()
    build = os.path.abspath(o.build)
    folder = os.path.join(build, "rig")
    skipped = os.path.join(folder, "skipped")
    if o.word == "result":
        return show_result(folder, o.rest[0])
    os.makedirs(folder, exist_ok=True)
    try:
        if o.word == "prepare":
            image.prepare_files(folder)
            return 0
        if o.word == "all":
            if os.path.exists(skipped):
                os.remove(skipped)
            return run_listed_jobs(folder, build, o.rest)
        return run_own_command(folder, build, o.rest[0], o.limit, " ".join(o.rest[1:]))
    except guest.BootFailed as why:
        print(f"rig: {why}", end="")
        return 1
    except image.Missing as why:
        print(f"rig: skipped: {why}.")
        with open(skipped, "w") as f:
            f.write(f"rig: skipped: {why}.\n")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
