#!/bin/sh
# lib.sh: helpers of the package tests: a scratch folder that is removed at the end, and the checks of tests/tools/lib.sh.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../tools/lib.sh"

skip() {
    echo "Skipped: $*"
    exit 77
}

# run_ring PREFIX: compiles and runs a program with the installation in PREFIX, on one node and, with softib, on two.
run_ring() {
    env -u LD_LIBRARY_PATH "$1/bin/mpicc" -Wall -Werror "$SOURCE/examples/ring.c" -o "$scratch/ring"
    env -u LD_LIBRARY_PATH "$1/bin/mpiexec" -n 3 "$scratch/ring" >"$scratch/out"
    expect_line "$scratch/out" '^around 3 ranks: 3$'
    [ -d "$1/lib/softib" ] || return 0
    env -u LD_LIBRARY_PATH "$1/bin/mpiexec" -n 4 -vnodes 2 "$scratch/ring" >"$scratch/out"
    expect_line "$scratch/out" '^around 4 ranks: 6$'
}
