#!/bin/sh
# rules.sh: check-rules finds one break of each rule, and nothing in a tree that keeps them.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

mkdir -p "$scratch/src/base" "$scratch/src/net/ib/policy" "$scratch/src/p2p" "$scratch/src/coll/algo"
echo 'static const int primes[] = {2, 3, 5};' >"$scratch/src/p2p/good.c"
echo 'char *v = getenv("HOME");' >"$scratch/src/base/good.h"
"$SOURCE/tools/check-rules" "$scratch" >"$scratch/out" || fail "a good tree was refused: $(cat "$scratch/out")"

echo 'char *home(void) { return getenv("HOME"); }' >"$scratch/src/p2p/setting.c"
printf 'static int count;\nstatic struct {\n    int x;\n} state;\n' >"$scratch/src/p2p/global.c"
echo '#include <time.h>' >"$scratch/src/coll/algo/clock.c"
echo '#include "net/ib/verbs.h"' >"$scratch/src/net/ib/policy/credit.c"
echo 'if (strcmp(t->name, "ib") == 0)' >"$scratch/src/p2p/name.c"
echo 'ep->conn.state = CONN_FAILED;' >"$scratch/src/net/ib/state.c"
echo 'struct shm *local(void);' >"$scratch/src/net/net.h"
echo 'void f(void) { CHECK(p != 0, "out of memory for a list"); }' >"$scratch/src/p2p/memory.c"
if "$SOURCE/tools/check-rules" "$scratch" >"$scratch/out"; then
    fail "a bad tree was accepted"
fi
expect_line "$scratch/out" '^src/p2p/setting.c:1: '
expect_line "$scratch/out" "^src/p2p/global.c:1: 'count'"
expect_line "$scratch/out" "^src/p2p/global.c:4: 'state'"
expect_line "$scratch/out" '^src/coll/algo/clock.c:1: '
expect_line "$scratch/out" '^src/net/ib/policy/credit.c:1: '
expect_line "$scratch/out" '^src/p2p/name.c:1: '
expect_line "$scratch/out" '^src/net/ib/state.c:1: '
expect_line "$scratch/out" '^src/net/net.h:1: '
expect_line "$scratch/out" '^src/p2p/memory.c:1: '
[ "$(wc -l <"$scratch/out")" = 9 ] || fail "$(cat "$scratch/out")"
