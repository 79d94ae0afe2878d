#!/usr/bin/env python3
"""Tests `fishplate check`: its report about this machine, virtual nodes, hosts with agents, and an artificially slow host; its JSON
and its picture can be parsed.

    check.py BIN
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom

BIN = sys.argv[1]
TOOL = f"{BIN}/fishplate"


def run_command(*command, status=(0, 1)):
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    if done.returncode not in status:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def check_this_machine():
    host = json.loads(run_command(TOOL, "check", "--json").stdout)["hosts"]
    if len(host) != 1 or host[0]["processors"] < 1 or host[0]["shm_total"] <= 0 or not host[0]["version"]:
        sys.exit(f"alone: {host}")
    text = run_command(TOOL, "check").stdout
    if "locked memory" not in text or "/dev/shm" not in text or "CMA" not in text:
        sys.exit(f"alone:\n{text}")


def check_hosts(at, command, names):
    """All pairs of hosts are measured, with equal values in both directions; every finding states what to do."""
    page = f"{at}/check.html"
    said = json.loads(run_command(*command, "--json", "--html", page).stdout)
    n = len(said["hosts"])
    if n != 4 or (names and [h["host"] for h in said["hosts"]] != names):
        sys.exit(f"{command}: {said['hosts']}")
    for figures in (said["bandwidth_bytes_per_second"], said["latency_seconds"]):
        for a in range(n):
            for b in range(n):
                if (figures[a][b] > 0) != (a != b) or figures[a][b] != figures[b][a]:
                    sys.exit(f"{command}: {figures}")
    if any(abs(h["clock_ahead_seconds"]) > 1 for h in said["hosts"]):
        sys.exit(f"{command}: one machine has one clock: {said['hosts']}")
    if not all(f["todo"] and f["what"] for f in said["findings"]):
        sys.exit(f"{command}: {said['findings']}")
    if not shutil.which("node"):
        return
    renderer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "render_page.js")
    shown = subprocess.run(["node", renderer, page], capture_output=True, text=True, check=True).stdout
    cells = [r for r in xml.dom.minidom.parseString(shown).getElementsByTagName("rect") if r.getElementsByTagName("title")]
    if len(cells) != n * (n - 1):
        sys.exit(f"{command}: the picture has {len(cells)} cells")


def check_report(at, command, hosts):
    """The page of --report has ports and figures, but no host names and addresses."""
    path = f"{at}/report.md"
    run_command(*command, "--report", path)
    page = open(path).read()
    for part in ("# Fishplate report", "## Hosts", "host-1: Fishplate", "## Settings", "## Measured", "## Findings"):
        if part not in page:
            sys.exit(f"{command}: no '{part}' in\n{page}")
    own = os.uname().nodename
    if f"{own}:" in page or "fe80" in page or f" {own} " in page or os.path.expanduser("~/") in page:
        sys.exit(f"{command}: a name or an address in\n{page}")
    if hosts > 1 and ("| 4194304 |" not in page or "firmware" not in page or "GID index" not in page):
        sys.exit(f"{command}: no figures or ports in\n{page}")
    if (hosts == 2) != ("Two hosts cannot show" in page):
        sys.exit(f"{command}: {hosts} hosts\n{page}")
    if hosts == 1 and "nothing was measured between hosts" not in page:
        sys.exit(f"{command}: one host\n{page}")


def main():
    check_this_machine()
    with tempfile.TemporaryDirectory() as at:
        check_report(at, (TOOL, "check"), 1)
        refused = run_command(TOOL, "check", "--report", f"{at}/none/report.md", status=(2,))
        if "cannot write" not in refused.stderr or refused.stdout:
            sys.exit(f"a report that cannot be written is reported after the measurement:\n{refused.stdout}{refused.stderr}")
    if run_command(TOOL, "check", "--no-such-option", status=(2,)).stdout:
        sys.exit("a wrong option")
    if not os.path.exists(f"{BIN}/../lib/softib/libibverbs.so.1"):
        print("without softib: this machine alone")
        return
    os.environ["FISHPLATE_SPIN_US"] = "0"
    with tempfile.TemporaryDirectory() as at:
        check_hosts(at, [f"{BIN}/mpiexec", "-n", "8", "-vnodes", "4", TOOL, "check"], None)
        check_report(at, [f"{BIN}/mpiexec", "-n", "2", "-vnodes", "2", TOOL, "check"], 2)
        with open(f"{at}/shell", "w") as f:
            f.write('#!/bin/sh\nshift\nexec "$@"\n')
        os.chmod(f"{at}/shell", 0o755)
        # Hosts with agents; all of them are this machine.
        lost = run_command(TOOL, "check", "a,b", "--", "-launcher-exec", "/bin/false", status=range(1, 256))
        if "was lost" not in lost.stderr:
            sys.exit(f"hosts that cannot be reached:\n{lost.stderr}")
        both = json.loads(run_command(TOOL, "check", "--json", "a", "b", "--", "-launcher-exec", f"{at}/shell").stdout)
        if [h["host"] for h in both["hosts"]] != ["a", "b"] or not both["hosts"][0]["own_name"]:
            sys.exit(f"two hosts by agents: {both}")
    print("hosts and pairs of hosts are checked")


main()
