#!/bin/sh
# kernels.sh BIN: every kernel verifies its result, for numbers of ranks that divide its problem differently and over virtual nodes.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"

# run_kernels RANKS ARGUMENTS...: runs `fishplate-lab kernels` with these arguments; all its kernels must verify.
run_kernels() {
    ranks=$1
    shift
    "$BIN/mpiexec" -n "$ranks" "$BIN/fishplate-lab" kernels "$@" >"$scratch/table" 2>"$scratch/err" || {
        cat "$scratch/table" "$scratch/err"
        fail "fishplate-lab kernels $* failed on $ranks ranks"
    }
}

run_kernels 1
for name in ep is cg mg ft lu bt sp dt-bh dt-wh dt-sh sweep vis; do
    expect_line "$scratch/table" "^$name +S .* verified$"
done
# Three ranks cannot divide a problem of powers of two; the program prints this.
run_kernels 3 is cg
expect_line "$scratch/table" '^is +S .* verified$'
expect_line "$scratch/err" 'cg of class S cannot use 3 ranks; it accepts powers of two\.$'
# CG on a grid that is not square, MG with levels that are not distributed: every rank has all of their points.
run_kernels 8 is cg mg ft --json
expect_json "$scratch/table"
python3 - "$scratch/table" <<'PY'
import json, sys
rows = json.load(open(sys.argv[1]))["results"]
assert [row["kernel"] for row in rows] == ["is", "cg", "mg", "ft"], rows
assert all(row["verified"] and row["seconds"] > 0 for row in rows), rows
PY
# LU accepts any number of ranks with which each rank has enough points.
run_kernels 6 lu
expect_line "$scratch/table" '^lu +S .* verified$'
run_kernels 5 lu
expect_line "$scratch/err" 'lu of class S cannot use 5 ranks'
# BT and SP accept square numbers; with nine ranks a rank has two neighbours in each direction. Sweep and vis accept any number.
run_kernels 9 bt sp
expect_line "$scratch/table" '^bt +S .* verified$'
expect_line "$scratch/table" '^sp +S .* verified$'
run_kernels 3 bt dt-sh sweep vis
expect_line "$scratch/err" 'bt of class S cannot use 3 ranks; it accepts square numbers'
expect_line "$scratch/table" '^sweep +S .* verified$'
expect_line "$scratch/table" '^vis +S .* verified$'
# Class W takes a minute under a sanitizer, so it is omitted there.
if ! "$BIN/fishplate" info | grep -q "with sanitizers"; then
    run_kernels 1 --class W is cg mg lu
    for name in is cg mg lu; do
        expect_line "$scratch/table" "^$name +W .* verified$"
    done
fi
if [ -e "$BIN/../lib/softib/libibverbs.so.1" ]; then
    export FISHPLATE_VERBS=softib
    "$BIN/mpiexec" -n 4 -vnodes 2 "$BIN/fishplate-lab" kernels is mg ft lu bt sp vis >"$scratch/table"
    expect_line "$scratch/table" '^ft +S .* verified$'
    for name in lu bt sp vis; do
        expect_line "$scratch/table" "^$name +S .* verified$"
    done
fi
"$BIN/fishplate-lab" kernels --class Z >"$scratch/table" 2>"$scratch/err" && fail "class Z was taken"
expect_line "$scratch/err" "the value of '--class' is invalid: 'Z'"
