#!/usr/bin/env python3
"""The kill points (src/base/kill_point.h): a rank dies or stops at each named point of the library. No job may hang, lose a message or
deliver a wrong byte, and `fishplate why` must show a rank that is stopped.

    points.py --build build                      every point, on shared memory and on virtual nodes: killed, killed with
                                                 -enable-recovery, stopped and continued; and a parent or a child of
                                                 MPI_Comm_spawn, killed with and without -enable-recovery
    points.py --build build --only area_marked   one point

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cell

RANKS = 4
LIMIT = 60  # seconds that mpiexec gives a job
LAYOUTS = {"shm": [], "nodes": ["-vnodes", "2"]}
GPU_LAYOUTS = {"gpu": ["-vnodes", str(RANKS)]} # messages in GPU memory, on softcuda
# Settings of points with this prefix, which no rank passes without them.
SETTINGS = {"write_": {"FISHPLATE_RENDEZVOUS": "rput"}, "xrc_": {"FISHPLATE_IB_RECEIVE": "xrc"},
            "staged_": {"FISHPLATE_RENDEZVOUS": "staged"}}
# Two parents spawn three children, and one parent or one child dies.
PARENTS, CHILDREN = 2, 3
SPAWN_LAYOUTS = {"parents": [], "children": [], "parents-nodes": ["-vnodes", "2"], "children-nodes": ["-vnodes", "2"]}
SPAWN_MODES = ("killed", "recovered")
MODES = ("killed", "recovered", "stopped", "held")
# (count, rank): the rank dies when it passes the point for the count-th time. If the rank does not pass the point that often, the next
# pair is tried.
PLACES = ((3, 1), (1, 1), (1, 0), (1, 2))
SPAWN_PLACES = ((40, 1), (3, 1), (1, 1), (1, 0)) # count 40 is in the middle of the messages between parents and children
# Programs that attack the library: (name, ranks, program, argument).
ATTACKS = (("the folder of published names is exchanged for another one during lookups", 1, "mpi_dyn_names_folder", "100000"),)
REACHED = re.compile(r"kill point \w+: process (\d+)")


def read_kill_points():
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/base/kill_points.def")
    with open(table) as f:
        return re.findall(r"^KILL_POINT_ENTRY\((\w+),", f.read(), re.M)


class Job:
    """One job with a rank that is killed or stopped at a point."""

    def __init__(self, build, layout, mode, place):
        self.build, self.mode = build, mode
        self.rank = int(place.split(":")[2])
        self.mark = f"FAULTS_CELL={os.getpid()}-{place}-{layout}-{mode}"
        self.folder = tempfile.mkdtemp(prefix="points-")
        options = ["-enable-recovery"] if mode == "recovered" else []
        self.layout = layout
        self.spawns = layout in SPAWN_LAYOUTS
        of_children = layout.startswith("children")
        gpu = layout in GPU_LAYOUTS
        program = "faults_spawned" if self.spawns else "faults_staged" if gpu else "faults_points"
        argument = (place if of_children else "") if self.spawns else "hold" if mode == "held" else self.file_path("file")
        self.command = [f"{build}/bin/mpiexec", "-n", str(PARENTS if self.spawns else RANKS), *(SPAWN_LAYOUTS | LAYOUTS | GPU_LAYOUTS)[layout],
                        *options, "-timeout", str(LIMIT), f"{build}/tests/faults/{program}", argument]
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("FISHPLATE_", "SOFTIB_", "PMI_"))}
        stops = mode in ("stopped", "held")
        libraries = f"{build}/lib/kill" + (f":{build}/tests/softcuda/lib" if gpu else "")
        self.env = {**keep, "LD_LIBRARY_PATH": libraries, "SOFTIB": f"{build}/bin/softib", "TMPDIR": self.folder,
                    "FISHPLATE_KILL_AT": "" if of_children else place + (":stop" if stops else "")}
        self.env.update([self.mark.split("=", 1)])
        for prefix, settings in SETTINGS.items():
            self.env.update(settings if place.startswith(prefix) else {})

    def file_path(self, name):
        return os.path.join(self.folder, name)

    def read_file(self, name):
        with open(self.file_path(name), errors="replace") as f:
            return f.read()

    def run_why(self, pid):
        try:
            done = subprocess.run([f"{self.build}/bin/fishplate", "why", "--json", str(pid)], capture_output=True, text=True,
                                  timeout=10, check=False)
        except subprocess.TimeoutExpired:
            return {}
        return json.loads(done.stdout) if done.returncode in (0, 1) else {}

    def why_shows_stop(self, pid):
        """True if `fishplate why` shows the stopped rank and, if that holds a lock, another rank that waits for the lock."""
        ranks = {r["rank"]: r for r in self.run_why(pid).get("ranks", [])}
        if ranks.get(self.rank, {}).get("state") != "stopped":
            return False
        items = [item for r in ranks.values() for item in r.get("items", [])]
        return self.mode != "held" or any(i["kind"] == "lock" and i.get("peer") == self.rank for i in items)

    def wait_for_job(self, job):
        """Waits until the job ends. Continues a stopped rank once `fishplate why` shows it. Returns True if `why` has shown the rank."""
        explained, end = False, time.monotonic() + LIMIT + cell.GRACE
        while job.poll() is None and time.monotonic() < end:
            try:
                job.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
            stopped = REACHED.search(self.read_file("err")) if self.mode in ("stopped", "held") and not explained else None
            if stopped and self.why_shows_stop(job.pid):
                explained = True
                os.kill(int(stopped[1]), signal.SIGCONT)
        return explained

    def run(self):
        try:
            with open(self.file_path("out"), "wb") as o, open(self.file_path("err"), "wb") as e:
                job = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=o, stderr=e, env=self.env,
                                       start_new_session=True)
            explained = self.wait_for_job(job)
            ended = job.poll() is not None
            if not ended:
                job.kill()
                job.wait()
            left = cell.find_processes(self.mark)
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            return self.judge(job.returncode, ended and job.returncode != 124, explained, left)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def judge(self, status, ended, explained, left):
        """Returns (verdict, detail)."""
        out, err = self.read_file("out"), self.read_file("err")
        detail = f"exit status {status}\n{out}{err}"
        victim = ("parent" if self.layout.startswith("parents") else "child" if self.spawns else "rank") + f" {self.rank}"
        finished = out.count("finished")
        others = len(re.findall(rf"^(?!{victim} ).* finished", out, re.M)) # the victim may die in MPI_Finalize
        if "WRONG BYTES" in out:
            return "WRONG", detail
        if not ended:
            return "HANG", detail
        if left:
            return "LEFT", detail
        every = PARENTS + CHILDREN if self.spawns else RANKS
        if not REACHED.search(err):
            return ("not reached", "") if finished == every and status == 0 else ("BAD", detail)
        if self.spawns:
            return self.judge_spawned(status, out, others, detail)
        if self.mode in ("stopped", "held"):
            good = finished == RANKS and status == 0
            return ("ok" if good and explained else "UNEXPLAINED" if good else "BAD"), detail
        if self.mode == "recovered":
            return ("ok" if others == RANKS - 1 else "BAD"), detail
        return ("ok" if re.search(rf"Rank {self.rank} .*signal 9", err) and status != 0 else "BAD"), detail


    def judge_spawned(self, status, out, others, detail):
        if self.mode == "killed":
            return ("ok" if status != 0 else "BAD"), detail
        if "without children" not in out: # the groups were connected: no other process fails
            good = others == PARENTS + CHILDREN - 1 and "reported as dead" not in out
        else: # a death in the last agreement may fail it for the parents alone; they are gone for the children then
            parents = PARENTS - self.layout.startswith("parents")
            good = others in (parents, parents + CHILDREN)
        return ("ok" if good else "BAD"), detail


def list_cells():
    """(point, layout, mode): every cell in which a rank can come to the point."""
    for point in read_kill_points():
        gpu, xrc = point.startswith("staged_"), point.startswith("xrc_")
        layouts = [l for l in (GPU_LAYOUTS if gpu else LAYOUTS) if not xrc or l == "nodes"]
        yield from itertools.product([point], layouts, MODES)
        if not gpu:
            yield from itertools.product([point], [l for l in SPAWN_LAYOUTS if not xrc or l.endswith("nodes")], SPAWN_MODES)


def run_cell(build, layout, mode, point):
    places = SPAWN_PLACES if layout in SPAWN_LAYOUTS else PLACES
    for count, rank in places if mode != "held" else ((1, 1),):
        verdict, detail = Job(build, layout, mode, f"{point}:{count}:{rank}").run()
        if verdict != "not reached":
            break
    return verdict, detail


def print_totals(reached, count, seconds):
    """Prints the number of each verdict, also of verdicts that must not occur."""
    always = ("ok", "not reached", "HANG", "WRONG", "LEFT", "BAD", "UNEXPLAINED")
    names = {"HANG": "hangs", "WRONG": "with wrong bytes or lost messages", "LEFT": "left processes behind",
             "BAD": "ended otherwise than they should", "UNEXPLAINED": "not explained by fishplate why"}
    print(f"{len(read_kill_points())} named points, {len(reached)} reached; {sum(count.values())} cells run in {seconds:.0f} s: "
          + ", ".join(f"{count.get(v, 0)} {names.get(v, v)}" for v in (*always, *sorted(set(count) - set(always)))))


def run_attack(build, name, ranks, program, argument):
    """Runs a program that attacks the library and checks the result itself."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FISHPLATE_", "SOFTIB_", "PMI_"))}
    done = subprocess.run([f"{build}/bin/mpiexec", "-n", str(ranks), "-timeout", "300", f"{build}/tests/mpi/{program}", argument],
                          capture_output=True, text=True, env=env, errors="replace", check=False)
    print(f"Attack: {name}: {'withstood' if done.returncode == 0 else 'SUCCEEDED'}: " + " ".join(done.stdout.split()), flush=True)
    if done.returncode != 0:
        print("    " + "\n    ".join(done.stderr.splitlines()[:20]), flush=True)
    return done.returncode == 0


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default="build", help="the build folder")
    p.add_argument("--only", action="append", default=[], metavar="POINT[/LAYOUT[/MODE]]")
    p.add_argument("--reached", action="store_true", help="a point that is not reached is an error")
    args = p.parse_args()
    build = os.path.abspath(args.build)
    count, began = {}, time.monotonic()
    reached = set()
    for point, layout, mode in list_cells():
        names = (point, f"{point}/{layout}", f"{point}/{layout}/{mode}")
        if args.only and not any(name in args.only for name in names):
            continue
        if mode == "held" and (point not in ("rma_locked", "rma_changed") or layout != "shm"):
            continue
        verdict, detail = run_cell(build, layout, mode, point)
        if verdict == "ok":
            reached.add(point)
        if args.reached and verdict == "not reached":
            verdict, detail = "NOT REACHED", "no rank came to this point"
        count[verdict] = count.get(verdict, 0) + 1
        if verdict not in ("ok", "not reached"):
            print(f"FAILED: {point}/{layout}/{mode}: {verdict}\n    " + "\n    ".join(detail.splitlines()[:40]), flush=True)
    if not count:
        sys.exit("points: no such cell; points: " + " ".join(read_kill_points()))
    print_totals(reached, count, time.monotonic() - began)
    never = [point for point in read_kill_points() if point not in reached]
    if never and not args.only:
        print("Not reached: " + ", ".join(never))
    failed = not set(count) <= {"ok", "not reached"} or not args.only and not all([run_attack(build, *a) for a in ATTACKS])
    sys.exit(1 if failed else 0)


main()
