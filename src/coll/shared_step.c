/* shared_step.c: posting, meeting and waiting in a shared block. Flags are written with release and read with
 * acquire. Who sleeps is woken by whoever makes its wait end: in a meeting that is the last to arrive, which
 * knows it because it finds everyone else there (of two that arrive together at least one does, since both
 * order their post before their look).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/cpu.h"
#include "coll/shared.h"

#define SPINS 200 /* looks at a flag between two rounds of progress, when nobody needs this processor */

struct wait {
    struct shared *b;
    uint64_t step;
    int next; /* meeting: the ranks before it have arrived */
};

void shared_wake(struct shared *b, int rank)
{
    net_ring_local(b->comm->proc->net, group_job_rank(b->comm->group, rank));
}

void shared_wake_all(struct shared *b)
{
    for (int r = 0; r < b->comm->size; r++)
        if (r != b->comm->rank)
            shared_wake(b, r);
}

static uint64_t posted(const struct shared *b, int rank, uint64_t step)
{
    return atomic_load_explicit(&b->head->rank[rank].flag[step % SHARED_DEPTH].posted,
                                memory_order_acquire) >>
           SHARED_MARK_BITS;
}

static void describe(uint64_t what, int rank, char *out, size_t size)
{
    const enum coll_kind kind = (enum coll_kind)(what >> 56);
    const char *name = kind < COLL_KINDS ? coll_kind_name(kind) : "nothing that is known";
    snprintf(out, size, "rank %d is in %s (%llu bytes, root %d)", rank, name,
             (unsigned long long)(what & 0xffffffffffu), (int)(what >> 40 & 0xffff));
}

static __attribute__((noinline, cold)) void note_stranger(struct shared *b, int rank)
{
    if (b->stranger)
        return;
    b->stranger = rank + 1;
    b->theirs = atomic_load_explicit(&b->head->rank[rank].what, memory_order_relaxed);
}

/* Calls of one step each leave the flags in order, and the communicator goes on; after longer ones the ranks
 * are out of step, which the standard allows after an error. */
int shared_mismatch(struct shared *b)
{
    char mine[96], other[96];
    describe(b->what, b->comm->rank, mine, sizeof(mine));
    describe(b->theirs, b->stranger - 1, other, sizeof(other));
    b->stranger = 0;
    return err_set(MPI_ERR_OTHER,
                   "collective calls do not match on %s: %s, but %s; run it with FISHPLATE_DEBUG=coll to see "
                   "both calls",
                   comm_label(b->comm), mine, other);
}

/* Flags of other steps than the one asked for hold other numbers; zero means never used. */
static bool arrived(struct shared *b, int rank, uint64_t step)
{
    uint64_t flag =
        atomic_load_explicit(&b->head->rank[rank].flag[step % SHARED_DEPTH].posted, memory_order_acquire);
    if (flag >> SHARED_MARK_BITS < step)
        return false;
    if (unlikely((flag & ((1u << SHARED_MARK_BITS) - 1)) != b->mark))
        note_stranger(b, rank);
    return true;
}

static bool all_arrived(void *arg)
{
    struct wait *w = arg;
    while (w->next < w->b->comm->size && !w->b->stranger) {
        if (!arrived(w->b, w->next, w->step))
            return false;
        w->next++;
    }
    return true;
}

static bool one_arrived(void *arg)
{
    struct wait *w = arg;
    return arrived(w->b, w->next, w->step);
}

/* Is this rank done with the step? It says so, or it has posted a later one. */
static bool is_done(const struct shared *b, int rank, uint64_t step)
{
    if (rank == b->comm->rank)
        return true;
    if (atomic_load_explicit(&b->head->rank[rank].done, memory_order_acquire) >= step)
        return true;
    for (uint64_t later = step + 1; later != b->step + 1; later++)
        if (posted(b, rank, later) >= later)
            return true;
    return false;
}

static bool all_done(void *arg)
{
    struct wait *w = arg;
    while (w->next < w->b->comm->size) {
        if (!is_done(w->b, w->next, w->step))
            return false;
        w->next++;
    }
    return true;
}

static void wait_for(struct wait *w, bool (*ready)(void *))
{
    struct net *net = w->b->comm->proc->net;
    struct net_waiter waiter = {.ready = ready, .arg = w};
    for (;;) {
        for (int i = net->oversubscribed ? 1 : SPINS; i > 0; i--) {
            if (ready(w))
                return;
            if (i < SPINS / 2) /* on some processors the hint costs as much as a step */
                cpu_relax();
        }
        net_wait_step(net, &waiter);
    }
}

/* Somebody may wait for this rank to be done with a step; that is rare, so one word says whether anybody
 * does. */
static void announce(struct shared *b)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (unlikely(atomic_load_explicit(&b->head->waiting, memory_order_relaxed) != 0))
        shared_wake_all(b);
}

uint64_t shared_begin(struct shared *b, size_t bytes)
{
    const uint64_t step = ++b->step, depth = bytes > SHARED_SMALL ? SHARED_DEPTH_BIG : SHARED_DEPTH;
    if (unlikely(step > b->safe + depth)) {
        struct wait w = {.b = b, .step = step - depth};
        if (!all_done(&w)) {
            atomic_fetch_add_explicit(&b->head->waiting, 1, memory_order_seq_cst);
            wait_for(&w, all_done);
            atomic_fetch_sub_explicit(&b->head->waiting, 1, memory_order_relaxed);
        }
        b->safe = step - depth;
    }
    return step;
}

void shared_post(struct shared *b, uint64_t step)
{
    atomic_store_explicit(&b->head->rank[b->comm->rank].flag[step % SHARED_DEPTH].posted,
                          step << SHARED_MARK_BITS | b->mark, memory_order_release);
}

bool shared_wait(struct shared *b, int rank, uint64_t step)
{
    struct wait w = {.b = b, .step = step, .next = rank};
    if (!one_arrived(&w))
        wait_for(&w, one_arrived);
    if (unlikely(b->stranger))
        return false;
    if (b->comm->size == 2) /* the only other rank has begun this step */
        b->safe = step - 1;
    return true;
}

bool shared_meet(struct shared *b, uint64_t step)
{
    struct wait w = {.b = b, .step = step};
    shared_post(b, step);
    announce(b);
    if (all_arrived(&w))
        shared_wake_all(b);
    else
        wait_for(&w, all_arrived);
    if (unlikely(b->stranger))
        return false;
    b->safe = step - 1;
    return true;
}

void shared_done(struct shared *b, uint64_t step)
{
    atomic_store_explicit(&b->head->rank[b->comm->rank].done, step, memory_order_release);
    announce(b);
}
