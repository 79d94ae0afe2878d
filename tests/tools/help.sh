#!/bin/sh
# help.sh: the help texts of the tool; the first line of `fishplate version` is stable, since packagers parse it.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

version=$(sed -n 's/^project(fishplate VERSION \([0-9.]*\).*/\1/p' "$SOURCE/CMakeLists.txt")
first=$("$BIN/fishplate" version | head -n 1)
[ "$first" = "fishplate $version" ] || fail "first line of version: $first"

"$BIN/fishplate" --help >"$scratch/help"
expect_line "$scratch/help" '^  info '
expect_line "$scratch/help" '^  bench '
expect_line "$scratch/help" '^  prof '
expect_line "$scratch/help" '^  ps '
expect_line "$scratch/help" '^  why '
"$BIN/fishplate" why --help >"$scratch/help"
expect_line "$scratch/help" '--hang-after'
"$BIN/fishplate" info --help >"$scratch/help"
expect_line "$scratch/help" '--tunables'
"$BIN/fishplate" bench --help >"$scratch/help"
expect_line "$scratch/help" '--sizes'

if "$BIN/fishplate" nonsense 2>"$scratch/err"; then
    fail "an unknown command was accepted"
fi
expect_line "$scratch/err" "no command 'nonsense'"
if "$BIN/fishplate" bench nonsense >/dev/null 2>"$scratch/err"; then
    fail "an unknown test was accepted"
fi
expect_line "$scratch/err" "'nonsense' is neither"

# Help texts of every program and command fit a terminal of 80 columns and show a command to type.
help_of() {
    tool=$1
    shift
    "$BIN/$tool" "$@" >"$scratch/help" 2>&1 || fail "$tool $*: it failed"
    wide=$(awk 'length > 80' "$scratch/help" | head -n 1)
    [ ! "$wide" ] || fail "$tool $*: a line has more than 80 characters: $wide"
    grep -Eq '^ +(.*[=;] *)?(mpiexec|mpicc|mpicxx|mpifort|fishplate|fishplate-lab|softib) ' "$scratch/help" ||
        fail "$tool $*: there is no example"
}
help_of fishplate --help
for command in info bench prof ps why check tune; do
    help_of fishplate $command --help
done
help_of fishplate bench io --help
help_of fishplate bench rma --help
# One rank of a job prints the help text.
for kind in io rma; do
    "$BIN/mpiexec" -n 2 "$BIN/fishplate" bench $kind --help >"$scratch/help" 2>&1 || fail "bench $kind --help: it failed in a job"
    [ "$(grep -c '^Usage:' "$scratch/help")" = 1 ] || fail "bench $kind --help: each rank prints the text"
done
help_of mpiexec --help
help_of mpicc --help
help_of mpicxx --help
[ ! -x "$BIN/mpifort" ] || help_of mpifort --help
[ ! -x "$BIN/softib" ] || help_of softib --help
if [ -x "$BIN/fishplate-lab" ]; then
    help_of fishplate-lab --help
    for command in papers sim ib rails bcast barrier logp kernels; do
        help_of fishplate-lab $command --help
    done
fi
