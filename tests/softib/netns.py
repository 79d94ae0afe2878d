"""wire=tcp between two network namespaces, joined by a veth pair: the verbs suite, perftest, multicast; then with
packets lost by nft and with the rate limited by tc tbf. The test removes everything that it creates.

SPDX-License-Identifier: Apache-2.0
"""
import atexit
import json
import os
import subprocess

from harness import *

A, B = f"softib-a{os.getpid()}", f"softib-b{os.getpid()}"
ADDR = {A: "10.77.31.1", B: "10.77.31.2"}
FABRIC = f"nodes=2 wire=tcp base=20000 node0: addr={ADDR[A]} node1: addr={ADDR[B]}"
SUITE = ["t_rc_ops", "t_rc_errors", "t_ud", "t_uc", "t_srq", "t_cq", "t_states", "t_order", "t_mr", "t_large", "t_stress"]


def run_or_skip(*cmd):
    """Runs a command that configures the network; skips the test if the command fails."""
    r = subprocess.run(cmd, capture_output=True, text=True)
    if r.returncode:
        raise Skip(f"{' '.join(cmd)}: {r.stderr.strip()}")


def remove_namespaces():
    for ns in (A, B):
        subprocess.run(["ip", "netns", "del", ns], capture_output=True)


def create_network():
    require_programs("ip")
    if os.path.exists(f"/run/netns/{A}"):
        return
    atexit.register(remove_namespaces)
    for ns in (A, B):
        run_or_skip("ip", "netns", "add", ns)
        run_or_skip("ip", "-n", ns, "link", "set", "lo", "up")
    run_or_skip("ip", "link", "add", "eth0", "netns", A, "type", "veth", "peer", "name", "eth0", "netns", B)
    for ns in (A, B):
        run_or_skip("ip", "-n", ns, "addr", "add", f"{ADDR[ns]}/24", "dev", "eth0")
        run_or_skip("ip", "-n", ns, "link", "set", "eth0", "up")


def run_verbs_test(name, **more):
    settings = make_env(FABRIC, VERBS_NODES=2, VERBS_NETNS1=f"/run/netns/{B}", **more)
    run_program(["ip", "netns", "exec", A, os.path.join(VERBS, name)], env=settings)


def test_suite():
    create_network()
    for t in SUITE:
        run_verbs_test(t)


def test_perftest():
    require_programs("ib_write_bw", "ib_send_bw", "ib_read_lat")
    create_network()
    for cmd in (["ib_write_bw", "-n", 200], ["ib_read_lat", "-n", 200], ["ib_send_bw", "-c", "UD", "-n", 200, "-r", 512],
                ["ib_send_lat", "-n", 200, "-e"]):
        out = run_server_and_client([*cmd, "-F"], server_env=make_env(FABRIC, 0), client_env=make_env(FABRIC, 1),
                                    server_prefix=("ip", "netns", "exec", A), client_prefix=("ip", "netns", "exec", B), host=ADDR[A])
        assert "#bytes" in out, out


def test_loss():
    require_programs("nft")
    create_network()
    for ns in (A, B):
        run_or_skip("ip", "netns", "exec", ns, "nft", "add table inet t; add chain inet t in { type filter hook input priority 0; }; "
                    "add rule inet t in iif eth0 numgen random mod 100 < 2 counter drop")
    try:
        for t in ("t_rc_ops", "t_stress", "t_srq"):
            run_verbs_test(t)
        rules = subprocess.run(["ip", "netns", "exec", A, "nft", "list", "table", "inet", "t"], capture_output=True,
                               text=True).stdout
        assert "packets 0 " not in rules, f"no packet was dropped:\n{rules}"
    finally:
        for ns in (A, B):
            run_or_skip("ip", "netns", "exec", ns, "nft", "delete table inet t")


def test_rate():
    require_programs("tc")
    create_network()
    for ns in (A, B):
        run_or_skip("tc", "-n", ns, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "400mbit", "burst", "256kb",
                    "latency", "20ms")
    try:
        for t in ("t_rc_ops", "t_stress"):
            run_verbs_test(t)
    finally:
        for ns in (A, B):
            run_or_skip("tc", "-n", ns, "qdisc", "del", "dev", "eth0", "root")


def create_second_network():
    """Creates a second network between the namespaces, and networks that must not be used as rails: a bridge with the same
    address in both namespaces, as container engines create, and a network that exists in one namespace only."""
    create_network()
    run_or_skip("ip", "link", "add", "eth1", "netns", A, "type", "veth", "peer", "name", "eth1", "netns", B)
    for i, ns in enumerate((A, B)):
        run_or_skip("ip", "-n", ns, "addr", "add", f"10.77.32.{i + 1}/24", "dev", "eth1")
        run_or_skip("ip", "-n", ns, "link", "set", "eth1", "up")
        for name, addr in (("docker0", "172.17.0.1/16"), ("lan0", f"10.77.{40 + i}.1/24")):
            run_or_skip("ip", "-n", ns, "link", "add", name, "type", "veth", "peer", "name", name + "-end")
            run_or_skip("ip", "-n", ns, "addr", "add", addr, "dev", name)
            run_or_skip("ip", "-n", ns, "link", "set", name, "up")
            run_or_skip("ip", "-n", ns, "link", "set", name + "-end", "up")
        # Packets to unreachable addresses are dropped, as by a default route, not refused.
        run_or_skip("ip", "-n", ns, "route", "add", "default", "dev", "lan0")


# As at the start of a job: all addresses of every node, the unusable ones first.
CANDIDATES = ("nodes=2 hcas=2 wire=tcp base=21000 "
              "node0: addr=172.17.0.1 addr=10.77.40.1 addr=10.77.31.1 addr=10.77.32.1 "
              "node1: addr=10.77.41.1 addr=172.17.0.1 addr=10.77.32.2 addr=10.77.31.2")


def sent_bytes(ns, dev):
    """Returns the number of bytes that the interface has sent."""
    out = subprocess.run(["ip", "netns", "exec", ns, "cat", f"/sys/class/net/{dev}/statistics/tx_bytes"], capture_output=True,
                         text=True).stdout
    return int(out)


def test_addresses():
    """Unreachable and misleading addresses are skipped and counted, and two networks are two rails."""
    require_programs("ib_write_bw", "ibv_rc_pingpong")
    create_second_network()
    inside = ("ip", "netns", "exec")
    port = free_port()
    member = start_program([*inside, B, "ibv_rc_pingpong", "-p", port], env=make_env(CANDIDATES, 1))
    try:
        wait_until(lambda: port_is_listening(port, member.pid), "the member", member)
        for t in ("t_rc_ops", "t_ud", "t_stress"):
            run_program([*inside, A, os.path.join(VERBS, t)],
                        env=make_env(CANDIDATES, VERBS_NODES=2, VERBS_NETNS1=f"/run/netns/{B}"))
        used = set()
        for hca in (0, 1):
            before = {d: sent_bytes(B, d) for d in ("eth0", "eth1")}
            run_server_and_client(["ib_write_bw", "-F", "-n", 200, "-s", 65536, "-d", f"softib{hca}"],
                                  server_env=make_env(CANDIDATES, 0), client_env=make_env(CANDIDATES, 1),
                                  server_prefix=(*inside, A), client_prefix=(*inside, B), host=ADDR[A])
            used |= {d for d in before if sent_bytes(B, d) - before[d] > 200 * 65536}
        assert used == {"eth0", "eth1"}, f"the two rails used {used}, expected eth0 and eth1"
        stat = subprocess.run([*inside, B, SOFTIB, "stat", "--json"], env=make_env(CANDIDATES, 1), capture_output=True, text=True)
        ports = {p["port"]: p["unreachable"] for p in json.loads(stat.stdout)["ports"]}
        assert ports["node1/hca0/1"] >= 2, ports
    finally:
        member.kill()
        member.communicate()


def test_barrier():
    """Barriers through the switch of node 0, whose packets are UDP datagrams; the network drops a tenth of them."""
    require_programs("nft")
    create_network()
    for ns in (A, B):
        run_or_skip("ip", "netns", "exec", ns, "nft", "add table inet t; add chain inet t in { type filter hook input priority 0; }; "
                    "add rule inet t in iif eth0 numgen random mod 100 < 10 counter drop")
    try:
        run_program(["ip", "netns", "exec", A, os.path.join(BUILD, "tests", "softib", "barrier_hosts")],
                    env=make_env(FABRIC, VERBS_NODES=2, VERBS_NETNS1=f"/run/netns/{B}"))
    finally:
        for ns in (A, B):
            run_or_skip("ip", "netns", "exec", ns, "nft", "delete table inet t")


run_tests(collect_tests(globals()))
