/* step_flags.c: posts flags, synchronises and waits in a shared block. Flags are written with release and
 * read with acquire. The rank that fulfils the condition of a waiting rank wakes it. In a synchronisation
 * this is the last rank to arrive, which sees the flags of all other ranks. If two ranks arrive at the same
 * time, at least one sees all flags, since both order their post before their poll.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/cpu.h"
#include "coll/shm/block.h"

/* Polls of a flag before the first call of progress, if this rank has its own processor. */
#define SPINS       200
#define SPINS_LATER 2 /* polls between later calls of progress, which handle messages of other ranks */

struct wait {
    struct shared *b;
    uint64_t step;
    int next; /* first rank that has not arrived */
};

/* Describes a call: "rank 1 called MPI_Bcast with root 0 (16 bytes)". */
static void flag_describe(uint64_t what, int rank, char *out, size_t size)
{
    const unsigned kind = (unsigned)(what >> 56) - 1;
    char root[32] = "", bytes[40] = "";
    if (kind_has_root(kind))
        snprintf(root, sizeof(root), " with root %d", (int)(what >> 40 & 0xffff));
    if (kind != COLL_BARRIER)
        snprintf(bytes, sizeof(bytes), " (%llu bytes)", (unsigned long long)(what & ~SHARED_WHAT_KIND));
    snprintf(out, size, "rank %d called %s%s%s", rank,
             kind < COLL_KINDS ? coll_call_name((enum coll_kind)kind, FORM_BLOCKING) : "another operation",
             root, bytes);
}

/* Records a rank that is in a different call. `differs`: the bits in which the marks differ. */
static __attribute__((noinline, cold)) void record_mismatched_rank(struct shared *b, int rank,
                                                                   uint64_t differs)
{
    const struct shared_rank *it = &b->head->rank[rank];
    const bool earlier = (differs & ((1u << SHARED_MARK_BITS) - 1)) == 0;
    if (b->mismatched_rank || (earlier && b->mismatch_reported))
        return;
    b->mismatched_rank = rank + 1;
    b->mismatch_is_earlier = earlier;
    b->mismatched_call = atomic_load_explicit(earlier ? &it->previous_call : &it->call, memory_order_relaxed);
}

/* Builds the error for calls that do not match. If each call has one step, the communicator remains
 * usable. After longer calls the step numbers of the ranks differ, which the standard permits after an
 * error. */
int shared_mismatch(struct shared *b)
{
    char mine[96], other[96];
    const uint64_t before =
        atomic_load_explicit(&b->head->rank[b->comm->rank].previous_call, memory_order_relaxed);
    flag_describe(b->mismatch_is_earlier ? before : b->call, b->comm->rank, mine, sizeof(mine));
    flag_describe(b->mismatched_call, b->mismatched_rank - 1, other, sizeof(other));
    /* The error has been returned: mismatch_check_all() must not end the job for it. */
    b->comm->coll->past[FORM_BLOCKING][(b->comm->coll_sequence[FORM_BLOCKING] - 1 - b->mismatch_is_earlier) %
                                       COLL_PAST] = COLL_KIND_REPORTED;
    b->mismatched_rank = 0;
    b->mismatch_reported = true;
    return err_set(
        MPI_ERR_OTHER,
        "collective calls do not match on %s%s: %s, but %s; run it with FISHPLATE_DEBUG=coll to see "
        "counts, datatypes and source lines",
        comm_label(b->comm), b->mismatch_is_earlier ? " (the call before this one)" : "", mine, other);
}

bool shared_has_posted(const struct shared *b, int rank, uint64_t step)
{
    return atomic_load_explicit(&b->head->rank[rank].flag[step % SHARED_DEPTH].posted,
                                memory_order_acquire) >>
           SHARED_WORD_BITS >= step;
}

/* True if the rank has posted this step or a later one. Records a mismatch if the marks differ. */
static bool flag_has_arrived(struct shared *b, int rank, uint64_t step)
{
    const uint64_t flag =
        atomic_load_explicit(&b->head->rank[rank].flag[step % SHARED_DEPTH].posted, memory_order_acquire);
    if (!slot_is_posted(flag >> SHARED_WORD_BITS, step))
        return false;
    const uint64_t differs = (flag ^ b->marks) & ((1u << SHARED_MARKS_BITS) - 1);
    if (unlikely(differs != 0))
        record_mismatched_rank(b, rank, differs);
    return true;
}

static bool all_arrived(void *arg)
{
    struct wait *w = arg;
    while (w->next < w->b->comm->size && !w->b->mismatched_rank) {
        if (!flag_has_arrived(w->b, w->next, w->step))
            return false;
        w->next++;
    }
    return true;
}

static bool has_next_arrived(void *arg)
{
    struct wait *w = arg;
    return flag_has_arrived(w->b, w->next, w->step);
}

static bool has_reported_step(const struct shared *b, int rank, uint64_t step)
{
    return rank == b->comm->rank ||
           atomic_load_explicit(&b->head->rank[rank].done, memory_order_acquire) >= step;
}

static bool has_next_reported(void *arg)
{
    struct wait *w = arg;
    return has_reported_step(w->b, w->next, w->step);
}

static bool all_done(void *arg)
{
    struct wait *w = arg;
    while (w->next < w->b->comm->size) {
        if (!has_reported_step(w->b, w->next, w->step))
            return false;
        w->next++;
    }
    return true;
}

void shared_wait_until(struct shared *b, bool (*ready)(void *), void *w)
{
    struct net *net = b->comm->proc->net;
    struct net_waiter waiter = {.ready = ready, .arg = w, .awaited_kind = NET_MEMBERS, .awaited = b->comm};
    for (int spins = net->oversubscribed ? 1 : SPINS;; spins = MIN(spins, SPINS_LATER)) {
        for (int i = spins; i > 0; i--) {
            if (ready(w)) {
                net_wait_end(net, &waiter);
                return;
            }
            if (i < SPINS / 2) /* on some processors the pause instruction takes as long as a step */
                cpu_relax();
        }
        net_wait_step(net, &waiter);
    }
}

/* Reads the `done` words of other ranks. They are often ahead, which saves later reads. */
static void flag_read_progress(struct shared *b, int reader)
{
    for (int r = 0; r < b->comm->size; r++)
        if (r != b->comm->rank && (reader == SHARED_EVERYONE || reader == r))
            b->seen[r] = atomic_load_explicit(&b->head->rank[r].done, memory_order_acquire);
    b->safe = MAX(b->safe, slots_min_reported(b->seen, b->comm->size, b->comm->rank));
}

/* Waits for readers. This rank has read all data of earlier steps and must report that first, since the
 * awaited ranks may wait for this report: a long call that only sends uses all flags without reporting. */
static void wait_for_readers(struct wait *w, bool (*ready)(void *))
{
    struct shared *b = w->b;
    const uint64_t must = slots_step_to_report(b->reported, b->step);
    if (must != b->reported)
        shared_report_step(b, must);
    atomic_fetch_add_explicit(&b->head->waiting, 1, memory_order_seq_cst);
    shared_wait_until(b, ready, w);
    atomic_fetch_sub_explicit(&b->head->waiting, 1, memory_order_relaxed);
}

void shared_wait_readers_done(struct shared *b, uint64_t step, int reader)
{
    bool (*const ready)(void *) = reader == SHARED_EVERYONE ? all_done : has_next_reported;
    struct wait w = {.b = b, .step = step, .next = reader == SHARED_EVERYONE ? 0 : reader};
    if (!ready(&w))
        wait_for_readers(&w, ready);
    flag_read_progress(b, reader);
}

static bool has_accepted_or_reported(void *arg)
{
    struct wait *w = arg;
    return atomic_load_explicit(&w->b->head->rank[w->next].accept, memory_order_acquire) == w->step ||
           has_reported_step(w->b, w->next, w->step);
}

bool shared_wait_accepted(struct shared *b, int reader, uint64_t step)
{
    struct wait w = {.b = b, .step = step, .next = reader};
    /* Orders the post before the load of `accept`; pairs with the fence in split_copy_cancel(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (!has_accepted_or_reported(&w))
        wait_for_readers(&w, has_accepted_or_reported);
    return atomic_load_explicit(&b->head->rank[reader].accept, memory_order_acquire) == step;
}

bool shared_wait(struct shared *b, int rank, uint64_t step)
{
    struct wait w = {.b = b, .step = step, .next = rank};
    if (!has_next_arrived(&w))
        shared_wait_until(b, has_next_arrived, &w);
    if (unlikely(b->mismatched_rank))
        return false;
    if (b->comm->size == 2) /* the other rank has begun this step, so it is done with the previous one */
        b->safe = MAX(b->safe, step - 1);
    return true;
}

struct part_wait {
    struct wait w; /* first member */
    uint64_t have, parts;
};

static bool part_arrived(void *arg)
{
    struct part_wait *p = arg;
    const struct shared *b = p->w.b;
    const _Atomic uint64_t *part = &b->head->rank[p->w.next].flag[p->w.step % SHARED_DEPTH].part;
    p->parts = 0;
    if (has_next_arrived(&p->w))
        return true;
    p->parts = slot_parts(atomic_load_explicit(part, memory_order_acquire),
                          shared_pack_word(p->w.step, METHOD_SLOTS, b->marks));
    return p->parts > p->have;
}

uint64_t shared_wait_part(struct shared *b, int rank, uint64_t step, uint64_t have)
{
    struct part_wait p = {.w = {.b = b, .step = step, .next = rank}, .have = have};
    if (!part_arrived(&p))
        shared_wait_until(b, part_arrived, &p);
    return p.parts;
}

/* Wakes ranks that wait for a report of this rank (`done`, `accept` or `devices`). Such waits are rare:
 * `waiting` counts the waiting ranks. All ranks are woken, since the waiting rank may be in another call. */
static void flags_wake_waiters(struct shared *b)
{
    net_fence_before_sleep_check(b->comm->proc->net);
    if (unlikely(atomic_load_explicit(&b->head->waiting, memory_order_relaxed) != 0))
        shared_wake(b, SHARED_EVERYONE);
}

/* Prefetches this rank's next flag for writing. Ranks that arrive last at a synchronisation leave it
 * first, and may already poll that flag. Its cache line must then be transferred back before it can be
 * written, which takes as long as the return to the program and the next call. */
static inline void prefetch_next_flag(const struct shared *b, uint64_t step)
{
    const struct shared_flag *flag = &b->head->rank[b->comm->rank].flag[step % SHARED_DEPTH];
    cpu_prefetch_write(flag);
    cpu_prefetch_write((const char *)flag + CACHE_LINE);
}

/* Predicts that the next call is a barrier: the current and the previous call are barriers. */
static inline bool is_barrier_repeated(const struct shared *b)
{
    return b->call == b->previous_call && shared_is_barrier(b->call);
}

/* Orders this rank's post before its poll. With three or more ranks, at least one of the last two must see
 * the other's flag, because a third rank may sleep. With two ranks, the full fence also delays the last
 * rank until its flag is written: otherwise it would leave early and, in the next call, poll a flag that
 * the other rank is about to write. If the next call is a barrier, leaving early is faster. */
static inline void order_post_and_poll(const struct shared *b)
{
    if (b->comm->size == 2 && is_barrier_repeated(b))
        net_fence_before_sleep_check(b->comm->proc->net);
    else
        atomic_thread_fence(memory_order_seq_cst);
}

/* Called by the rank that arrived last. If ranks share processors, it yields: the other ranks can
 * continue, and this rank would wait for one of them in a following rooted call (as after the previous
 * barrier). Before a call in which all ranks synchronise, it is faster to continue. */
static inline void yield_after_last_arrival(const struct shared *b)
{
    struct net *net = b->comm->proc->net;
    if (net->oversubscribed && b->to_root && shared_is_barrier(b->call) && !is_barrier_repeated(b))
        net_yield(net);
}

bool shared_synchronize(struct shared *b, uint64_t step, enum shared_method method)
{
    struct wait w = {.b = b, .step = step};
    shared_post_step(b, step, method);
    order_post_and_poll(b);
    if (all_arrived(&w)) {
        shared_wake(b, SHARED_EVERYONE);
        yield_after_last_arrival(b);
    } else {
        shared_wait_until(b, all_arrived, &w);
        prefetch_next_flag(b, step + 1);
    }
    if (unlikely(b->mismatched_rank))
        return false;
    b->safe = step - 1; /* all ranks have begun this step, so all are done with the previous one */
    return true;
}

void shared_report_step(struct shared *b, uint64_t step)
{
    b->reported = step;
    atomic_store_explicit(&b->head->rank[b->comm->rank].done, step, memory_order_release);
    flags_wake_waiters(b);
}

/* Bits of history in shared_rank.devices. When a rank reports, it is at most half of them ahead of the
 * others, so that no bit that another rank still needs is shifted out. */
#define DEVICE_HISTORY 16
#define DEVICE_LEAD    7

static uint64_t count_device_calls(const struct shared *b, int rank)
{
    return atomic_load_explicit(&b->head->rank[rank].devices, memory_order_acquire) >> DEVICE_HISTORY;
}

static bool all_reported(void *arg)
{
    struct wait *w = arg;
    while (w->next < w->b->comm->size) {
        if (count_device_calls(w->b, w->next) < w->step)
            return false;
        w->next++;
    }
    return true;
}

static void wait_for_reports(struct shared *b, uint64_t call)
{
    struct wait w = {.b = b, .step = call};
    if (!all_reported(&w))
        wait_for_readers(&w, all_reported);
}

bool shared_all_on_device(struct shared *b, bool mine)
{
    _Atomic uint64_t *const word = &b->head->rank[b->comm->rank].devices;
    const uint64_t last = atomic_load_explicit(word, memory_order_relaxed);
    const uint64_t call = (last >> DEVICE_HISTORY) + 1;
    if (call % DEVICE_LEAD == 0)
        wait_for_reports(b, call - DEVICE_LEAD);
    atomic_store_explicit(word, call << DEVICE_HISTORY | (uint16_t)(last << 1 | mine), memory_order_release);
    flags_wake_waiters(b);
    if (!mine)
        return false;
    wait_for_reports(b, call);
    for (int r = 0; r < b->comm->size; r++) {
        const uint64_t now = atomic_load_explicit(&b->head->rank[r].devices, memory_order_acquire);
        if (!(now >> ((now >> DEVICE_HISTORY) - call) & 1))
            return false;
    }
    return true;
}

void shared_accept(struct shared *b, uint64_t step)
{
    atomic_store_explicit(&b->head->rank[b->comm->rank].accept, step, memory_order_release);
    flags_wake_waiters(b);
}
