/* written_quick.c: the usual case of written.c without its detours: a blocking barrier by RDMA writes of leaders that are alone on
 * their nodes, each on a processor of its own, with no other barrier of the communicator under way. What is written and read
 * is the same, so some ranks may take this course and others not.
 *
 * The partners mostly come within a microsecond. So their flags are looked at a number of times with nothing in between: a
 * round of progress takes longer than a cache line needs from one processor to another. After that the barrier goes on as any
 * other, from where it stands.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/counter.h"
#include "coll/written_part.h"

#define LOOKS    1024 /* about a microsecond */
#define PROGRESS 64   /* barriers: others may wait for this rank meanwhile, for an answer or for room */

static COUNTER(
    quick, "coll_written_quick",
    "Barriers by RDMA writes of nodes with one rank each that looked at the partners' flags with nothing "
    "in between.");

bool written_is_quick(const struct written *w)
{
    return w->way == WAY_WRITE && !w->switched && !w->may_multicast && w->leads && w->nlocal == 1;
}

/* Progress may be needed, and another thread or rank the processor. */
static bool may_hurry(const struct written *w)
{
    return list_empty(&w->lane[0].runs) && !w->busy && !w->net->oversubscribed && !w->net->lock;
}

static bool is_set(const struct written *w, int partner)
{
    return meeting_flag_set(atomic_load_explicit(&w->flags[partner * WRITTEN_LANES], memory_order_acquire),
                            w->lane[0].meeting.turn);
}

/* Flags of the partners from `first` to before `end`. */
static bool look(const struct written *w, int first, int end)
{
    for (int looks = 0; looks < LOOKS; looks++) {
        while (first < end && is_set(w, first))
            first++;
        if (first == end)
            return true;
    }
    return false;
}

/* From the round in which it is. */
static __attribute__((noinline)) int go_on(struct coll_state *state, int error)
{
    struct written_run r;
    r.w = state->written;
    r.comm = state->comm;
    r.lane = r.pending = 0;
    r.error = error;
    r.over = r.crossed = r.tree = false;
    r.way = WAY_WRITE;
    r.tag = 0; /* no messages */
    list_append(&r.w->lane[0].runs, &r.link);
    written_wait(&r);
    return r.error;
}

/* What nobody waits for is done while the first flags are on their way. */
static void keep_books(const struct coll_args *args, struct coll_state *state)
{
    coll_number(state, args, FORM_BLOCKING);
    counter_add(&quick, 1);
    state->written->calls++;
}

bool written_quick(const struct coll_args *args, struct coll_state *state, int *rc)
{
    struct written *w = state->written;
    struct meeting *m = &w->lane[0].meeting;
    const struct meeting_shape shape = {.leads = true, .alone = true, .rounds = w->rounds[WAY_WRITE]};
    int next = 0, error = 0;
    if (unlikely(w->calls % PROGRESS == 0))
        net_progress(w->net);
    if (unlikely(!may_hurry(w)))
        return false;
    meeting_next(m, &shape, true); /* nobody is expected */
    while (meeting_next(m, &shape, true) == MEET_ROUND) {
        const int first = next;
        for (; next < w->partners && w->meets[next].round == m->round; next++) {
            const int failed = written_flag(w, next, 0);
            error = error ? error : failed;
        }
        if (first == 0)
            keep_books(args, state);
        if (unlikely(error || !look(w, first, next))) {
            *rc = go_on(state, error);
            return true;
        }
    }
    meeting_next(m, &shape, true); /* nobody is released */
    written_count(w, WAY_WRITE);
    *rc = 0;
    return true;
}
