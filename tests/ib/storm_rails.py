#!/usr/bin/env python3
"""Ports go down and up at random while all ranks exchange messages with all others: no message is lost, duplicated, or out of order.

    storm_rails.py --build build --seconds 60 [--seed 7] [--hcas 2] [--only hca1]
    storm_rails.py --build build --seconds 20 --fault 'queue pair error'     with a fault of the fault matrix
    storm_rails.py --build build --seconds 20 --faults                       each fault in turn

One adapter of each node is always up, so that a path exists; --only names the adapters that may go down. The job checks every byte.
A fault of the fault matrix (tests/faults/matrix.py) that a job survives is repeated, each time at another rank. After any other fault
the job must end soon, with an error message. The times between changes follow from the seed, but the state of the traffic at these
times depends on the machine. Exit status 77: this library uses one rail.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))
import cell  # noqa: E402
import matrix  # noqa: E402

SURVIVED = ("port-down",)  # faults that this job survives, since it has another rail


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default="build")
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--rounds", type=int, default=0, help="end after this number of rounds; 0: only by time")
    p.add_argument("--ranks", type=int, default=8)
    p.add_argument("--nodes", type=int, default=4)
    p.add_argument("--hcas", type=int, default=2)
    p.add_argument("--only", action="append", default=[], metavar="hca1", help="adapters that may go down; default: each")
    p.add_argument("--rate", default="", help="of each port, for example 1GB/s; default: as fast as memory")
    p.add_argument("--latency", default="", help="of each link, for example 20us")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the job")
    p.add_argument("--fault", action="append", default=[], metavar="NAME", help="also cause this fault of the fault matrix")
    p.add_argument("--faults", action="store_true", help="run once for each fault of the matrix")
    return p.parse_args()


class Ports:
    """The state of all ports: which are down, and which may go down next."""

    def __init__(self, args, fault):
        self.args, self.changes, self.away = args, 0, set()
        names = args.only or [f"hca{i}" for i in range(args.hcas)]
        # The port of node 1 stays down, so its other adapter must stay up.
        nodes = [n for n in range(args.nodes) if n != 1 or fault.what != "port-down"]
        self.all = [(node, name) for node in nodes for name in names]

    def run_softib(self, env, *words):
        return subprocess.run([os.path.join(self.args.build, "bin", "softib"), *words], env=env, capture_output=True).returncode

    def set_port_state(self, env, port, state):
        if self.run_softib(env, "ctl", "port", state, f"node{port[0]}/{port[1]}") == 0:
            self.changes += 1
            (self.away.add if state == "down" else self.away.discard)(port)

    def may_go_down(self, port):
        return sum(1 for p in self.away if p[0] == port[0]) + 1 < self.args.hcas

    def change_random_port(self, env, rng):
        if self.run_softib(env, "stat") != 0:  # the fabric has no members
            return
        port = rng.choice(self.all)
        if port in self.away:
            self.set_port_state(env, port, "up")
        elif self.may_go_down(port):
            self.set_port_state(env, port, "down")


class Storm(cell.Cell):
    rounds = 4  # the fault is repeated after 1 to 3 rounds, as the seed selects

    def __init__(self, args, fault, seed):
        super().__init__(args.build, fault, matrix.Situation("storm", "", {"FISHPLATE_IB_TIMEOUT": "10"}), seed)
        self.args, self.ranks, self.nodes = args, args.ranks, args.nodes
        self.rng, self.ports, self.env = random.Random(seed), Ports(args, fault), None

    def make_environment(self):
        self.env = super().make_environment()
        # An adapter that is named here becomes a rail even if its port is down while the job starts. With one rail the process would
        # use the adapter's atomic operations, and after a broken connection it would be unknown whether they were executed.
        self.env["FISHPLATE_IB_DEVICES"] = ",".join(f"softib{i}" for i in range(self.args.hcas))
        self.env.update(s.split("=", 1) for s in self.args.set)
        return self.env

    def fabric_settings(self):
        links = "".join(f" {name}={value}" for name, value in (("rate", self.args.rate), ("latency", self.args.latency)) if value)
        return f"hcas={self.args.hcas}{links} {self.fault.fabric}"

    def timeout_seconds(self):
        longest = int(self.args.seconds * 4 + 120)
        return longest if self.fault.timeout == 60 else self.fault.timeout

    def program_command(self):
        return [f"{self.build}/tests/ib/ib_storm_rails", str(self.args.seconds), str(self.args.rounds), str(self.seed)]

    def act_periodically(self):
        self.ports.change_random_port(self.env, self.rng)
        return self.rng.uniform(0.002, 0.1)

    def correct_endings(self):
        return (matrix.COMPLETES,) if self.fault.what in SURVIVED else super().correct_endings()

    def find_explanation(self, err):
        # If the killed rank was in a transfer within its node, the other rank may report the death before mpiexec does.
        died = r"Rank \d+ .*rank \d+ has died"
        return super().find_explanation(err) or (self.fault.what == "kill" and next((s for s in err.splitlines() if re.search(died, s)), None))

    def all_bytes_are_right(self, out):
        return re.fullmatch(r"rounds \d+ wrong 0\s*", out) is not None and self.ports.changes > 0

    def has_wrong_bytes(self, out):
        return re.search(r"wrong [1-9]", out) is not None

    def judge(self, status, ended, left, out, err):
        result = super().judge(status, ended, left, out, err)
        found = re.search(r"rounds (\d+)", out)
        result.rounds = found.group(1) if found else "-"
        return result


def run_storm(args, fault):
    storm = Storm(args, fault, args.seed)
    r = storm.run()
    print(f"{fault.name}: {storm.ports.changes} changes of ports, {r.rounds} rounds, {r.verdict}, {r.seconds:.0f} s, seed {args.seed}",
          r.sentence or "", flush=True)
    if not r.good:
        lines = r.detail.splitlines()  # warnings mention every port
        print("\n".join([line for line in lines if "fishplate warning" not in line][:40] + ["..."] + lines[-10:]), flush=True)
    return r.good


def main():
    args = parse_arguments()
    args.build = os.path.abspath(args.build)
    info = subprocess.run([os.path.join(args.build, "bin", "fishplate"), "info"], capture_output=True, text=True).stdout
    if "IB_STRIPE" not in info:
        print("skipped: this library uses one rail")
        return 77
    wanted = args.fault or ["nothing"]
    faults = [f for f in matrix.FAULTS if args.faults or f.name in wanted]
    unknown = set(wanted) - {f.name for f in matrix.FAULTS}
    if unknown:
        sys.exit(f"storm_rails: no such fault: {', '.join(unknown)}; there are: {', '.join(f.name for f in matrix.FAULTS)}")
    return 0 if all([run_storm(args, f) for f in faults]) else 1


if __name__ == "__main__":
    sys.exit(main())
