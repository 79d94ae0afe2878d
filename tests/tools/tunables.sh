#!/bin/sh
# tunables.sh BIN: every setting belongs to a group and its text states the effect, when to change it and, if a counter shows the
# need, an existing counter; --changed shows only settings that are set.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

"$BIN/fishplate" info --json --tunables --pvars >"$scratch/json"
expect_json "$scratch/json"
python3 - "$scratch/json" <<'PY' || fail "give the setting a line in tools/fishplate/info_tunables.c"
import json, sys
answer = json.load(open(sys.argv[1]))
counters = {p["name"] for p in answer["pvars"]}
wrong = []
for t in answer["tunables"]:
    if not t["when"].endswith("."):
        wrong.append(f"FISHPLATE_{t['name']} does not say when to change it")
    if t["counter"] and t["counter"] not in counters:
        wrong.append(f"FISHPLATE_{t['name']} names a counter that does not exist: {t['counter']}")
    if len(t["doc"].split()) < 4 or not t["doc"].endswith("."):
        wrong.append(f"FISHPLATE_{t['name']} does not say in a sentence what it does")
if len(answer["tunables"]) > 48:
    wrong.append(f"{len(answer['tunables'])} settings: docs/architecture.md promises at most 48")
groups = {t["group"] for t in answer["tunables"]}
if groups != {"start", "network", "collectives", "expert"}:
    wrong.append(f"groups are {groups}")
print("\n".join(wrong))
sys.exit(bool(wrong))
PY

"$BIN/fishplate" info --changed >"$scratch/none"
expect_line "$scratch/none" '^Every setting has its default\.$'
FISHPLATE_IB_BUFFERS=4 FISHPLATE_LOG=warn "$BIN/fishplate" info --changed >"$scratch/some"
expect_line "$scratch/some" '^FISHPLATE_IB_BUFFERS=4 \(environment; default: 8\)$'
expect_line "$scratch/some" '^FISHPLATE_LOG=warn \(environment; the same as its default'
[ "$(grep -c FISHPLATE_ "$scratch/some")" = 2 ] || fail "$(cat "$scratch/some")"
FISHPLATE_IB_BUFFERS=4 "$BIN/fishplate" info --changed --json >"$scratch/changed"
expect_json "$scratch/changed"
expect_line "$scratch/changed" '"name": "IB_BUFFERS"'
