#!/bin/sh
# stats.sh BIN [FLAGS]: the library's counters: FISHPLATE_STATS prints them once for the whole job, `fishplate info --pvars` lists them.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

FISHPLATE_STATS=1 "$BIN/mpiexec" -n 3 "$BIN/fishplate" bench --time 0.001 --sizes 8 latency bcast >/dev/null 2>"$scratch/stats"
expect_line "$scratch/stats" '^fishplate: counters of 3 ranks$'
expect_line "$scratch/stats" '^ +sum +min +max$'
expect_line "$scratch/stats" '^  (p2p|coll|net)_[a-z_]+ +[0-9]+ +[0-9]+ +[0-9]+$'
[ "$(grep -c 'counters of' "$scratch/stats")" = 1 ] || fail "the summary was printed more than once"

"$BIN/mpiexec" -n 2 "$BIN/fishplate" info --protocols >/dev/null 2>"$scratch/quiet"
if grep -q 'counters of' "$scratch/quiet"; then
    fail "a summary was printed although it was not requested"
fi

"$BIN/fishplate" info --pvars >"$scratch/pvars"
expect_line "$scratch/pvars" '^  p2p_eager_sent +counter +Messages sent eagerly'
expect_line "$scratch/pvars" '^  p2p_unexpected_length +level +Messages that arrived and wait'
expect_line "$scratch/pvars" '^  p2p_comm_received +counter +.*\(of a communicator\)$'

# Two ranks on each of two nodes: messages within a node use shared memory, the others the adapter, and the counters have the sums
# of the pairs. The program sends a known number of messages of a known size.
cat >"$scratch/known.c" <<'END'
#include <mpi.h>
int main(void)
{
    int rank, size;
    static char buf[100000];
    MPI_Init(0, 0);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int to = 1; rank == 0 && to < size; to++)
        for (int i = 0; i < 10; i++)
            MPI_Send(buf, i % 2 ? 100 : 100000, MPI_BYTE, to, 1, MPI_COMM_WORLD);
    for (int i = 0; rank != 0 && i < 10; i++)
        MPI_Recv(buf, 100000, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
END
flags=${2:-} # a library built with sanitizers needs programs built with them
"$BIN/mpicc" ${flags:+"$flags"} "$scratch/known.c" -o "$scratch/known"
[ -e "$BIN/../lib/softib/libibverbs.so.1" ] || exit 0 # built without the software adapter
export FISHPLATE_VERBS=softib
FISHPLATE_STATS=json "$BIN/mpiexec" -oversubscribe -n 4 -vnodes 2 "$scratch/known" 2>"$scratch/json"
expect_json "$scratch/json"
python3 - "$scratch/json" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
pairs = {(p["from"], p["to"]): p for p in answer["peers"]}
assert answer["adapter"] == "softib0 port 1, softib in shared memory (software)", answer["adapter"]
for to in 1, 2, 3:
    p = pairs[0, to]
    near = p["transport"] == "shm"
    assert p["messages"] >= 10 and p["bytes"] >= 500500 and p["bytes"] < 510000, p
    assert p["carrier"] == ("memory" if near else "softib-memory") and bool(p["adapter"]) == (not near), p
assert sum(pairs[0, to]["transport"] == "shm" for to in (1, 2, 3)) == 1, pairs
for t in answer["transports"]:
    mine = [p for p in answer["peers"] if p["transport"] == t["transport"]]
    assert t["messages"] == sum(p["messages"] for p in mine) and t["bytes"] == sum(p["bytes"] for p in mine), t
assert answer["counters"]["ib_connections_opened"]["sum"] > 0, answer["counters"]
PY
FISHPLATE_STATS=1 "$BIN/mpiexec" -n 4 -vnodes 2 "$scratch/known" 2>"$scratch/text"
expect_line "$scratch/text" '^  ib +[0-9]+ +[0-9]+  over softib0 port 1, softib in shared memory \(software\)$'
expect_line "$scratch/text" '^  shm +[0-9]+ +[0-9]+$'
expect_line "$scratch/text" '^  0 to [12] by ib +[0-9]+ +50[0-9]{4}$'
