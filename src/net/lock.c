/* lock.c: waits for locks in the node's shared memory. A waiter polls, then yields its processor, then sleeps
 * for short times: the owner rings no doorbell. It makes no progress, because locks are also acquired inside
 * progress.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/lock.h"

#include <sched.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/cpu.h"
#include "net/lost.h"

static COUNTER(
    waits, "shared_lock_waits",
    "Times that a lock in the node's shared memory was held by another rank and had to be waited for.");
static COUNTER(
    taken_over, "shared_locks_taken_over",
    "Locks in the node's shared memory that were taken over from a rank that died while it held them.");

#define POLLS  64 /* before the processor is first yielded */
#define YIELDS 64 /* sched_yield calls before the first sleep */

static bool owner_is_dead(void *arg, uint32_t number)
{
    const struct net *net = arg;
    return net_lost_is_reported(net, net->world, number);
}

/* Pauses between two attempts. */
static void lock_pause(struct net *net, struct net_waiter *w, unsigned round)
{
    if (round < POLLS) {
        cpu_relax();
    } else if (round < POLLS + YIELDS) {
        sched_yield();
    } else {
        if (net->doctor)
            net_wait_update_idle(net, w, clock_ns());
        net_sleep(net, atomic_load_explicit(&net->doorbell->rings, memory_order_relaxed), NET_NAP_NS);
    }
}

enum shlock_result net_lock_wait(struct net *net, struct shlock *l, const char *name, uint32_t *dead)
{
    const struct shlock_user user = {.number = net->rank, .is_dead = owner_is_dead, .arg = net};
    struct net_named wait = {.name = name, .is_lock = true};
    struct net_waiter waiter = {.awaited_kind = NET_NAMED, .awaited = &wait};
    enum shlock_result result;
    counter_add(&waits, 1);
    uint32_t before = UINT32_MAX;
    for (unsigned round = 0; (result = shlock_try(l, &user, &wait.rank)) == SHLOCK_BUSY; round++) {
        waiter.stirred |= wait.rank != before; /* the owner has changed: update the record, which names it */
        before = wait.rank;
        lock_pause(net, &waiter, round);
    }
    net_wait_end(net, &waiter);
    counter_add(&taken_over, result == SHLOCK_TAKEN_OVER);
    *dead = wait.rank;
    return result;
}

void net_lock_wait_until_ready(struct net *net, const char *name, uint32_t owner, bool (*ready)(void *arg),
                               void *arg)
{
    const struct net_named wait = {.name = name, .rank = owner, .is_lock = true};
    struct net_waiter waiter = {.awaited_kind = NET_NAMED, .awaited = &wait};
    for (unsigned round = 0; !ready(arg) && !net_lost_is_reported(net, net->world, owner); round++)
        lock_pause(net, &waiter, round);
    net_wait_end(net, &waiter);
}
