#!/bin/sh
# tune.sh BIN: `fishplate tune` writes a file of rules that FISHPLATE_COLL=@FILE reads; a rule holds for its ranks and nodes
# only; a bad file is refused with its line.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
rules=$scratch/site.coll

"$BIN/fishplate" tune --help >"$scratch/help"
expect_line "$scratch/help" '^  --append'
for wrong in '--ops bcst' '--bytes 8,x' '--bytes 0' '--seconds -1' '--unknown'; do
    # shellcheck disable=SC2086 # an option and its value
    if "$BIN/fishplate" tune $wrong 2>"$scratch/error"; then
        fail "$wrong was accepted"
    fi
    expect_line "$scratch/error" "'--[a-z]+' is (not an option|invalid)|the value of '--[a-z]+' is invalid"
done
if "$BIN/fishplate" tune --bytes 8,x 2>"$scratch/error"; then
    fail "a wrong size was accepted"
fi
expect_line "$scratch/error" 'Example: --bytes 8,4k,1m '
if "$BIN/fishplate" tune -o "$rules" 2>"$scratch/error"; then
    fail "one rank was tuned"
fi
expect_line "$scratch/error" 'Start it with mpiexec'

# The fastest algorithm depends on the machine, so the test checks only that every size is measured and the file is valid.
"$BIN/mpiexec" -n 3 "$BIN/fishplate" tune -o "$rules" --seconds 100 --ops barrier,bcast --bytes 64k,9 >"$scratch/out"
for line in 'barrier  ' 'bcast  *9 bytes' 'bcast  *65536 bytes'; do
    expect_line "$scratch/out" "^$line  *built-in rules +[0-9.]+ us"
done
expect_line "$scratch/out" "^[0-9]+ rules? in $rules for 3 ranks on 1 node[.;]|^0 rules in $rules: no algorithm was clearly faster"
# A time limit, or Ctrl-C, ends the run with the results so far.
"$BIN/mpiexec" -n 3 "$BIN/fishplate" tune -o "$scratch/short" --seconds 0.001 >"$scratch/out"
expect_line "$scratch/out" '^The time was up after 0 of [0-9]+ measurements'
expect_line "$scratch/out" "^0 rules in $scratch/short: no algorithm was clearly faster"
mkfifo "$scratch/lines"
"$BIN/mpiexec" -n 2 "$BIN/fishplate" tune -o "$scratch/stopped" --seconds 20 --ops barrier,bcast --bytes 8 >"$scratch/lines" &
job=$!
{
    read -r _ && kill -INT $job
    cat
} <"$scratch/lines" >"$scratch/out"
wait $job || true
expect_line "$scratch/out" '^Stopped after [01] of 2 measurements'
expect_line "$scratch/stopped" '^# fishplate tune, version'
echo 'allgather ranks=7 nodes=2-3 bytes=1k-64k ring  # by hand' >>"$rules"
"$BIN/mpiexec" -n 2 "$BIN/fishplate" tune -o "$rules" --append --seconds 100 --ops scatter --bytes 8 >"$scratch/out"
expect_line "$rules" '^# fishplate tune, version .*: 3 ranks on 1 nodes'
expect_line "$rules" '^# fishplate tune, version .*: 2 ranks on 1 nodes'
FISHPLATE_COLL=@$rules "$BIN/fishplate" info --coll >"$scratch/info"
expect_line "$scratch/info" 'line [0-9]+: allgather ranks=7 nodes=2-3 bytes=1024-65536 ring$'
FISHPLATE_COLL=@$rules "$BIN/fishplate" info --coll --json >"$scratch/json"
expect_json "$scratch/json"
expect_line "$scratch/json" '"site"'

echo 'barrier ranks=4-2 bst' >"$rules"
FISHPLATE_COLL=@$rules "$BIN/fishplate" info --coll >"$scratch/info"
expect_line "$scratch/info" "line 1 of $rules: ranks= needs a number"
if FISHPLATE_COLL=@$rules "$BIN/mpiexec" -n 2 "$BIN/fishplate" bench barrier --time 0.02 >"$scratch/out" 2>&1; then
    fail "a bad file was accepted"
fi
expect_line "$scratch/out" "line 1 of $rules: ranks= needs a number"

# A rule for two nodes is used on two and not on four.
[ -e "$BIN/../lib/softib/libibverbs.so.1" ] || exit 0
echo 'barrier nodes=2 multicast' >"$rules"
for nodes in 2 4; do
    FISHPLATE_COLL=@$rules FISHPLATE_COLL_TRY=0 FISHPLATE_STATS=1 "$BIN/mpiexec" -n 4 -vnodes $nodes \
        "$BIN/fishplate" bench barrier --time 0.02 >"$scratch/nodes$nodes" 2>&1 || {
        cat "$scratch/nodes$nodes"
        fail "barriers on $nodes nodes"
    }
done
expect_line "$scratch/nodes2" 'coll_barrier_multicast'
if grep -q coll_barrier_multicast "$scratch/nodes4"; then
    fail "a rule for two nodes was used on four"
fi

# --trials writes no file and compares the choices of trials with the rules.
(cd "$scratch" && "$BIN/mpiexec" -n 4 -vnodes 2 "$BIN/fishplate" tune --trials --ops bcast,allreduce --bytes 8,4k --seconds 100) >"$scratch/trials"
[ "$(grep -Ec 'bytes  rules +[0-9.]+ us  by trial +[0-9.]+ us  ratio [0-9.]+ .*choice$' "$scratch/trials")" = 4 ] || fail "not four rows: $(cat "$scratch/trials")"
expect_line "$scratch/trials" '^geometric mean of [1-4] ratios where'
[ ! -e "$scratch/fishplate.coll" ] || fail "--trials has written a file"
