/* wait.c: how a rank waits: it polls for a short time, yields if other ranks may need the processor, then
 * sleeps on the doorbell, which every armed transport rings. If there are more ranks than processors no rank
 * spins.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/cpu.h"
#include "base/status_page.h"
#include "base/tunable.h"
#include "net/net.h"

static TUNABLE_INT(
    spin_us, "SPIN_US", 1000, 0, 100000000,
    "Microseconds that a waiting rank polls before it sleeps, when every rank has a core of its own.");
static LABORATORY_INT(
    yields, "YIELDS", 24, 0, 1000000,
    "How often a waiting rank gives its core to others before it sleeps, when ranks share cores.");

static COUNTER(sleeps, "net_sleeps", "Times a waiting thread went to sleep on the doorbell.");

#define POLLS_PER_CLOCK 64 /* idle polls between two reads of the clock */
#define REFUSALS        16 /* consecutive sleeps that transports may refuse because something has arrived */
#define UPDATE_NS       2000000 /* ns between two updates of the record of a wait during which something arrives */
#define LOOK_NS         100000000 /* ns between two checks for mistakes of the program, while a thread sleeps */

void net_doorbell_ring(struct doorbell *bell)
{
    atomic_fetch_add_explicit(&bell->rings, 1, memory_order_release);
    syscall(SYS_futex, &bell->rings, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void net_ring_own_doorbell(struct net *net)
{
    if (unlikely(atomic_load_explicit(&net->doorbell->sleepers, memory_order_relaxed) != 0))
        net_doorbell_ring(net->doorbell);
}

bool net_sleep_begin(struct net *net)
{
    atomic_fetch_add_explicit(&net->doorbell->sleepers, 1, memory_order_seq_cst);
    bool quiet = !net->notices || !net_has_new_deaths(net);
    for (int i = 0; i < net->ntransports; i++)
        quiet &= net->transports[i]->ops->arm(net->transports[i]);
    return quiet;
}

void net_sleep_end(struct net *net)
{
    for (int i = 0; i < net->ntransports; i++)
        if (net->transports[i]->ops->disarm)
            net->transports[i]->ops->disarm(net->transports[i]);
    atomic_fetch_sub_explicit(&net->doorbell->sleepers, 1, memory_order_relaxed);
}

/* No FUTEX_PRIVATE_FLAG: processes share the futex. */
void net_sleep(struct net *net, uint32_t rings, uint64_t at_most_ns)
{
    const struct timespec limit = {.tv_sec = (time_t)(at_most_ns / 1000000000u),
                                   .tv_nsec = (long)(at_most_ns % 1000000000u)};
    syscall(SYS_futex, &net->doorbell->rings, FUTEX_WAIT, rings, at_most_ns ? &limit : NULL, NULL, 0);
}

void net_wait_update_record(struct net *net, struct net_waiter *w)
{
    net->doctor->ends(net, w);
    w->record_id = 0;
}

/* True if the record of this wait must be written, or updated because something has arrived since. */
static bool needs_record_update(const struct net_waiter *w, uint64_t now)
{
    if (w->awaited_kind == NET_UNRECORDED)
        return false;
    return w->record_id ? w->stirred && now - w->shown >= UPDATE_NS
                        : now - w->begun >= PAGE_PATIENCE_MS * 1000000u;
}

/* Called while a waiter is idle: updates the hang-diagnosis record. Only here is the clock read, so that
 * short waits do not read it. */
void net_wait_update_idle(struct net *net, struct net_waiter *w, uint64_t now)
{
    if (w->since == 0)
        w->since = now;
    if (w->begun == 0)
        w->begun = now;
    if (w->record_id == 0 && now - net->ticked >= PAGE_TICK_MS * 1000000u) {
        net->ticked = now;
        net->doctor->tick(net, now);
    }
    if (needs_record_update(w, now)) {
        w->shown = now;
        w->stirred = false;
        net->doctor->waits(net, w);
    }
}

/* Lets the upper layers check for mistakes of the program that would keep this process asleep for ever. */
static void wait_check_program_errors(struct net *net, const struct net_waiter *w, uint64_t now)
{
    if (now - net->looked < LOOK_NS)
        return;
    net->looked = now;
    net->look(net->look_arg, w);
}

/* Releases the lock during sleep, so that other threads can enter MPI. */
static void sleep_unlocked(struct net *net, uint32_t rings, uint64_t limit)
{
    counter_add(&sleeps, 1);
    if (net->lock)
        biglock_unlock(net->lock);
    net_sleep(net, rings, limit);
    if (net->lock)
        biglock_lock(net->lock);
}

/* Sleeps until the doorbell rings, unless something arrived while the transports were armed. The sleep is
 * short (NET_NAP_NS) if an awaited event rings no doorbell: room in a peer's ring, or a write into memory. It
 * is also short if a transport repeatedly refuses to be armed although no progress follows: a rank that only
 * yields can keep other ranks, even the awaited one, from its processor (seen on Linux 6.18). */
static void sleep_on_doorbell(struct net *net, struct net_waiter *w)
{
    uint32_t before = atomic_load_explicit(&net->doorbell->rings, memory_order_acquire);
    const bool quiet = net_sleep_begin(net);
    if (!quiet && ++w->refused > REFUSALS) {
        sleep_unlocked(net, before, NET_NAP_NS);
    } else if (quiet && !(w->ready && w->ready(w->arg))) {
        const uint64_t now = clock_ns();
        const uint64_t rest = net_hooks_next_deadline(net, false);
        uint64_t limit = net_has_unsignalled_wait(net) ? NET_NAP_NS : net->look ? LOOK_NS : 0;
        if (net->look)
            wait_check_program_errors(net, w, now);
        if (likely(net->doctor != NULL)) {
            net_wait_update_idle(net, w, now);
            if ((w->record_id == 0 || w->stirred) && w->awaited_kind != NET_UNRECORDED && limit != NET_NAP_NS)
                limit = w->stirred ? UPDATE_NS : PAGE_PATIENCE_MS * 1000000u;
        }
        if (rest != NET_FOREVER && (limit == 0 || rest < limit))
            limit = MAX(rest, 1u);
        sleep_unlocked(net, before, limit);
    }
    net_sleep_end(net);
}

static __attribute__((cold, noinline)) void waiter_record_arrival(struct net *net, struct net_waiter *w)
{
    w->stirred = true;
    net->doctor->stirs(net, w);
}

static inline void net_waiter_restart(struct net *net, struct net_waiter *w)
{
    if (unlikely(w->record_id != 0))
        waiter_record_arrival(net, w);
    w->idle = w->look = w->refused = 0;
    w->since = 0;
}

void net_yield(struct net *net)
{
    if (net->lock)
        biglock_unlock(net->lock);
    sched_yield();
    if (net->lock)
        biglock_lock(net->lock);
}

static void idle_oversubscribed(struct net *net, struct net_waiter *w)
{
    if (w->idle <= (unsigned)yields.value)
        net_yield(net);
    else
        sleep_on_doorbell(net, w);
}

static void idle_dedicated(struct net *net, struct net_waiter *w)
{
    cpu_relax();
    if (w->idle < w->look)
        return;
    w->look = w->idle + POLLS_PER_CLOCK;
    if (net->lock && biglock_share_with_waiters(net->lock))
        return; /* another thread may have completed the awaited operation: check before sleeping */
    uint64_t now = clock_ns();
    if (likely(net->doctor != NULL))
        net_wait_update_idle(net, w, now);
    if (w->since == 0)
        w->since = now;
    else if (now - w->since >= (uint64_t)spin_us.value * 1000)
        sleep_on_doorbell(net, w);
}

void net_wait_step(struct net *net, struct net_waiter *w)
{
    if (net_progress(net) > 0) {
        net_waiter_restart(net, w);
        if (unlikely(net->lock != NULL))
            biglock_share_with_waiters(net->lock);
        return;
    }
    w->idle++;
    /* With more waiting threads than processors, a thread that spins keeps others from running. */
    if (unlikely(net->oversubscribed || net->waiting > net->cpus))
        idle_oversubscribed(net, w);
    else
        idle_dedicated(net, w);
}

/* Polls the transports in a tight loop, so that the flag is seen at once. True if the flag is set. */
static inline bool poll_until_flag(struct net *net, const _Atomic int *flag, int burst, struct net_waiter *w)
{
    struct transport *t = net->transports[0];
    int (*poll)(struct transport *) = t->ops->poll;
    for (int i = 0; i < burst; i++) {
        int events = poll(t);
        for (int k = 1; k < net->nouter; k++)
            events += net->transports[k]->ops->poll(net->transports[k]);
        if (events > 0 && w)
            net_waiter_restart(net, w);
        if (atomic_load_explicit(flag, memory_order_acquire) != 0)
            return true;
        if (events > 0 && !list_empty(&net->hooks))
            return false;
        if (w) /* not in the first burst: on some processors pausing takes as long as a message */
            cpu_relax();
    }
    return atomic_load_explicit(flag, memory_order_acquire) != 0;
}

static __attribute__((noinline)) void wait_longer(struct net *net, const _Atomic int *flag, int burst,
                                                  const struct request_set *all)
{
    struct net_waiter w = {.awaited_kind = all ? NET_ALL_OF : NET_FLAG,
                           .awaited = all ? (const void *)all : flag};
    do {
        w.idle += (unsigned)burst;
        net_wait_step(net, &w);
    } while (!poll_until_flag(net, flag, burst, &w));
    net_wait_end(net, &w);
}

/* The common wait: for one message. The transports are polled in bursts. Between two bursts net_progress does
 * all other work (messages to oneself, sends that wait for room); if something has arrived and collective
 * schedules are active, it does so at once. */
void net_wait_among(struct net *net, const _Atomic int *flag, const struct request_set *all)
{
    const bool threads = unlikely(net->lock != NULL);
    const int burst = net->oversubscribed || threads ? 0 : POLLS_PER_CLOCK;
    net->waiting += threads; /* with the lock held */
    if (!poll_until_flag(net, flag, burst, NULL))
        wait_longer(net, flag, burst, all);
    net->waiting -= threads;
}
