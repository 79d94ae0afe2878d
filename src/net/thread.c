/* thread.c: the progress thread. It must not cost anything while the program is inside MPI. Therefore the
 * thread counts as a sleeper on the doorbell only while no thread of the program is in MPI: the last thread
 * to leave announces the sleeper, checks once more for work, and rings if there is work; the first thread to
 * enter withdraws the announcement. The progress thread itself stays asleep on the doorbell.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "net/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/log.h"
#include "base/tunable.h"

enum { PROGRESS_CALLS, PROGRESS_THREAD };
static TUNABLE_CHOICE(
    progress, "PROGRESS", PROGRESS_CALLS, "calls|thread",
    "Who moves messages while a program computes: nobody, so that messages move in MPI calls only (calls), "
    "or a thread of the library, which sleeps when there is nothing to do (thread).");

static COUNTER(wakes, "net_thread_wakes",
               "Times the progress thread found the program outside MPI and took over.");

/* Polls without an event before the thread sleeps: the peer of a transfer often answers within a few polls. */
#define IDLE_ROUNDS 4

bool net_thread_is_enabled(void)
{
    return progress.value == PROGRESS_THREAD;
}

/* Announces that the thread is about to sleep. Returns false if there is work already. */
static bool thread_announce(struct net_thread *t)
{
    t->announced = true;
    return net_sleep_begin(t->net) && net_hooks_next_deadline(t->net, true) != 0;
}

/* Returns the longest sleep in ns; 0: until the doorbell rings. */
static uint64_t thread_sleep_limit(const struct net_thread *t)
{
    const uint64_t rest = net_hooks_next_deadline(t->net, true);
    if (net_has_unsignalled_wait(t->net))
        return NET_NAP_NS;
    return rest == NET_FOREVER ? 0 : MAX(rest, 1u);
}

static void cancel_announced_sleep(struct net_thread *t)
{
    if (t->announced)
        net_sleep_end(t->net);
    t->announced = false;
}

void net_thread_pause(struct net_thread *t)
{
    if (atomic_fetch_add_explicit(&t->inside, 1, memory_order_relaxed) == 0)
        cancel_announced_sleep(t);
}

void net_thread_resume(struct net_thread *t)
{
    if (atomic_fetch_sub_explicit(&t->inside, 1, memory_order_release) != 1 || t->working)
        return;
    if (!thread_announce(t) || thread_sleep_limit(t) != 0)
        net_doorbell_ring(t->net->doorbell);
}

static bool is_program_inside_mpi(struct net_thread *t)
{
    return atomic_load_explicit(&t->inside, memory_order_acquire) != 0;
}

/* Makes progress until there is nothing to do or a thread of the program enters MPI. (When the last thread
 * leaves MPI, it announces the progress thread again.) */
static void thread_work(struct net_thread *t)
{
    struct net *net = t->net;
    cancel_announced_sleep(t);
    t->working = true;
    counter_add(&wakes, 1);
    for (int idle = 0; idle < IDLE_ROUNDS && !is_program_inside_mpi(t) && !biglock_has_waiters(net->lock);) {
        if (net_progress(net) > 0) {
            idle = 0;
            continue;
        }
        idle++;
        biglock_unlock(net->lock);
        sched_yield();
        biglock_lock_without_request(net->lock);
    }
    t->working = false;
}

static uint32_t thread_read_bell(const struct net_thread *t)
{
    return atomic_load_explicit(&t->net->doorbell->rings, memory_order_acquire);
}

/* Makes progress once under the lock. Returns the longest sleep in ns that may follow; 0: until the doorbell
 * rings. *rings: value of doorbell.rings before the last poll. */
static uint64_t thread_progress_once(struct net_thread *t, uint32_t *rings)
{
    struct net *net = t->net;
    uint64_t at_most = 0;
    *rings = thread_read_bell(t);
    if (is_program_inside_mpi(t))
        return at_most;
    biglock_lock_without_request(net->lock);
    while (!is_program_inside_mpi(t)) {
        thread_work(t);
        *rings = thread_read_bell(t);
        if (is_program_inside_mpi(t) || biglock_has_waiters(net->lock))
            break;
        at_most = thread_sleep_limit(t);
        if (thread_announce(t))
            break;
    }
    biglock_unlock(net->lock);
    return at_most;
}

static void *thread_run(void *arg)
{
    struct net_thread *t = arg;
    while (!atomic_load_explicit(&t->stop, memory_order_acquire)) {
        uint32_t rings;
        const uint64_t at_most = thread_progress_once(t, &rings);
        if (!atomic_load_explicit(&t->stop, memory_order_acquire))
            net_sleep(t->net, rings, at_most);
    }
    return NULL;
}

/* Creates the thread with all signals blocked, so that the program's handlers do not run in it. */
static int thread_create(struct net_thread *t)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&t->thread, NULL, thread_run, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* net->thread is set under the lock, because the new thread may call a tool that reads it. */
void net_thread_start(struct net *net)
{
    struct net_thread *t = calloc(1, sizeof(*t));
    int rc = ENOMEM;
    if (t) {
        t->net = net;
        biglock_lock(net->lock);
        rc = thread_create(t);
        net->thread = rc == 0 ? t : NULL;
        biglock_unlock(net->lock);
    }
    if (rc == 0) {
        pthread_setname_np(t->thread, "fishplate");
        return;
    }
    free(t);
    log_warn("FISHPLATE_PROGRESS is `thread`, but no thread can be started (%s); messages move in MPI calls "
             "only",
             err_reason(rc));
}

void net_thread_stop(struct net *net)
{
    struct net_thread *t = net->thread;
    if (!t)
        return;
    atomic_store_explicit(&t->stop, true, memory_order_release);
    net_doorbell_ring(net->doorbell);
    pthread_join(t->thread, NULL);
    cancel_announced_sleep(t);
    net->thread = NULL;
    free(t);
}
