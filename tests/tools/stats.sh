#!/bin/sh
# stats.sh: what the library counted: FISHPLATE_STATS prints it once for the whole job, `fishplate info --pvars` lists what
# there is.
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
    fail "a summary was printed though nobody asked for it"
fi

"$BIN/fishplate" info --pvars >"$scratch/pvars"
expect_line "$scratch/pvars" '^  p2p_eager_sent +counter +Messages sent eagerly'
expect_line "$scratch/pvars" '^  p2p_unexpected_length +level +Messages that wait'
expect_line "$scratch/pvars" '^  p2p_comm_received +counter +.*\(of a communicator\)$'
