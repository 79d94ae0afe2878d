"""wire=tcp between two network namespaces, joined by a veth pair: the verbs suite, perftest, multicast; then with
packets lost by nft and with the rate limited by tc tbf. The test removes everything that it creates.

SPDX-License-Identifier: Apache-2.0
"""
import atexit
import json
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


def second_network():
    """A second rail between the two, and networks that must not be used as rails: a bridge with the same address on both, as
container engines create, and a network of only one of them."""
    network()
    sh("ip", "link", "add", "eth1", "netns", A, "type", "veth", "peer", "name", "eth1", "netns", B)
    for i, ns in enumerate((A, B)):
        sh("ip", "-n", ns, "addr", "add", f"10.77.32.{i + 1}/24", "dev", "eth1")
        sh("ip", "-n", ns, "link", "set", "eth1", "up")
        for name, addr in (("docker0", "172.17.0.1/16"), ("lan0", f"10.77.{40 + i}.1/24")):
            sh("ip", "-n", ns, "link", "add", name, "type", "veth", "peer", "name", name + "-end")
            sh("ip", "-n", ns, "addr", "add", addr, "dev", name)
            sh("ip", "-n", ns, "link", "set", name, "up")
            sh("ip", "-n", ns, "link", "set", name + "-end", "up")
        # Packets to unreachable addresses are dropped, as by a default route, not refused.
        sh("ip", "-n", ns, "route", "add", "default", "dev", "lan0")


# The information at job start: every address of every node, the unusable ones first.
CANDIDATES = ("nodes=2 hcas=2 wire=tcp base=21000 "
              "node0: addr=172.17.0.1 addr=10.77.40.1 addr=10.77.31.1 addr=10.77.32.1 "
              "node1: addr=10.77.41.1 addr=172.17.0.1 addr=10.77.32.2 addr=10.77.31.2")


def sent(ns, dev):
    out = subprocess.run(["ip", "netns", "exec", ns, "cat", f"/sys/class/net/{dev}/statistics/tx_bytes"], capture_output=True,
                         text=True).stdout
    return int(out)


def test_addresses():
    """Unreachable and misleading addresses are skipped and counted, and two networks are two rails."""
    need("ib_write_bw", "ibv_rc_pingpong")
    second_network()
    inside = ("ip", "netns", "exec")
    port = free_port()
    member = start([*inside, B, "ibv_rc_pingpong", "-p", port], env=env(CANDIDATES, 1))
    try:
        wait_until(lambda: listening(port, member.pid), "the member", member)
        for t in ("t_rc_ops", "t_ud", "t_stress"):
            once([*inside, A, os.path.join(VERBS, t)],
                 env=env(CANDIDATES, VERBS_NODES=2, VERBS_NETNS1=f"/run/netns/{B}"))
        used = set()
        for hca in (0, 1):
            before = {d: sent(B, d) for d in ("eth0", "eth1")}
            pair(["ib_write_bw", "-F", "-n", 200, "-s", 65536, "-d", f"softib{hca}"], server_env=env(CANDIDATES, 0),
                 client_env=env(CANDIDATES, 1), server_prefix=(*inside, A), client_prefix=(*inside, B), host=ADDR[A])
            used |= {d for d in before if sent(B, d) - before[d] > 200 * 65536}
        assert used == {"eth0", "eth1"}, f"the two rails went over {used}"
        stat = subprocess.run([*inside, B, SOFTIB, "stat", "--json"], env=env(CANDIDATES, 1), capture_output=True, text=True)
        ports = {p["port"]: p["unreachable"] for p in json.loads(stat.stdout)["ports"]}
        assert ports["node1/hca0/1"] >= 2, ports
    finally:
        member.kill()
        member.communicate()


def test_barrier():
    """The switch of node 0, its packets by UDP, a tenth of them lost by the network."""
    need("nft")
    network()
    for ns in (A, B):
        sh("ip", "netns", "exec", ns, "nft", "add table inet t; add chain inet t in { type filter hook input priority 0; }; "
           "add rule inet t in iif eth0 numgen random mod 100 < 10 counter drop")
    try:
        once(["ip", "netns", "exec", A, os.path.join(BUILD, "tests", "softib", "barrier_hosts")],
             env=env(FABRIC, VERBS_NODES=2, VERBS_NETNS1=f"/run/netns/{B}"))
    finally:
        for ns in (A, B):
            sh("ip", "netns", "exec", ns, "nft", "delete table inet t")


run(collect(globals()))
