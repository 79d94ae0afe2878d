/* fast.c: fast path of barrier_run.c for a blocking barrier by RDMA writes. Conditions: every leader is alone
 * on its node, processors are not shared, and no other barrier of the communicator is in progress. The flags
 * are the same as in barrier_run.c, so some ranks may use the fast path and others not.
 *
 * The flags of the partners are usually set within a microsecond. So they are polled POLLS times without
 * progress in between: a call of progress takes longer than the transfer of a cache line between processors.
 * After POLLS polls barrier_run.c continues the barrier from its current round.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/counter.h"
#include "coll/barrier/barrier_internal.h"

#define POLLS 1024 /* about a microsecond */
#define PROGRESS \
    64 /* barriers between two calls of progress: other ranks may wait for replies or credits of this rank */

static COUNTER(quick, "coll_barrier_rdma_direct",
               "Barriers by RDMA writes, one rank per node, that polled the partners' flags directly, "
               "without the progress engine.");

bool hbarrier_can_run_fast(const struct hbarrier *w)
{
    return w->method == METHOD_WRITE && !w->switched && !w->may_multicast && w->leads && w->nlocal == 1;
}

/* False if another barrier is in progress, or another thread or rank needs the processor. */
static bool can_skip_progress(const struct hbarrier *w)
{
    return list_empty(&w->lane[0].runs) && !w->busy && !w->net->oversubscribed && !w->net->lock;
}

static bool is_partner_flag_set(const struct hbarrier *w, int partner)
{
    return barrier_flag_is_set(
        atomic_load_explicit(&w->flags[partner * HBARRIER_LANES], memory_order_acquire),
        w->lane[0].machine.turn);
}

/* Polls the flags of partners [first, end). Returns true when all are set. */
static bool poll_flags(const struct hbarrier *w, int first, int end)
{
    for (int polls = 0; polls < POLLS; polls++) {
        while (first < end && (w->partner_at[first].from < 0 || is_partner_flag_set(w, first)))
            first++;
        if (first == end)
            return true;
    }
    return false;
}

/* Continues the barrier from its current round on the general path. */
static __attribute__((noinline)) int continue_in_rounds(struct coll_state *state, int error)
{
    struct hbarrier_run r;
    r.w = state->hbarrier[FORM_BLOCKING];
    r.comm = state->comm;
    r.lane = r.pending = 0;
    r.error = error;
    r.over = r.crossed = r.tree = false;
    r.method = METHOD_WRITE;
    r.tag = 0; /* no messages */
    list_append(&r.w->lane[0].runs, &r.link);
    hbarrier_wait(&r);
    return r.error;
}

/* Counts the call. Called while the first flags are in flight, so that no rank waits for the counting. */
static void count_barrier_call(const struct coll_args *args, struct coll_state *state)
{
    page_comm_record_kind(state->page, COLL_BARRIER);
    coll_number_call(state, args, FORM_BLOCKING, 0);
    counter_add(&quick, 1);
    state->hbarrier[FORM_BLOCKING]->calls++;
}

bool hbarrier_run_fast(const struct coll_args *args, struct coll_state *state, int *rc)
{
    struct hbarrier *w = state->hbarrier[FORM_BLOCKING];
    struct barrier_machine *m = &w->lane[0].machine;
    const struct barrier_machine_shape shape = {
        .leads = true, .alone = true, .rounds = w->rounds[METHOD_WRITE]};
    int next = 0, error = 0;
    if (unlikely(w->calls % PROGRESS == 0))
        net_progress(w->net);
    if (unlikely(!can_skip_progress(w)))
        return false;
    barrier_machine_next(m, &shape, true); /* ready: no other ranks on this node */
    while (barrier_machine_next(m, &shape, true) == BARRIER_ROUND) {
        const int first = next;
        for (; next < w->partners && w->partner_at[next].round == m->round; next++) {
            const int failed = w->partner_at[next].to < 0 ? 0 : hbarrier_set_partner_flag(w, next, 0);
            error = error ? error : failed;
        }
        if (first == 0)
            count_barrier_call(args, state);
        if (unlikely(error || !poll_flags(w, first, next))) {
            *rc = continue_in_rounds(state, error);
            return true;
        }
    }
    barrier_machine_next(m, &shape, true); /* ready: no other ranks on this node */
    hbarrier_update_counters(w, METHOD_WRITE);
    *rc = 0;
    return true;
}
