"""Wire (b) between two network namespaces, joined by a veth pair: the verbs suite, perftest, multicast; then with
packets lost by nft and with the rate limited by tc tbf. Everything made here is removed here.

SPDX-License-Identifier: Apache-2.0
"""
import atexit
import os
import subprocess

from lab import *

A, B = f"softib-a{os.getpid()}", f"softib-b{os.getpid()}"
ADDR = {A: "10.77.31.1", B: "10.77.31.2"}
FABRIC = f"nodes=2 wire=tcp base=20000 node0: addr={ADDR[A]} node1: addr={ADDR[B]}"
SUITE = ["t_rc_ops", "t_rc_errors", "t_ud", "t_uc", "t_srq", "t_cq", "t_states", "t_order", "t_mr", "t_large", "t_stress"]


def sh(*cmd):
    r = subprocess.run(cmd, capture_output=True, text=True)
    if r.returncode:
        raise Skip(f"{' '.join(cmd)}: {r.stderr.strip()}")


def remove():
    for ns in (A, B):
        subprocess.run(["ip", "netns", "del", ns], capture_output=True)


def network():
    need("ip")
    if os.path.exists(f"/run/netns/{A}"):
        return
    atexit.register(remove)
    for ns in (A, B):
        sh("ip", "netns", "add", ns)
        sh("ip", "-n", ns, "link", "set", "lo", "up")
    sh("ip", "link", "add", "eth0", "netns", A, "type", "veth", "peer", "name", "eth0", "netns", B)
    for ns in (A, B):
        sh("ip", "-n", ns, "addr", "add", f"{ADDR[ns]}/24", "dev", "eth0")
        sh("ip", "-n", ns, "link", "set", "eth0", "up")


def verbs(name, **more):
    settings = env(FABRIC, VERBS_NODES=2, VERBS_NETNS1=f"/run/netns/{B}", **more)
    once(["ip", "netns", "exec", A, os.path.join(VERBS, name)], env=settings)


def test_suite():
    network()
    for t in SUITE:
        verbs(t)


def test_perftest():
    need("ib_write_bw", "ib_send_bw", "ib_read_lat")
    network()
    for cmd in (["ib_write_bw", "-n", 200], ["ib_read_lat", "-n", 200], ["ib_send_bw", "-c", "UD", "-n", 200, "-r", 512],
                ["ib_send_lat", "-n", 200, "-e"]):
        out = pair([*cmd, "-F"], server_env=env(FABRIC, 0), client_env=env(FABRIC, 1),
                   server_prefix=("ip", "netns", "exec", A), client_prefix=("ip", "netns", "exec", B), host=ADDR[A])
        assert "#bytes" in out, out


def test_loss():
    need("nft")
    network()
    for ns in (A, B):
        sh("ip", "netns", "exec", ns, "nft", "add table inet t; add chain inet t in { type filter hook input priority 0; }; "
           "add rule inet t in iif eth0 numgen random mod 100 < 2 counter drop")
    try:
        for t in ("t_rc_ops", "t_stress", "t_srq"):
            verbs(t)
        rules = subprocess.run(["ip", "netns", "exec", A, "nft", "list", "table", "inet", "t"], capture_output=True,
                               text=True).stdout
        assert "packets 0 " not in rules, f"nothing was lost:\n{rules}"
    finally:
        for ns in (A, B):
            sh("ip", "netns", "exec", ns, "nft", "delete table inet t")


def test_rate():
    need("tc")
    network()
    for ns in (A, B):
        sh("tc", "-n", ns, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "400mbit", "burst", "256kb", "latency",
           "20ms")
    try:
        for t in ("t_rc_ops", "t_stress"):
            verbs(t)
    finally:
        for ns in (A, B):
            sh("tc", "-n", ns, "qdisc", "del", "dev", "eth0", "root")


run(collect(globals()))
