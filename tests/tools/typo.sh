#!/bin/sh
# typo.sh: a mistyped or retired variable, or a value out of range, is reported once with what to write instead, and the program runs.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

FISHPLATE_LOGG=debug "$BIN/fishplate" info --build >/dev/null 2>"$scratch/err"
expect_line "$scratch/err" 'FISHPLATE_LOGG is not a tunable; did you mean FISHPLATE_LOG\?'
FISHPLATE_LOG=loud "$BIN/fishplate" info --build >/dev/null 2>"$scratch/err"
expect_line "$scratch/err" 'FISHPLATE_LOG=loud'
FISHPLATE_STARVED_RENDEZVOUS=64 "$BIN/fishplate" info --build >/dev/null 2>"$scratch/err"
expect_line "$scratch/err" 'FISHPLATE_STARVED_RENDEZVOUS no longer exists and is ignored: .*'

FISHPLATE_LOGG=debug "$BIN/mpiexec" -n 3 "$BIN/fishplate" bench --time 0.001 --sizes 8 barrier \
    >/dev/null 2>"$scratch/err"
expect_line "$scratch/err" 'FISHPLATE_LOGG is not a tunable; did you mean FISHPLATE_LOG\?'
[ "$(grep -c 'FISHPLATE_LOGG is not' "$scratch/err")" = 1 ] || {
    cat "$scratch/err"
    fail "three ranks said it; one is enough"
}
