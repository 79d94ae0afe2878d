#!/usr/bin/env python3
"""`fishplate ps` on a running job and `fishplate prof` after it name the slow node of a fabric, and report nothing on a fabric with equal
links. The rates of the links are far below those of memory, so that the load of the machine does not matter.

    links.py BIN LINKS
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import sys
import tempfile
import time

BIN, LINKS = sys.argv[1:3]
LIMIT = 60
SLOW, RANKS = 2, 4
# A sanitizer's library must be loaded first; the program loads it after the preloaded profiler.
SANITIZED = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


def run_ps(job):
    """Returns the report of `fishplate ps` about the job that runs below this process, or None."""
    try:
        children = open(f"/proc/{job.pid}/task/{job.pid}/children").read().split()
    except OSError:
        children = []
    answer_of_ps = subprocess.run([f"{BIN}/fishplate", "ps", "--json"], capture_output=True, text=True, check=True)
    jobs = json.loads(answer_of_ps.stdout)["jobs"]
    return next((j for j in jobs if any(j["job"].startswith(f"fp{c}-") for c in children)), None)


def wait_for_links(job, rounds):
    """Waits until the last round is over and all ranks have published all their links. Rank 0 waits for input and publishes nothing
new. The state of the ranks is not enough: on a busy machine all others may also wait between two messages."""
    until, answer = time.monotonic() + LIMIT, None
    while time.monotonic() < until and job.poll() is None:
        answer = run_ps(job)
        if answer and sum(r["links_known"] for r in answer["ranks"]) >= RANKS * (RANKS - 1) - (RANKS - 1):
            waiting = [r["rank"] for r in answer["ranks"] if r["state"] == "waits"]
            counts = [link["messages"] for link in answer["slowest_links"] if 0 not in (link["from"], link["to"])]
            if waiting == [1, 2, 3] and all(n >= rounds - 1 for n in counts):
                return answer
    sys.exit(f"fishplate ps: not the right answer, but {json.dumps(answer, indent=1)}")


def run_links(fabric, rounds):
    """Returns the output of ps (as JSON and as text) and the report of prof."""
    with tempfile.TemporaryDirectory() as at:
        report = f"{at}/report.json"
        command = [f"{BIN}/fishplate", "prof", "--quiet", "--json", report, "--", f"{BIN}/mpiexec", "-n", str(RANKS)]
        job = subprocess.Popen(
            [*command, "-vnodes", str(RANKS), LINKS, str(1 << 19), str(rounds)],
            stdin=subprocess.PIPE,
            env={**os.environ, **SANITIZED, "SOFTIB_FABRIC": fabric},
        )
        answer = wait_for_links(job, rounds)
        text = subprocess.run([f"{BIN}/fishplate", "ps", str(job.pid)], capture_output=True, text=True).stdout
        job.communicate(b"\n")
        if job.returncode != 0:
            sys.exit(f"the job ended with {job.returncode}")
        with open(report) as f:
            return answer, text, json.load(f)


def expect(right, what, shown):
    if not right:
        sys.exit(f"{what}:\n{shown if isinstance(shown, str) else json.dumps(shown, indent=1)}")


def check_slow_node():
    ps, text, prof = run_links(f"rate=60MB/s node{SLOW}: rate=6MB/s", 5)
    host = next(r["host"] for r in ps["ranks"] if r["rank"] == SLOW)
    for name, links in (("ps", ps["slowest_links"]), ("prof", prof["links"])):
        slow = [link for link in links if link["slow"]]
        expect(slow and all(SLOW in (link["from"], link["to"]) for link in slow), f"{name} accuses", links)
        expect(all(link["rail"] == 0 and "softib" in link["how"] for link in slow), f"{name} names the port", slow)
        expect(all(link["others_bytes_per_second"] > 2 * link["bytes_per_second"] for link in slow), name, slow)
    expect(len([link for link in prof["links"] if link["slow"]]) == 2 * (RANKS - 1), "prof finds all slow links", prof["links"])
    expect(ps.get("slow_host") == host and prof.get("slow_host") == host, "the slow host", [ps.get("slow_host"), host])
    expect(f"All slow links lead to or from {host}." in text, "fishplate ps", text)
    # prof reports a finding only if it costs 5 % of the recorded time. On a busy machine rank 0 may be late for so long that the slow
    # links cost less.
    slow = [link for link in prof["links"] if link["slow"]]
    cost = sum(link["seconds"] - link["bytes"] / link["others_bytes_per_second"] for link in slow) / RANKS
    named = any(f"Host {host} has slow links" in v["finding"] for v in prof["verdict"])
    expect(named == (cost >= 0.05 * prof["recorded"] / RANKS), f"the verdict, with links that cost {cost} s", prof["verdict"])


def check_equal_links():
    ps, text, prof = run_links("rate=25MB/s", 5)
    expect(ps["slow_links"] == 0 and "slow_host" not in ps, "ps accuses", ps["slowest_links"])
    expect(prof["slow_links"] == 0 and len(prof["links"]) == RANKS * (RANKS - 1), "prof accuses", prof["links"])
    expect("Slow link" not in text.replace("Slowest link", ""), "fishplate ps", text)


check_slow_node()
check_equal_links()
print("the slow node is named, and equal links are not")
