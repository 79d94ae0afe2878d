#!/usr/bin/env python3
"""Ports go down and up at random while all ranks exchange messages with all others: nothing is lost, twice, or out of order.

    storm_rails.py --build build --seconds 60 [--seed 7] [--hcas 2] [--only hca1]

Of each node one adapter is always up, so that there is a way; --only names the adapters that may go. The job checks every byte.
The times between changes follow from the seed; what the traffic does then depends on the machine. Exit status 77: this library
uses one rail.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile
import time


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default="build")
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--rounds", type=int, default=0, help="end after so many; 0: by time alone")
    p.add_argument("--ranks", type=int, default=8)
    p.add_argument("--nodes", type=int, default=4)
    p.add_argument("--hcas", type=int, default=2)
    p.add_argument("--only", action="append", default=[], metavar="hca1", help="adapters that may go down; default: each")
    p.add_argument("--rate", default="", help="of each port, for example 1GB/s; default: as fast as memory")
    p.add_argument("--latency", default="", help="of each link, for example 20us")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the job")
    return p.parse_args()


def softib(args, env, *words):
    return subprocess.run([os.path.join(args.build, "bin", "softib"), *words], env=env, capture_output=True, text=True)


class Ports:
    """Which adapters are away, and which may go next."""

    def __init__(self, args, env):
        self.args, self.env, self.changes, self.away = args, env, 0, set()
        names = args.only or [f"hca{i}" for i in range(args.hcas)]
        self.all = [(node, name) for node in range(args.nodes) for name in names]

    def set(self, port, state):
        if softib(self.args, self.env, "ctl", "port", state, f"node{port[0]}/{port[1]}").returncode == 0:
            self.changes += 1
            (self.away.add if state == "down" else self.away.discard)(port)

    def may_go(self, port):
        return sum(1 for p in self.away if p[0] == port[0]) + 1 < self.args.hcas

    def change(self, rng):
        port = rng.choice(self.all)
        if port in self.away:
            self.set(port, "up")
        elif self.may_go(port):
            self.set(port, "down")


def main():
    args = arguments()
    args.build = os.path.abspath(args.build)
    info = subprocess.run([os.path.join(args.build, "bin", "fishplate"), "info"], capture_output=True, text=True).stdout
    if "IB_STRIPE" not in info:
        print("skipped: this library uses one rail")
        return 77
    links = (f" rate={args.rate}" if args.rate else "") + (f" latency={args.latency}" if args.latency else "")
    fabric = f"nodes={args.nodes} hcas={args.hcas} name=rails-{os.getpid()}{links}"
    env = dict(os.environ, SOFTIB_FABRIC=fabric, FISHPLATE_IB_TIMEOUT="10")
    env.update(s.split("=", 1) for s in args.set)
    env.pop("SOFTIB_NODE", None)
    ports, rng = Ports(args, env), random.Random(args.seed)
    limit = int(args.seconds * 4 + 120)
    said = tempfile.TemporaryFile("w+")  # a pipe that nobody reads would fill up and stop the job
    job = subprocess.Popen([os.path.join(args.build, "bin", "mpiexec"), "-n", str(args.ranks), "-vnodes", str(args.nodes),
                            "-timeout", str(limit), os.path.join(args.build, "tests", "ib", "ib_storm_rails"),
                            str(args.seconds), str(args.rounds), str(args.seed)],
                           env=env, stdout=subprocess.PIPE, stderr=said, text=True)
    while job.poll() is None:
        if softib(args, env, "stat").returncode == 0:  # somebody is there
            ports.change(rng)
        time.sleep(rng.uniform(0.002, 0.1))
    out, _ = job.communicate()
    said.seek(0)
    err = said.read()
    words = out.split()
    print(f"{ports.changes} changes of ports, {out.strip() or 'no result'}, exit status {job.returncode}, seed {args.seed}")
    notices = [line for line in err.splitlines() if "rail" not in line and "went down" not in line and "up again" not in line]
    if job.returncode or words[:1] != ["rounds"] or words[3] != "0" or ports.changes == 0:
        print("\n".join(notices[:40] or err.splitlines()[:40]))
        return 1
    return 0


sys.exit(main())
