#!/bin/sh
# devices.sh BIN: `fishplate info --devices` shows every port, its kind, whether it is used and the reason: alone, in a job, with a
# port that is down, with ports that the user excludes, and without any port.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
[ -e "$BIN/../lib/softib/libibverbs.so.1" ] || exit 77 # built without the software adapter

FISHPLATE_VERBS="$scratch/nothing.so" "$BIN/fishplate" info --devices >"$scratch/none"
expect_line "$scratch/none" "^  none: $scratch/nothing.so cannot be loaded"
expect_line "$scratch/none" 'FISHPLATE_REQUIRE=ib forbids that'

export FISHPLATE_VERBS=softib
"$BIN/fishplate" info --devices >"$scratch/alone"
expect_line "$scratch/alone" '^  \* softib0 port 1 +softib in shared memory \(software\)$'
expect_line "$scratch/alone" 'active, .* Gb/s \(nominal.*, MTU 4096, LID [0-9]+, firmware '
expect_line "$scratch/alone" 'GID fe80::[0-9a-f:]+ \(entry 0\), subnet fe80:0000:0000:0000$'

# In a job the first rank of each node reports its ports to rank 0, and the job selects the network.
export SOFTIB_FABRIC="hcas=2 node1/hca0/1: down=0s"
FISHPLATE_IB_DEVICES=^softib1:2 "$BIN/mpiexec" -n 4 -vnodes 2 "$BIN/fishplate" info --devices --json >"$scratch/json"
expect_json "$scratch/json"
python3 - "$scratch/json" <<'PY'
import json, sys
nodes = json.load(open(sys.argv[1]))["devices"]
assert len(nodes) == 2 and nodes[0]["host"] != nodes[1]["host"], nodes
for node in nodes:
    assert [p["device"] for p in node["ports"]] == ["softib0", "softib1"], node
    assert all(p["software"] and p["made"] == "softib-memory" and p["why"] for p in node["ports"]), node
assert [p["used"] for p in nodes[0]["ports"]] == [True, True], nodes
assert [p["used"] for p in nodes[1]["ports"]] == [False, True], nodes
assert "further rail" in nodes[0]["ports"][1]["why"], nodes
assert nodes[1]["ports"][0]["state"] == "down" and "not active (down)" in nodes[1]["ports"][0]["why"], nodes
PY
"$BIN/mpiexec" -n 2 -vnodes 2 "$BIN/fishplate" info --devices >"$scratch/text"
[ "$(grep -c '^Network adapters of' "$scratch/text")" = 2 ] || fail "not two nodes: $(cat "$scratch/text")"
expect_line "$scratch/text" 'not used: the port is not active \(down\)$'
expect_line "$scratch/text" 'used between nodes: a further rail: takes stripes of large messages$'

# Adapters of virtual nodes with different rates.
unset SOFTIB_FABRIC
"$BIN/mpiexec" -n 2 -vnodes 2 -hcas 1GB/s,250MB/s,ports=2,lmc=1 "$BIN/fishplate" info --devices --json >"$scratch/json"
expect_json "$scratch/json"
python3 - "$scratch/json" <<'PY'
import json, sys
nodes = json.load(open(sys.argv[1]))["devices"]
assert len(nodes) == 2, nodes
for node in nodes:
    got = [(p["device"], p["port"], p["rate_gbits"]) for p in node["ports"]]
    assert got == [("softib0", 1, 10), ("softib0", 2, 10), ("softib1", 1, 2.5), ("softib1", 2, 2.5)], node
PY

# A barrier network is a separate device. It carries no data, so it is not a rail, and the user may exclude it.
"$BIN/mpiexec" -n 2 -vnodes 2 -hcas 2,hub=1 "$BIN/fishplate" info --devices --json >"$scratch/json"
FISHPLATE_IB_DEVICES=^softwire0 "$BIN/mpiexec" -n 2 -vnodes 2 -hcas 1,hub=1 "$BIN/fishplate" info --devices >"$scratch/excluded"
"$BIN/mpiexec" -n 2 -vnodes 2 -hcas 1,hub=1 "$BIN/fishplate" info --devices >"$scratch/text"
expect_json "$scratch/json"
python3 - "$scratch/json" <<'PY'
import json, sys
for node in json.load(open(sys.argv[1]))["devices"]:
    assert [(p["device"], p["link"], p["used"]) for p in node["ports"]] == [
        ("softib0", "InfiniBand", True), ("softib1", "InfiniBand", True), ("softwire0", "barrier network", True)], node
PY
expect_line "$scratch/text" '^  \* softwire0 +softib.s barrier network'
expect_line "$scratch/excluded" '^    softwire0 +softib.s barrier network'
