/* t_share.c: which thread a large copy wakes for help. The target's engine thread is woken if no thread of
 * the target polls, but not while the target copies too, since it would take the processor from the
 * copying thread. Both ends are this process, and the kernel executes the copies; only wake-ups are
 * simulated by a counter. And which copies end when their sender has died.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "expect.h"
#include "memory/copy.h"
#include "memory/share.h"
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES (1u << 20)

struct proc proc;
unsigned shlock_self = 1;
static int wakeups;
static unsigned copying_threads_max; /* the largest recorded number of copying threads */

void member_ring(uint32_t slot)
{
    (void)slot;
    wakeups++;
}

bool member_is_alive(uint32_t slot)
{
    (void)slot;
    return true;
}

static const unsigned living = 3 * MEMBERS + 5, dead = 2 * MEMBERS + 6; /* as shlock_name makes them */

bool shlock_owner_alive(unsigned owner)
{
    return owner != dead;
}

void shlock_lock_contended(struct shlock *l) /* used by atomics only, which this test does not execute */
{
    (void)l;
    abort();
}

static void record_copying_threads(void)
{
    unsigned now = atomic_load(&proc.arena->copying);
    copying_threads_max = now > copying_threads_max ? now : copying_threads_max;
}

/* Replace process_vm_readv and process_vm_writev of the C library. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *l, unsigned long nl, const struct iovec *r,
                         unsigned long nr, unsigned long flags)
{
    record_copying_threads();
    return syscall(SYS_process_vm_readv, pid, l, nl, r, nr, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *l, unsigned long nl, const struct iovec *r,
                          unsigned long nr, unsigned long flags)
{
    record_copying_threads();
    return syscall(SYS_process_vm_writev, pid, l, nl, r, nr, flags);
}

/* Copies `n` bytes and returns how often the target was woken. */
static int copy_and_count_wakeups(struct peer *to, bool inward, size_t n, bool target_copies)
{
    static char from[BYTES], into[BYTES];
    struct iovec near = {inward ? into : from, n};
    struct rseg far = {.addr = (uintptr_t)(inward ? from : into), .len = n};
    for (size_t i = 0; i < n; i++)
        from[i] = (char)(i * 7 + n);
    memset(into, 0, n);
    wakeups = 0;
    copying_threads_max = 0;
    atomic_store(&to->unhelped, 0);
    atomic_store(&to->until_share, 0);
    atomic_store(&to->arena->copying, target_copies);
    EXPECT(inward ? copy_from_peer(to, &far, 1, &near, 1, n) : copy_to_peer(to, &far, 1, &near, 1, n));
    EXPECT(memcmp(from, into, n) == 0);
    EXPECT(copying_threads_max == 1);
    EXPECT(atomic_load(&proc.arena->copying) == 0);
    return wakeups;
}

static void begin_copy(struct sh_copy *c, unsigned sender)
{
    atomic_store(&c->lock.owner, sender);
    atomic_store(&c->next, 7ull << 32);
}

static bool has_unclaimed_pieces(struct sh_copy *c)
{
    return (atomic_load(&c->next) & 0xffffffff) == 0;
}

/* The sender of an open copy waits for pieces that nobody claims if the copy is ended while it lives. */
static void test_only_copies_of_dead_senders_end(void)
{
    struct sh_copy *c = proc.arena->copy;
    begin_copy(&c[0], living);
    begin_copy(&c[1], dead);
    share_release_dead();
    EXPECT(has_unclaimed_pieces(&c[0]));
    EXPECT(!has_unclaimed_pieces(&c[1]));
}

int main(void)
{
    struct arena *mine = aligned_alloc(4096, (sizeof(*mine) + 4095) / 4096 * 4096), *its;
    its = aligned_alloc(4096, (sizeof(*its) + 4095) / 4096 * 4096);
    struct peer *to = calloc(1, sizeof(*to));
    if (!mine || !its || !to)
        return 1;
    memset(mine, 0, sizeof(*mine));
    memset(its, 0, sizeof(*its));
    proc.arena = mine;
    proc.pid = to->pid = getpid();
    to->arena = its;
    for (int inward = 0; inward < 2; inward++) {
        EXPECT(copy_and_count_wakeups(to, inward, BYTES, false) == 1);
        EXPECT(copy_and_count_wakeups(to, inward, BYTES, true) == 0);
        /* The message is too short to be shared: no other process is woken. */
        EXPECT(copy_and_count_wakeups(to, inward, SHARE_MIN - 4096, false) == 0);
    }
    test_only_copies_of_dead_senders_end();
    free(to);
    free(its);
    free(mine);
    return failures != 0;
}
