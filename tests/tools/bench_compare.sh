#!/bin/sh
# bench_compare.sh BIN: `fishplate bench --forced` compares the library's choice of protocols with each protocol, and forces the
# right one; `--compare` shows every algorithm of an operation that the ranks can use, and suggests a setting only if an algorithm is
# faster; an unknown operation is an error.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

run_bench() {
    "$BIN/mpiexec" -n 3 "$BIN/fishplate" bench --time 0.002 "$@"
}

run_bench --sizes 8,5000 --compare allreduce >"$scratch/table"
expect_line "$scratch/table" '^ +size +auto +recursive_doubling .*ring.*shared'
expect_line "$scratch/table" '^ +8 B( +[0-9]+\.[0-9]+\*?){4}'
expect_line "$scratch/table" '^ +5000 B( +[0-9]+\.[0-9]+\*?){4}'
expect_line "$scratch/table" '^All data arrived as sent'
expect_line "$scratch/table" 'leave FISHPLATE_COLL unset|export FISHPLATE_COLL=allreduce=[a-z_]+$'

# The named algorithm must run: it is a schedule, and only schedules count steps.
FISHPLATE_STATS=1 run_bench --sizes 8 --compare allreduce >"$scratch/table" 2>&1
expect_line "$scratch/table" '^ +coll_steps +[0-9]+'

# Some algorithms cannot be used between nodes, and some not with three ranks.
run_bench --sizes 8,64k --json --calls back-to-back --compare bcast >"$scratch/json" 2>/dev/null
python3 - "$scratch/json" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["wrong"] == 0, answer
by_size = {size: {row["algorithm"] for row in answer["results"] if row["bytes"] == size} for size in (8, 65536)}
assert by_size[8] == by_size[65536] and {"auto", "shared", "binomial", "chain"} <= by_size[8], by_size
assert "inter" not in by_size[8], by_size
assert answer["setting"] == "" or answer["setting"].startswith("FISHPLATE_COLL=bcast="), answer
PY

run_bench --sizes 8 --compare allgather >"$scratch/table"
expect_line "$scratch/table" 'auto'
if grep -q neighbor_exchange "$scratch/table"; then
    fail "neighbor_exchange needs an even number of ranks, and is in the table of three"
fi
run_bench --compare barrier >"$scratch/table"
expect_line "$scratch/table" 'dissemination'
if run_bench --compare bcst >"$scratch/table" 2>&1; then
    fail "an operation that is not there was accepted"
fi
expect_line "$scratch/table" "'bcst' is not a collective operation"

# The library's own choice alternates with two forced protocols, as the counters show; and an unknown name is refused.
FISHPLATE_STATS=1 "$BIN/mpiexec" -n 2 "$BIN/fishplate" bench --time 0.002 --sizes 64k --json --forced r3,split latency bw \
    >"$scratch/json" 2>"$scratch/stats"
python3 - "$scratch/json" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["wrong"] == 0 and [row["test"] for row in answer["results"]] == ["latency", "bw"], answer
for row in answer["results"]:
    forced = row["forced"]
    assert forced["best"] in ("r3", "split") and forced["ratio"] > 0 and forced["noise"] >= 0, forced
    assert list(forced["times"]) == ["auto", "r3", "split"] and forced["times"]["auto"] == 1, forced
PY
expect_line "$scratch/stats" '^ +p2p_rendezvous_r3 +[0-9]{3,}'
expect_line "$scratch/stats" '^ +p2p_rendezvous_split +[0-9]{3,}'
status=0
"$BIN/mpiexec" -n 2 "$BIN/fishplate" bench --time 0.002 --sizes 64k --forced r3,pigeon latency >"$scratch/table" 2>&1 || status=$?
[ "$status" != 0 ] || fail "a protocol that does not exist was forced"
expect_line "$scratch/table" "has no protocol 'pigeon'"
