#!/usr/bin/env python3
"""Reads a time line as Perfetto does and compares it with the report on the same run: every call of every rank once, on the track
of its rank, one after the other.

    timeline.py TRACE.json REPORT.json
"""
# SPDX-License-Identifier: Apache-2.0
import collections
import json
import sys

trace = json.load(open(sys.argv[1]))
report = json.load(open(sys.argv[2]))
events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
size = report["ranks"] if isinstance(report["ranks"], int) else len(report["ranks"])
if sorted(names.values()) != sorted(f"rank {r}" for r in range(size)):
    sys.exit(f"tracks: {names}")
ends = {}
for e in sorted(events, key=lambda e: e["ts"]):
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
