#!/bin/sh
# rules.sh: check-rules finds a violation of each rule, and nothing in a tree without violations.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

# Writes a C file with its head.
write_c_file() {
    printf '/* %s: a test.\n *\n * SPDX-License-Identifier: Apache-2.0 */\n' "$(basename "$1")" >"$scratch/$1"
    printf '%s\n' "$2" >>"$scratch/$1"
}

mkdir -p "$scratch/src/base" "$scratch/src/net/ib/policy" "$scratch/src/p2p" "$scratch/src/coll/algo"
echo 'src/base, src/net, src/net/ib/policy, src/p2p and src/coll/algo' >"$scratch/README.md"
write_c_file src/p2p/good.c 'static const int primes[] = {2, 3, 5};'
write_c_file src/base/good.h 'char *v = getenv("HOME");'
"$SOURCE/tools/check-rules" "$scratch" >"$scratch/out" || fail "a good tree was refused: $(cat "$scratch/out")"

write_c_file src/p2p/setting.c 'char *home(void) { return getenv("HOME"); }'
write_c_file src/p2p/global.c 'static int count;
static struct {
    int x;
} state;'
write_c_file src/p2p/size.c 'static const unsigned long eight = sizeof eight;'
echo 'int headless(void);' >"$scratch/src/p2p/headless.h"
write_c_file src/coll/algo/clock.c '#include <time.h>'
write_c_file src/net/ib/policy/credit.c '#include "net/ib/device/verbs.h"'
write_c_file src/p2p/name.c 'if (strcmp(t->name, "ib") == 0)'
write_c_file src/net/ib/state.c 'ep->conn.state = CONN_FAILED;'
write_c_file src/net/net.h 'struct shm *local(void);'
write_c_file src/p2p/memory.c 'void f(void) { CHECK(p != 0, "out of memory for a list"); }'
write_c_file src/p2p/ends.c 'void g(void) { CHECK_MEMORY(p, "a list"); }'
mkdir -p "$scratch/src/p2p/nameless"
write_c_file src/p2p/nameless/one.c 'int one(void);'
write_c_file src/p2p/nameless/two.c 'int two(void);'
write_c_file src/p2p/turns.c 'void h(struct p2p_request *r) { r->state = 3; }'
write_c_file src/p2p/mechanisms.c 'snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
fd = accept4(listener, NULL, NULL, 0);
hmac_sha256_init(&h, key, sizeof(key));
if (shlock_try(l, &user, &owner) == SHLOCK_BUSY)
pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
fd = open(path, O_RDWR | O_CREAT, 0600);'
if "$SOURCE/tools/check-rules" "$scratch" >"$scratch/out"; then
    fail "a bad tree was accepted"
fi
expect_line "$scratch/out" '^src/p2p/setting.c:4: '
expect_line "$scratch/out" "^src/p2p/global.c:4: 'count'"
expect_line "$scratch/out" "^src/p2p/global.c:7: 'state'"
expect_line "$scratch/out" '^src/coll/algo/clock.c:4: '
expect_line "$scratch/out" '^src/net/ib/policy/credit.c:4: '
expect_line "$scratch/out" '^src/p2p/name.c:4: '
expect_line "$scratch/out" '^src/net/ib/state.c:4: '
expect_line "$scratch/out" '^src/net/net.h:4: '
expect_line "$scratch/out" '^src/p2p/memory.c:4: '
expect_line "$scratch/out" '^src/p2p/ends.c:4: '
expect_line "$scratch/out" '^src/p2p/turns.c:4: only src/p2p/engine.h'
expect_line "$scratch/out" '^src/p2p/nameless: has no README.md'
expect_line "$scratch/out" '^src/p2p/size.c:4: write sizeof'
expect_line "$scratch/out" '^src/p2p/headless.h:1: a file begins with'
for line in 4 5 6 7 8 9; do
    expect_line "$scratch/out" "^src/p2p/mechanisms.c:$line: "
done
[ "$(wc -l <"$scratch/out")" = 20 ] || fail "$(cat "$scratch/out")"
