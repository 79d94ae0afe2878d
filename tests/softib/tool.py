"""The softib tool: its output is correct, its JSON parses, and errors are reported.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import subprocess

from harness import *

FABRIC = f"name=tool{os.getpid()} nodes=2 ports=2 lmc=1"


def run_softib(*args, fabric=FABRIC, **kw):
    return subprocess.run([SOFTIB, *args], env=make_env(fabric, **kw), capture_output=True, text=True, timeout=LIMIT)


def test_help():
    r = run_softib("--help")
    assert r.returncode == 0 and "softib run" in r.stdout and "SOFTIB_FABRIC" in r.stdout
    assert run_softib().returncode == 2 and run_softib("dance").returncode == 2 and run_softib("stat", "--bogus").returncode == 2


def test_info():
    info = json.loads(run_softib("info", "--json").stdout)
    assert info["nodes"] == 2 and len(info["ports"]) == 4 and not info["members"], info
    assert [p["lid"] for p in info["ports"]] == [2, 4, 6, 8]
    assert "node1/hca0/2" in run_softib("info").stdout
    assert info["hub"] == {"there": False, "plugged": 0} and "barrier network" not in run_softib("info").stdout
    assert "barrier network" in run_softib("info", fabric="hub=1").stdout


def test_mistakes():
    r = run_softib("info", fabric="nodes=two")
    assert r.returncode == 2 and "nodes=two" in r.stderr, r.stderr
    r = run_softib("stat")
    assert r.returncode == 1 and "no process" in r.stderr, r.stderr
    r = run_softib("ctl", "port", "down", "node7/hca0/1")
    assert r.returncode == 2 and "node7" in r.stderr, r.stderr
    r = run_softib("info", SOFTIB_NODE=9)
    assert r.returncode == 2 and "SOFTIB_NODE=9" in r.stderr, r.stderr
    r = run_softib("run", "/no/such/program")
    assert r.returncode == 127 and "/no/such/program" in r.stderr, r.stderr


def test_key():
    """A key is new each time, readable only by its owner, and never overwritten."""
    with scratch_folder() as d:
        keys = []
        for name in ("a", "b"):
            path = os.path.join(d, name)
            assert run_softib("key", path).returncode == 0
            assert os.stat(path).st_mode & 0o777 == 0o600
            with open(path) as f:
                keys.append(f.read().strip())
        assert keys[0] != keys[1] and all(len(k) == 32 and int(k, 16) for k in keys), keys
        r = run_softib("key", os.path.join(d, "a"))
        assert r.returncode == 1 and "exists" in r.stderr, r.stderr
        assert run_softib("key").returncode == 2


def test_mistyped_words():
    for words in (["inof"], ["rnu", "true"]):
        p = run_softib(*words)
        assert p.returncode == 2 and f"did you mean {'info' if words[0] == 'inof' else 'run'}?" in p.stderr, p.stderr


def test_counters():
    """A running fabric: its counters count the sent data on both ports."""
    require_programs("ibv_rc_pingpong")
    port = free_port()
    # A third member keeps the fabric alive so that the counters can be read after the exchange.
    member = start_program(["ibv_rc_pingpong", "-p", port], env=make_env(FABRIC, 0))
    try:
        wait_until(lambda: port_is_listening(port, member.pid), "the member", member)
        run_server_and_client(["ibv_rc_pingpong", "-s", 5000, "-n", 100, "-m", 1024],
                              server_env=make_env(FABRIC, 0), client_env=make_env(FABRIC, 1))
        stat = json.loads(run_softib("stat", "--json").stdout)
        by_name = {p["port"]: p for p in stat["ports"]}
        for end in ("node0/hca0/1", "node1/hca0/1"):
            c = by_name[end]
            assert c["tx_bytes"] == c["rx_bytes"] == 500000, c
            assert c["tx_packets"] == 500 and c["state"] == "active", c
        assert by_name["node0/hca0/2"]["tx_bytes"] == 0
        assert len(json.loads(run_softib("info", "--json").stdout)["members"]) == 1
        assert run_softib("ctl", "port", "down", "node1").returncode == 0
        ports = json.loads(run_softib("stat", "--json").stdout)["ports"]
        assert [p["state"] for p in ports] == ["active", "active", "down", "down"], ports
    finally:
        member.kill()
        member.communicate()


def test_sanitizer():
    """A program with the address sanitizer runs."""
    require_programs("cc")
    with scratch_folder() as d:
        source, program = os.path.join(d, "program.c"), os.path.join(d, "program")
        with open(source, "w") as f:
            f.write("#include <stdio.h>\nint main(void) { return puts(\"done\") < 0; }\n")
        if subprocess.run(["cc", "-fsanitize=address", source, "-o", program], capture_output=True).returncode:
            raise Skip("the compiler has no address sanitizer")
        out = run_program([program])
        assert "done" in out, out


run_tests(collect_tests(globals()))
