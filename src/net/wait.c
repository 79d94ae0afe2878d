/* wait.c: polite waiting. Spin while that is cheap, yield while others may need the processor, then sleep on
 * the doorbell, which every transport rings once it is armed. With more ranks than processors nobody spins.
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
#include "base/tunable.h"
#include "net/net.h"

static TUNABLE_INT(
    spin_us, "SPIN_US", 1000, 0, 100000000,
    "Microseconds that a waiting rank polls before it sleeps, when every rank has a core of its own.");
static TUNABLE_INT(
    yields, "YIELDS", 24, 0, 1000000,
    "How often a waiting rank gives its core to others before it sleeps, when ranks share cores.");

static COUNTER(sleeps, "net_sleeps", "Times a waiting thread went to sleep on the doorbell.");

#define POLLS_PER_LOOK 64        /* idle polls between two looks at the clock */
#define LOOK_NS        100000000 /* between two looks for mistakes, while a thread sleeps */

void net_doorbell_ring(struct doorbell *bell)
{
    atomic_fetch_add_explicit(&bell->rings, 1, memory_order_release);
    syscall(SYS_futex, &bell->rings, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void net_ring_self(struct net *net)
{
    if (unlikely(atomic_load_explicit(&net->doorbell->sleepers, memory_order_relaxed) != 0))
        net_doorbell_ring(net->doorbell);
}

bool net_sleep_begin(struct net *net)
{
    atomic_fetch_add_explicit(&net->doorbell->sleepers, 1, memory_order_seq_cst);
    bool quiet = true;
    for (int i = 0; i < net->ntransports; i++)
        quiet &= net->transports[i]->ops->arm(net->transports[i]);
    return quiet;
}

void net_sleep_end(struct net *net)
{
    for (int i = 0; i < net->ntransports; i++)
        net->transports[i]->ops->disarm(net->transports[i]);
    atomic_fetch_sub_explicit(&net->doorbell->sleepers, 1, memory_order_relaxed);
}

/* The futex is shared between processes. */
static void sleep_for(struct net *net, uint32_t rings, const struct timespec *time)
{
    syscall(SYS_futex, &net->doorbell->rings, FUTEX_WAIT, rings, time, NULL, 0);
}

static const struct timespec nap_time = {.tv_nsec = 50000}, look_time = {.tv_nsec = LOOK_NS};

void net_sleep(struct net *net, uint32_t rings, bool nap)
{
    sleep_for(net, rings, nap ? &nap_time : NULL);
}

static void look(struct net *net)
{
    const uint64_t now = clock_ns();
    if (now - net->looked < LOOK_NS)
        return;
    net->looked = now;
    net->look(net->look_arg);
}

/* Sleeps until the doorbell rings, unless something arrived while we were arming. While sends wait for room
 * in a peer's ring it is a nap: nobody rings when room appears, or when a peer has written into memory. */
static void sleep_on_doorbell(struct net *net, struct net_waiter *w)
{
    uint32_t before = atomic_load_explicit(&net->doorbell->rings, memory_order_acquire);
    if (net_sleep_begin(net) && !(w->ready && w->ready(w->arg))) {
        const bool nap = net_unrung(net);
        counter_add(&sleeps, 1);
        if (net->look)
            look(net);
        if (net->lock)
            biglock_drop(net->lock);
        sleep_for(net, before, nap ? &nap_time : net->look ? &look_time : NULL);
        if (net->lock)
            biglock_take(net->lock);
    }
    net_sleep_end(net);
}

static inline void net_waiter_restart(struct net_waiter *w)
{
    w->idle = w->look = 0;
    w->since = 0;
}

static void idle_shared(struct net *net, struct net_waiter *w)
{
    if (w->idle <= (unsigned)yields.value) {
        if (net->lock)
            biglock_drop(net->lock);
        sched_yield();
        if (net->lock)
            biglock_take(net->lock);
    } else {
        sleep_on_doorbell(net, w);
    }
}

static void idle_alone(struct net *net, struct net_waiter *w)
{
    cpu_relax();
    if (w->idle < w->look)
        return;
    w->look = w->idle + POLLS_PER_LOOK;
    if (net->lock && biglock_share(net->lock))
        return; /* another thread may have brought what we wait for: look before sleeping */
    uint64_t now = clock_ns();
    if (w->since == 0)
        w->since = now;
    else if (now - w->since >= (uint64_t)spin_us.value * 1000)
        sleep_on_doorbell(net, w);
}

void net_wait_step(struct net *net, struct net_waiter *w)
{
    if (net_progress(net) > 0) {
        net_waiter_restart(w);
        if (unlikely(net->lock != NULL))
            biglock_share(net->lock);
        return;
    }
    w->idle++;
    /* More threads that wait than processors: each that spins keeps another from what it waits for. */
    if (unlikely(net->oversubscribed || net->waiting > net->cpus))
        idle_shared(net, w);
    else
        idle_alone(net, w);
}

/* The common wait: for one message. The transports are polled in a loop of its own, so that the flag is seen
 * at once; everything else (messages to oneself, sends that wait for room) gets its turn between bursts, and
 * schedules of collectives as soon as something has arrived. */
static void wait_for(struct net *net, const _Atomic int *flag)
{
    struct net_waiter w = {0};
    struct transport *t = net->transports[0];
    int (*poll)(struct transport *) = t->ops->poll;
    int burst = net->oversubscribed || net->lock ? 0 : POLLS_PER_LOOK;
    for (;;) {
        for (int i = 0; i < burst; i++) {
            int events = poll(t);
            for (int k = 1; k < net->nouter; k++)
                events += net->transports[k]->ops->poll(net->transports[k]);
            if (events > 0)
                net_waiter_restart(&w);
            if (atomic_load_explicit(flag, memory_order_acquire) != 0)
                return;
            if (events > 0 && !list_empty(&net->hooks))
                break;
            if (w.idle >
                0) /* not in the first burst: on some processors the hint costs as much as a message */
                cpu_relax();
        }
        if (atomic_load_explicit(flag, memory_order_acquire) != 0)
            return;
        w.idle += (unsigned)burst;
        net_wait_step(net, &w);
    }
}

void net_wait(struct net *net, const _Atomic int *flag)
{
    if (likely(!net->lock)) {
        wait_for(net, flag);
        return;
    }
    net->waiting++; /* with the lock held */
    wait_for(net, flag);
    net->waiting--;
}
