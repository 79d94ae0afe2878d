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
