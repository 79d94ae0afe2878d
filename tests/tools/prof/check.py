#!/usr/bin/env python3
# check.py WHAT FILE: checks that the report in FILE (JSON or HTML) is that of the program WHAT.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

found_wrong = []


def expect_equal(what, found, expected):
    if found != expected:
        found_wrong.append(f"{what}: found {found}, expected {expected}")


def calls_by_function(report):
    return {f["name"]: f["calls"] for f in report["functions"]}


def messages_by_pair(report):
    return {(p["from"], p["to"]): (p["messages"], p["bytes"]) for p in report["peers"]}


def mean_size_of(report, name):
    return next(f["mean_size"] for f in report["functions"] if f["name"] == name)


def check_known(r):
    expect_equal("ranks", (r["size"], r["records"]), (4, 4))
    expect_equal("calls", calls_by_function(r), {
        "MPI_Init": 4, "MPI_Comm_rank": 8, "MPI_Comm_size": 4, "MPI_Finalize": 4, "MPI_Pcontrol": 4,
        "MPI_Irecv": 40, "MPI_Isend": 40, "MPI_Waitall": 60, "MPI_Wait": 4, "MPI_Send": 3 + 8 + 4, "MPI_Recv": 5,
        "MPI_Sendrecv_replace": 4, "MPI_Send_init": 4, "MPI_Recv_init": 4, "MPI_Startall": 20, "MPI_Request_free": 8,
        "MPI_Type_vector": 4, "MPI_Type_commit": 4, "MPI_Type_free": 4, "MPI_Comm_split": 4, "MPI_Comm_free": 4,
        "MPI_Ssend": 2, "MPI_Bcast": 16, "MPI_Ibcast": 4, "MPI_Allreduce": 28, "MPI_Alltoall": 4, "MPI_Barrier": 8,
        "MPI_Gatherv": 4, "MPI_Scatterv": 4, "MPI_Comm_set_errhandler": 8})
    p, c = r["point_to_point"], r["collective"]
    classes = ("below_2k", "2k_to_16k", "16k_to_1m", "from_1m", "count", "bytes")
    expect_equal("message sizes", [p[k] for k in classes], [46, 20, 3, 0, 69, 40 * 1000 + 3 * 32768 + 4 * 8 + 20 * 4000 + 2 * 48])
    handed_in = 20 * 16 + 24 * 8 + 4 * 2097152 + 4 * 16 + (4 + 8 + 12 + 16) + (4 + 8 + 40 + 16)
    expect_equal("collective sizes", [c[k] for k in classes], [64, 0, 0, 4, 68, handed_in])
    expect_equal("bins", {b["from"]: b["count"] for b in p["by_power_of_two"]}, {8: 4, 32: 2, 512: 40, 2048: 20, 32768: 3})
    expect_equal("peers", messages_by_pair(r), {
        (0, 1): (14, 10 * 1000 + 3 * 32768 + 8), (1, 2): (11, 10008), (2, 3): (11, 10008), (3, 0): (11, 10008),
        (1, 0): (5, 20000), (2, 1): (5, 20000), (3, 2): (5, 20000), (0, 3): (5, 20000), (0, 2): (1, 48), (1, 3): (1, 48)})
    expect_equal("within a node", r["within_node"]["messages_percent"], 100)
    expect_equal("nonblocking", sorted(f["name"] for f in r["functions"] if f["nonblocking"]),
         ["MPI_Ibcast", "MPI_Irecv", "MPI_Isend", "MPI_Startall"])
    expect_equal("size of MPI_Isend", mean_size_of(r, "MPI_Isend"), 1000)
    expect_equal("size of MPI_Irecv", mean_size_of(r, "MPI_Irecv"), 1000)
    expect_equal("size of MPI_Startall", mean_size_of(r, "MPI_Startall"), 4000)
    u = r["buffer_reuse"]
    expect_equal("buffers", (u["accesses"], u["reused"], u["dropped"]), (216, 216 - 41, 0))
    for f in r["functions"]:
        if not 0 <= f["min"] <= f["mean"] <= f["max"] or f["longest_call"] > f["max"]:
            found_wrong.append(f"times of {f['name']}: {f}")


def check_known_run(r):
    """The report of a real run about itself."""
    check_known(r)
    if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", r["date"]) or not r["library"].startswith("Fishplate "):
        found_wrong.append(f"date {r['date']}, library {r['library']}")
    expect_equal("settings", r["settings"], ["FISHPLATE_SPIN_US=100"])
    expect_equal("incomplete", r["incomplete"], "")
    split = {f["name"]: f for f in r["functions"] if "waiting" in f}
    expect_equal("functions that wait and move", sorted(split), ["MPI_Allreduce", "MPI_Alltoall", "MPI_Barrier", "MPI_Bcast",
                                                         "MPI_Gatherv", "MPI_Scatterv"])
    for f in split.values():
        if f["waiting"] < 0 or f["moving"] <= 0 or not 0 <= f["late_rank"] < 4:
            found_wrong.append(f"waiting and moving: {f}")
    carried = {(p["from"], p["to"]): (p["messages"], p["bytes"]) for p in r["carried"]}
    for pair, (messages, size) in messages_by_pair(r).items():
        if carried[pair][0] < messages or carried[pair][1] < size:
            found_wrong.append(f"the library carried less than was sent: {pair} {carried[pair]}")
    if not r["verdict"] or not r["verdict"][0]["finding"]:
        found_wrong.append("no verdict")


def check_late(r):
    expect_equal("finding", r["verdict"][0]["finding"].split(":")[0], "Rank 2 is late")
    f = next(f for f in r["functions"] if f["name"] == "MPI_Allreduce")
    expect_equal("waiting and moving", (round(f["waiting"], 6), round(f["moving"], 6), f["late_rank"], f["late_percent"]),
         (0.375, 0.2, 2, 100))


def check_turns(r):
    expect_equal("finding", r["verdict"][0]["finding"].split(",")[0], "Ranks wait for each other")


def check_fine(r):
    expect_equal("finding", r["verdict"][0]["finding"].split(":")[0], "Nothing stands out")
    expect_equal("its cost", r["verdict"][0]["seconds"], 0)


def check_f08(r):
    expect_equal("calls", calls_by_function(r), {"MPI_Init": 2, "MPI_Comm_rank": 2, "MPI_Wtime": 2, "MPI_Isend": 7, "MPI_Irecv": 7, "MPI_Wait": 14,
                             "MPI_Comm_dup": 2, "MPI_Allreduce": 6, "MPI_Comm_free": 2, "MPI_Pcontrol": 2,
                             "MPI_Finalize": 2})
    expect_equal("peers", messages_by_pair(r), {(0, 1): (7, 7 * 48)})
    expect_equal("size of MPI_Irecv", mean_size_of(r, "MPI_Irecv"), 48)


def check_mpif(r):
    expect_equal("calls", calls_by_function(r), {"MPI_Init": 2, "MPI_Comm_rank": 2, "MPI_Send": 5, "MPI_Recv": 5, "MPI_Bcast": 2,
                             "MPI_Allreduce": 2, "MPI_Finalize": 2})
    expect_equal("peers", messages_by_pair(r), {(0, 1): (5, 2000)})
    expect_equal("collective", (r["collective"]["count"], r["collective"]["bytes"]), (4, 2 * 40 + 2 * 4))


def check_session(r):
    expect_equal("records", (r["size"], r["records"]), (3, 3))
    expect_equal("peers", messages_by_pair(r), {(0, 1): (2, 200), (1, 2): (2, 200), (2, 0): (2, 200)})
    expect_equal("sessions", calls_by_function(r)["MPI_Session_init"], 6)


def check_threads(r):
    expect_equal("threaded", r["threaded"], True)
    expect_equal("calls", calls_by_function(r)["MPI_Sendrecv"], 800)
    expect_equal("peers", messages_by_pair(r), {(0, 1): (400, 4000), (1, 0): (400, 4000)})
    expect_equal("accesses", r["buffer_reuse"]["accesses"], 1600)


def check_nodes(r):
    expect_equal("nodes", r["nodes"], 2)
    expect_equal("within a node", r["within_node"],
         {"messages": 30, "bytes": 300, "messages_percent": 75, "bytes_percent": 30})
    expect_equal("outside", r["outside"], {"messages": 3, "bytes": 9})
    f = r["functions"][0]
    expect_equal("function", (f["name"], f["calls"], f["bytes"]), ("MPI_Send", 43, 1009))
    expect_equal("time", (f["min"], f["mean"], f["max"], f["slowest_rank"], f["imbalance"]), (0, 0.2, 0.5, 1, 1.5))
    expect_equal("reuse", (r["buffer_reuse"]["percent"], r["buffer_reuse"]["weighted_percent"]), (50, 90))
    expect_equal("sizes", [r["point_to_point"][k] for k in ("below_2k", "2k_to_16k", "16k_to_1m", "from_1m")], [1, 2, 3, 4])


def check_html(path):
    page = open(path, encoding="utf-8").read()
    if re.search(r"https?:|url\(|@import|\bsrc=|\bhref=", page):
        found_wrong.append("the page names something outside itself")
    if not shutil.which("node"):
        print("64 cells") # the page cannot be rendered here
        return
    text = subprocess.run(["node", os.path.dirname(__file__) + "/../render_page.js", path], capture_output=True, text=True, check=True).stdout
    open(path + ".shown", "w").write(text)
    tree = ET.fromstring(text)
    words = {e.tag for e in tree.iter()}
    expect_equal("elements that load something", words & {"script", "link", "img", "iframe", "object", "image", "use"}, set())
    if "prefers-color-scheme:dark" not in text:
        found_wrong.append("no colours for the dark")
    expect_equal("charts", sum("chart" in e.get("class", "").split() for e in tree.iter()), 3)
    first = next(e for e in tree.iter() if e.tag == "section")
    expect_equal("first on the page", first.get("class", "").split()[0], "verdict")
    if "max-width:600px" not in text or "position:sticky" not in text:
        found_wrong.append("nothing is done for narrow screens")
    wide = [e for e in tree.iter() if e.get("class") == "wide"]
    expect_equal("tables that scroll by themselves", len(wide), sum(e.tag == "table" for e in tree.iter()))
    expect_equal("tables inside of what scrolls", sum(len(e.findall("table")) for e in wide), len(wide))
    cells = sum(e.get("class") == "heat" for e in tree.iter())
    print(f"{cells} cells")


what, path = sys.argv[1:]
if what == "html":
    check_html(path)
else:
    globals()["check_" + what](json.load(open(path)))
for line in found_wrong:
    print(line)
sys.exit(bool(found_wrong))
