#!/bin/sh
# layers.sh: check-layers finds an include of a higher layer, and only that one, in the library and in softib; check-circles
# finds files that call each other.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

mkdir -p "$scratch/src/base" "$scratch/src/net" "$scratch/src/dt" "$scratch/src/boot"
echo '#include "base/a.h"' >"$scratch/src/net/good.c"
echo '/* nothing */' >"$scratch/src/base/a.h"
"$SOURCE/tools/check-layers" "$scratch" >"$scratch/out" || fail "a good tree was refused"

echo '#include "net/n.h"' >"$scratch/src/base/bad.c"
echo '#include "boot/b.h"' >"$scratch/src/dt/bad.c"
mkdir -p "$scratch/softib/src/local" "$scratch/softib/src/net"
echo '#include "local/l.h"' >"$scratch/softib/src/net/bad.c"
echo '/* nothing */' >"$scratch/softib/src/local/l.h"
if "$SOURCE/tools/check-layers" "$scratch" >"$scratch/out"; then
    fail "a bad tree was accepted"
fi
expect_line "$scratch/out" '^src/base/bad.c:1: '
expect_line "$scratch/out" '^src/dt/bad.c:1: '
expect_line "$scratch/out" '^softib/src/net/bad.c:1: '
[ "$(wc -l <"$scratch/out")" = 3 ] || fail "$(cat "$scratch/out")"

# Calls in one direction are permitted; calls in both directions are a circle, except through a table of operations.
for use in 'a b' 'b c' 'c a'; do
    name=${use% *}
    printf 'void %s(void);\nvoid %s(void) { %s(); }\n' "${use#* }" "$name" "${use#* }" | cc -x c -c - -o "$scratch/$name.c.o" ||
        fail "cannot compile"
done
"$SOURCE/tools/check-circles" "$scratch/a.c.o" "$scratch/b.c.o" >"$scratch/out" || fail "no circle was refused"
if "$SOURCE/tools/check-circles" "$scratch"/?.c.o >"$scratch/out"; then
    fail "a circle was accepted"
fi
expect_line "$scratch/out" '^3 files need each other'
"$SOURCE/tools/check-circles" --table c.c "$scratch"/?.c.o >"$scratch/out" || fail "the table was refused"
