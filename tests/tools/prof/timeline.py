#!/usr/bin/env python3
"""Checks a timeline of `fishplate prof` against the report on the same run: it contains every call of every rank once, on the track of
its rank, and the calls of a track do not overlap.

    timeline.py TRACE.json REPORT.json
"""
# SPDX-License-Identifier: Apache-2.0
import collections
import json
import math
import sys

METADATA = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}


def is_valid_event(e):
    """True if this is an event of the Trace Event format: complete ("X") or metadata ("M"), with the required fields."""
    if not isinstance(e.get("name"), str) or not isinstance(e.get("pid"), int) or e["pid"] < 1:
        return False
    if "tid" in e and (not isinstance(e["tid"], int) or e["tid"] < 1):
        return False
    if e.get("ph") == "M":
        return e["name"] in METADATA and set(e["args"]) == {METADATA[e["name"]]} and ("tid" in e or e["name"] == "process_name")
    times = [e.get("ts"), e.get("dur")]
    return e.get("ph") == "X" and "tid" in e and all(isinstance(t, (int, float)) and math.isfinite(t) and t >= 0 for t in times)


def refuse_constant(text):
    sys.exit(f"not a number of JSON: {text}")


trace = json.load(open(sys.argv[1]), parse_constant=refuse_constant)
for wrong in (e for e in trace["traceEvents"] if not is_valid_event(e)):
    sys.exit(f"not an event of the format: {wrong}")
report = json.load(open(sys.argv[2]))
events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
size = report["ranks"] if isinstance(report["ranks"], int) else len(report["ranks"])
if sorted(names.values()) != sorted(f"rank {r}" for r in range(size)):
    sys.exit(f"tracks: {names}")
ends = {}
for e in events:  # in file order, which is the order of time on each track
    where = (e["pid"], e["tid"])
    if where not in names or e["dur"] < 0 or e["ts"] < 0:
        sys.exit(f"not on a track: {e}")
    if e["ts"] < ends.get(where, 0) - 0.002:
        sys.exit(f"before the end of the call before it: {e}")
    ends[where] = e["ts"] + e["dur"]
counted = collections.Counter(e["name"] for e in events)
for f in report["functions"]:
    if f["name"] not in ("MPI_Init", "MPI_Init_thread", "MPI_Finalize") and counted[f["name"]] != f["calls"]:
        sys.exit(f"{f['name']}: {counted[f['name']]} events, {f['calls']} calls")
print(f"{len(events)} calls of {size} ranks")
