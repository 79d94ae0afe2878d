#!/bin/sh
# bench_io.sh BIN: files are measured; a run that is ended by a signal leaves no file behind; invalid arguments are refused.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

"$BIN/mpiexec" -n 2 "$BIN/fishplate" bench io --size 1 --repeat 1 --json --dir "$scratch" >"$scratch/rows.json" || fail "bench io"
expect_json "$scratch/rows.json"
grep -q '"case": "nested all"' "$scratch/rows.json" || fail "a row is missing"
if "$BIN/fishplate" bench io --nonsense >"$scratch/table" 2>&1; then fail "a wrong option was taken"; fi

# The run is ended while its file exists: once with a shared file, once with one file per rank.
mkdir "$scratch/files"
for only in contiguous own; do
    for sig in TERM INT; do
        "$BIN/mpiexec" -n 2 "$BIN/fishplate" bench io --size 8 --repeat 100000 --only $only --dir "$scratch/files" >"$scratch/table" 2>&1 &
        run=$!
        while [ -z "$(ls -A "$scratch/files")" ]; do
            kill -0 $run 2>/dev/null || fail "the run ended by itself: $(cat "$scratch/table")"
        done
        kill -$sig $run
        wait $run && fail "a run that was ended by SIG$sig succeeded"
        left=$(ls -A "$scratch/files")
        [ -z "$left" ] || fail "SIG$sig left $left"
    done
done
