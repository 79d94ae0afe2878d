#!/bin/sh
# bench.sh BIN RANKS: the benchmark runs, its data is correct, its report contains all tests, and its JSON parses.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
ranks=$2

"$BIN/mpiexec" -n "$ranks" "$BIN/fishplate" bench --short --time 0.01 >"$scratch/table" || {
    cat "$scratch/table"
    fail "the benchmark failed"
}
expect_line "$scratch/table" '^transport: [a-z]+ '
expect_line "$scratch/table" '^All data arrived as sent'
tests="barrier bcast reduce allreduce allgather alltoall gather scatter reduce_scatter reduce_scatter_block ibcast iallreduce memcpy"
if [ "$ranks" -gt 1 ]; then
    tests="$tests latency bw bibw rate bilat window.16 overhead potential isend"
fi
if [ "$ranks" -le "$(nproc)" ]; then
    tests="$tests iallreduce.both iallreduce.test"
else
    expect_line "$scratch/table" '^iallreduce: .* overlap is not measured'
fi
for test in $tests; do
    expect_line "$scratch/table" "^$test +.* [0-9]+\.[0-9]+ "
done

"$BIN/mpiexec" -n "$ranks" "$BIN/fishplate" bench --time 0.01 --sizes 0,1,8,5000,1M --json latency bcast allreduce \
    >"$scratch/json"
expect_json "$scratch/json"
python3 - "$scratch/json" "$ranks" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["wrong"] == 0 and answer["ranks"] == int(sys.argv[2]), answer
assert answer["carrier"] == "memory" and "adapter" not in answer["transport"], answer
sizes = {row["bytes"] for row in answer["results"] if row["test"] == "bcast"}
assert sizes == {0, 1, 8, 5000, 1 << 20}, sizes
assert all(0 < row["best"] <= row["median"] <= row["p99"] for row in answer["results"]), answer
PY

# --pairs adds ranks only to the tests that work with them; the others run on ranks 0 and 1.
if [ "$ranks" -ge 4 ]; then
    "$BIN/mpiexec" -timeout 200 -n "$ranks" "$BIN/fishplate" bench --pairs 2 --threads 2 --time 0.001 --sizes 8 latency bw bibw \
        rate bilat window overhead potential column face mprobe unexpected threads isend limits >"$scratch/table" ||
        fail "bench --pairs 2 failed"
    expect_line "$scratch/table" '^All data arrived as sent'
    for test in latency bw bilat window.16 overhead potential column face mprobe unexpected threads isend; do
        expect_line "$scratch/table" "^$test +.* [0-9]+\.[0-9]+ "
    done
fi

# On virtual nodes every form of the report names the adapter and states that the adapter is software.
if [ "$ranks" -gt 1 ] && [ -e "$BIN/../lib/softib/libibverbs.so.1" ]; then
    export FISHPLATE_VERBS=softib
    named='softib0 port 1, softib in shared memory \(software\)'
    FISHPLATE_STATS=1 "$BIN/mpiexec" -n "$ranks" -vnodes 2 "$BIN/fishplate" bench --time 0.001 --sizes 8 --json latency \
        >"$scratch/json" 2>"$scratch/stats"
    expect_line "$scratch/json" "\"transport\": \"(ib over $named|shm .*) between ranks 0 and 1(;[^\"]*)?\""
    expect_line "$scratch/stats" "^  between nodes: $named\$"
    if [ "$ranks" = 2 ]; then
        expect_line "$scratch/json" '"carrier": "softib-memory"'
        "$BIN/mpiexec" -n 2 -vnodes 2 "$BIN/fishplate" bench --time 0.001 --sizes 8 latency >"$scratch/table"
        expect_line "$scratch/table" "^transport: ib over $named between ranks 0 and 1"
        SOFTIB_FABRIC="wire=tcp" "$BIN/mpiexec" -n 2 -vnodes 2 "$BIN/fishplate" bench --time 0.001 --sizes 8 --json latency \
            >"$scratch/json"
        expect_line "$scratch/json" '"transport": "ib over softib0 port 1, softib over TCP \(software\)'
        expect_line "$scratch/json" '"carrier": "softib-tcp"'
    fi
fi
