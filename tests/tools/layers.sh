#!/bin/sh
# layers.sh: check-layers finds an include that goes to the right, and only that one.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

mkdir -p "$scratch/src/base" "$scratch/src/net" "$scratch/src/dt" "$scratch/src/boot"
echo '#include "base/a.h"' >"$scratch/src/net/good.c"
echo '/* nothing */' >"$scratch/src/base/a.h"
"$SOURCE/tools/check-layers" "$scratch" >"$scratch/out" || fail "a good tree was refused"

echo '#include "net/n.h"' >"$scratch/src/base/bad.c"
echo '#include "boot/b.h"' >"$scratch/src/dt/bad.c"
if "$SOURCE/tools/check-layers" "$scratch" >"$scratch/out"; then
    fail "a bad tree was accepted"
fi
expect_line "$scratch/out" '^src/base/bad.c:1: '
expect_line "$scratch/out" '^src/dt/bad.c:1: '
[ "$(wc -l <"$scratch/out")" = 2 ] || fail "$(cat "$scratch/out")"
