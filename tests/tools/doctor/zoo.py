#!/usr/bin/env python3
"""Starts the programs of zoo.c, which hang, and checks that `fishplate why` reports the right cause of each.

    zoo.py BIN ZOO [mpiexec options]    BIN: folder of mpiexec and fishplate; ZOO: the program

Each program is queried until the expected diagnosis appears, for a minute at most.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal
import subprocess
import sys
import time

BIN, ZOO, OPTIONS = sys.argv[1], sys.argv[2], sys.argv[3:]
LIMIT = 60


def find_finding(answer, kind):
    return next((f for f in answer["findings"] if f["kind"] == kind), None)


def expect_deadlock(ranks, *texts, behind=()):
    """Expects a deadlock of exactly these ranks, whose text contains all of these pieces."""

    def check(answer):
        found = find_finding(answer, "deadlock")
        return bool(
            found
            and sorted(found["ranks"]) == sorted(ranks)
            and sorted(found["behind"]) == sorted(behind)
            and all(text in found["text"] for text in texts)
            and answer["hangs"]
        )

    return check


def expect_slow(rank, *waiting):
    """Expects that no deadlock is reported, and that the ranks `waiting` wait for `rank`."""

    def check(answer):
        found = find_finding(answer, "slow")
        steady = [r["rank"] for r in answer["ranks"] if r.get("steady")]
        return bool(not answer["hangs"] and found and found["ranks"] == [rank] and steady == list(waiting))

    return check


def expect_missing(rank, *waiting):
    """Expects that exactly the ranks `waiting` wait for `rank` in a collective, in this and all later queries: a rank that polls while
it waits, or tries to connect to the missing rank, is not reported as computing."""
    rights = []

    def check(answer):
        found = find_finding(answer, "missing")
        there = found and found["missing"] == [rank] and sorted(found["waiting"]) == list(waiting)
        right = bool(there and not answer["hangs"])
        if rights and not right:
            sys.exit(f"missing: right at first, but then:\n{json.dumps(answer, indent=1)}")
        rights.append(right)
        rights[:] = [r for r in rights if r]
        return len(rights) >= 4 # on a loaded machine a query takes seconds

    return check


def expect_stopped(answer):
    found = find_finding(answer, "slow")
    states = [r["state"] for r in answer["ranks"]]
    return bool(found and found["ranks"] == [1] and states == ["waits", "stopped"] and "is stopped" in found["text"])


def expect_no_defect(waiting):
    """Expects that this number of ranks waits and no defect is reported."""

    def check(answer):
        steady = sum(bool(r.get("steady")) for r in answer["ranks"])
        return bool(steady == waiting and not answer["hangs"] and not find_finding(answer, "deadlock"))

    return check


def expect_named_object(rank, call, name):
    """Expects that this rank waits in this call on an object with this name."""

    def check(answer):
        it = answer["ranks"][rank]
        return it.get("call") == call and any(name in item.get("name", "") for item in it.get("items", []))

    return check


# name: (number of ranks, check of the diagnosis). Mismatched collectives are not included: the library itself detects them and ends the
# job.
PROGRAMS = {
    "ring 2": (2, expect_deadlock([0, 1], "MPI_Recv(from 1, tag 5, MPI_COMM_WORLD) at zoo.c:", "rank 1 has sent nothing")),
    "ring 3": (3, expect_deadlock([0, 1, 2], "MPI_Recv(from 0, tag 5")),
    "ring 8": (8, expect_deadlock(range(8), "MPI_Recv(from 0, tag 5", "MPI_Recv(from 7, tag 5")),
    "sends": (2, expect_deadlock([0, 1], "MPI_Send(to 1, tag 3, 4096.0 KiB", "rank 1 has posted no receive")),
    "tag": (2, expect_deadlock([0, 1], "1 byte from 0 has arrived, but it has tag 7, not 6")),
    "communicator": (2, expect_deadlock([0, 1], "from 0 has arrived, but it is on", "not on the communicator")),
    "barrier_recv": (4, expect_deadlock([0, 3], "MPI_Barrier(MPI_COMM_WORLD", "rank 3 has not come", behind=[1, 2])),
    "wild_deadlock": (3, expect_deadlock([0, 1], "MPI_Recv(from any rank, tag 4", behind=[2])),
    "finalize": (2, expect_deadlock([0, 1], "MPI_Finalize(MPI_COMM_WORLD", "MPI_Recv(from 0, tag 8")),
    "persistent": (2, expect_deadlock([0, 1], "tag 3")),
    "probe": (2, expect_deadlock([0, 1], "MPI_Probe(from 1, tag 11")),
    "accept": (2, expect_named_object(1, "MPI_Comm_accept", "process that connects to a port")),
    "connect": (2, expect_named_object(1, "MPI_Comm_connect", "process that accepts at a port")),
    "agree": (2, expect_named_object(1, "MPIX_Comm_agree", "")),
    # The holder of the lock is known only if the lock is taken by the processor, not by the adapter.
    **({} if OPTIONS else {"win_lock": (2, expect_deadlock([0, 1], "the lock of a window's memory, which rank 1 holds"))}),
    "split": (6, expect_deadlock([4, 5], "tag 1, MPI_COMM_WORLD", behind=[0, 1, 2, 3])),
    "dup_barrier": (3, expect_deadlock([0, 1], "MPI_Comm_dup(MPI_COMM_WORLD", "MPI_Barrier(MPI_COMM_WORLD", behind=[2])),
    "waitall": (3, expect_deadlock([0, 1], "MPI_Waitall(one of 2 requests: receive from 1, tag 1")),
    "waitany": (3, expect_slow(2, 0, 1)),
    "missing": (3, expect_missing(2, 0, 1)),
    "compute": (2, expect_slow(1, 0)),
    "stopped": (2, expect_stopped),
    "wildcard": (3, expect_no_defect(2)),
}

class HangingProgram:
    def __init__(self, name):
        ranks, self.check = PROGRAMS[name]
        self.name, self.answer = name, ""
        command = [f"{BIN}/mpiexec", "-n", str(ranks), *(o if o != "NODES" else str(min(ranks, 3)) for o in OPTIONS)]
        self.job = subprocess.Popen([*command, ZOO, name.split()[0]], stderr=subprocess.DEVNULL)

    def query_diagnosis(self):
        query = subprocess.run(
            [f"{BIN}/fishplate", "why", "--json", "--apart", "0.1", str(self.job.pid)], capture_output=True, text=True
        )
        self.answer = query.stdout or query.stderr
        return query.returncode in (0, 1) and self.check(json.loads(query.stdout))

    def end_job(self):
        self.job.send_signal(signal.SIGTERM)
        self.job.wait()


def run_programs(names):
    programs = [HangingProgram(name) for name in names]
    try:
        open_ones, until = list(programs), time.monotonic() + LIMIT
        while open_ones and time.monotonic() < until:
            open_ones = [a for a in open_ones if not a.query_diagnosis()]
    finally:
        for a in programs:
            a.end_job()
    for a in open_ones:
        print(f"{a.name}: not the answer that was expected; the last one was:\n{a.answer}")
    return len(open_ones)


def main():
    os.environ["FISHPLATE_SPIN_US"] = "1000"
    names = list(PROGRAMS)
    failed = sum(run_programs(names[i : i + 5]) for i in range(0, len(names), 5))
    print(f"{len(names) - failed} of {len(names)} answers are right")
    return 1 if failed else 0


sys.exit(main())
