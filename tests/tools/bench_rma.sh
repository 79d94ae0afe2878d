#!/bin/sh
# bench_rma.sh BIN: one-sided operations are measured on both kinds of memory, on one node and over virtual nodes; invalid
# arguments are refused.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

for words in "" --created; do
    # shellcheck disable=SC2086
    "$BIN/mpiexec" -n 2 "$BIN/fishplate" bench rma --seconds 0.001 --json $words >"$scratch/rows.json" || fail "bench rma $words"
    expect_json "$scratch/rows.json"
    grep -q '"name": "fetch_and_op", "bytes": 8' "$scratch/rows.json" || fail "a row is missing"
done
"$BIN/mpiexec" -n 2 -vnodes 2 "$BIN/fishplate" bench rma --adapter --seconds 0.001 >"$scratch/table" || fail "bench rma over virtual nodes"
expect_line "$scratch/table" "^lock, unlock "
if "$BIN/fishplate" bench rma --nonsense >"$scratch/table" 2>&1; then fail "a wrong option was taken"; fi
