#!/usr/bin/env python3
"""Prints the figures of softib/README.md: softib/bench/bench.py BUILD_DIR. Pinned; best of several runs, because what else
runs on the machine only makes them worse. Needs perftest.

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import secrets
import socket
import subprocess
import sys

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
SOFTIB = os.path.join(BUILD, "bin", "softib")
os.environ.setdefault("SOFTIB_KEY", secrets.token_hex(16))  # for wire=tcp
RUNS = int(os.environ.get("RUNS", "5"))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listening(port):
    with open("/proc/net/tcp6") as a, open("/proc/net/tcp") as b:
        return any(f":{port:04X} " in line and " 0A " in line for f in (a, b) for line in f)


def pair(cmd, fabric="", cpus=("0", "1"), nodes=("0", "0")):
    port = free_port()
    env = [dict(os.environ, SOFTIB_FABRIC=fabric, SOFTIB_NODE=n) for n in nodes]
    cmd = ["taskset", "-c", None, *cmd, "-F", "-p", str(port)]
    start = lambda i, *more: subprocess.Popen([SOFTIB, "run", *(cpus[i] if a is None else a[i] if isinstance(a, list) else a for a in cmd), *more],
                                              env=env[i], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    server = start(0)
    while not listening(port) and server.poll() is None:
        pass
    client = start(1, "127.0.0.1")
    out = client.communicate(timeout=120)[0]
    server.communicate(timeout=120)
    return out


def numbers(out):
    rows = [line.split() for line in out.splitlines() if re.match(r"\s*\d+\s+\d+\s+[\d.]+", line)]
    return [float(x) for x in rows[-1]] if rows else []


def best(cmd, column, pick, **kw):
    values = [n[column] for n in (numbers(pair(cmd, **kw)) for _ in range(RUNS)) if n]
    return pick(values) if values else float("nan")


def shared_bw():
    """perftest's buffers in files of /dev/shm, which softib maps and stores to directly."""
    files = [f"/dev/shm/softib-bench-{os.getpid()}-{i}" for i in (0, 1)]
    try:
        for name in files:
            with open(name, "wb") as f:
                f.truncate(64 << 20)
        return best(["ib_write_bw", "-s", "1048576", "-n", "1000", "--mmap", files], 2, max)
    finally:
        for name in files:
            os.unlink(name)


def two_ports(seconds):
    """Two pairs of ib_write_bw at once, each over its own port of 1 GB/s."""
    fabric = "name=bench2 nodes=2 ports=2 rate=1GB/s"
    import threading
    total = [0.0, 0.0]

    def one(i):
        n = numbers(pair(["ib_write_bw", "-s", "1048576", "-D", str(seconds), "-i", str(i + 1)], fabric=fabric,
                         nodes=("0", "1"), cpus=("0,1", "0,1")))
        total[i] = n[3] * 1048576 / 1e9 if n else 0

    threads = [threading.Thread(target=one, args=(i,)) for i in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sum(total)


def main():
    mb = 1048576 / 1e9  # perftest's MB/sec are MiB/s
    tcp = f"name=bench nodes=2 wire=tcp base={free_port() % 20000 + 20000} node1: base={free_port() % 20000 + 41000}"
    subprocess.run([SOFTIB, "run", os.path.join(BUILD, "bin", "softib-bench-lat")], check=True)
    say = lambda name, value, unit: print(f"{name:<42}{value:6.2f} {unit}", flush=True)
    big = ["-s", "1048576", "-n", "1000"]
    over_tcp = {"fabric": tcp, "nodes": ("0", "1")}
    say("ib_write_lat 2 B, private memory, typical", best(["ib_write_lat", "-s", "2", "-n", "5000"], 4, min), "us")
    say("ib_send_lat 2 B, typical", best(["ib_send_lat", "-s", "2", "-n", "5000"], 4, min), "us")
    say("ib_write_bw 1 MiB, private memory, peak", best(["ib_write_bw", *big], 2, max) * mb, "GB/s")
    say("ib_write_bw 4 MiB, private memory, peak", best(["ib_write_bw", "-s", "4194304", "-n", "400"], 2, max) * mb, "GB/s")
    say("ib_write_bw 1 MiB, shared memory, peak", shared_bw() * mb, "GB/s")
    say("two ports of 1 GB/s, ib_write_bw together", max(two_ports(3) for _ in range(2)), "GB/s")
    bus = {"fabric": "name=benchb nodes=2 rate=1GB/s bus=1GB/s", "nodes": ("0", "1")}
    say("bus of 1 GB/s, both directions, average", best(["ib_write_bw", "-b", *big], 3, max, **bus) * mb, "GB/s")
    say("ib_send_lat 2 B over TCP, typical", best(["ib_send_lat", "-s", "2", "-n", "5000"], 4, min, **over_tcp), "us")
    say("ib_send_bw 1 MiB over TCP, peak", best(["ib_send_bw", *big], 2, max, **over_tcp) * mb, "GB/s")


main()
