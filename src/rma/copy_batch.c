/* copy_batch.c: puts and gets of memory that only a system call reaches (cross-memory attach). They are collected and
 * moved by one call, at the latest when the program waits for them: for short ones the call costs more than the bytes. A short
 * put is copied when it is made, so it is complete at its origin at once. A target that waits takes part (box.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/counter.h"
#include "rma/rma.h"

static COUNTER(batched, "rma_batched", "Short puts and gets batched with others into one system call.");

enum { PUT, GET, DIRECTIONS };

#define PUT_MAX  512u    /* bytes: beyond, a copy costs as much as the call */
#define GET_MAX  4096u   /* gets need no copy */
#define STORE    8192u   /* bytes of puts */
#define LONGS    8       /* that are collected */
#define ALONE    16384u  /* bytes: beyond, it pays to wait for others that share the call */
#define PART_MIN 131072u /* what two processors share is cut into parts of this size, or an eighth of all */

struct batch {
    size_t count[DIRECTIONS], used, longs[DIRECTIONS];
    struct net_piece piece[DIRECTIONS][NET_PIECES_MAX], longer[DIRECTIONS][LONGS];
    char store[STORE];
};

/* Records why a copy failed. The address was checked before, so the owner of the memory has died; if the job continues
 * after deaths, the origin gets that error. */
static void record_copy_fault(struct win_peer *p, int rc)
{
    if (rc)
        p->fault = comm_outlives_deaths(p->win->comm) ? MPIX_ERR_PROC_FAILED : rc;
}

static void run_direction(struct win_peer *p, int way)
{
    struct batch *b = p->batch;
    const size_t count = b->count[way];
    if (count == 0)
        return;
    const size_t done = box_move(p, way == PUT, b->piece[way], count);
    b->count[way] = 0;
    if (done == count)
        return;
    int rc = p->peer->ops->move(p->peer, way == PUT, b->piece[way] + done, count - done);
    record_copy_fault(p, rc);
    counter_add(&batched, count - done);
}

/* Splits long pieces into parts so that two processors can share the work: LONGS parts for the whole, at least
 * PART_MIN bytes each. */
static size_t batch_split_pieces(const struct net_piece *pieces, size_t count, size_t all,
                                 struct net_piece *parts)
{
    const size_t part = MAX(PART_MIN, ALIGN_UP(all / LONGS + 1, (size_t)4096));
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        struct net_piece left = pieces[i];
        for (size_t len; left.length > 0; left.length -= len) {
            len = MIN(part, left.length);
            parts[n++] = (struct net_piece){.local = left.local, .remote = left.remote, .length = len};
            left.local = (char *)left.local + len;
            left.remote += len;
        }
    }
    return n;
}

static void run_long_pieces(struct win_peer *p, int way)
{
    struct batch *b = p->batch;
    const struct net_piece *pieces = b->longer[way];
    const size_t count = b->longs[way];
    struct net_piece parts[BOX_PIECES];
    size_t all = 0, longest = 0;
    int rc;
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        all += pieces[i].length;
        longest = MAX(longest, pieces[i].length);
    }
    b->longs[way] = 0;
    if (longest >= 2 * PART_MIN && box_reaches(p))
        rc = box_share(p, way == PUT, parts, batch_split_pieces(pieces, count, all, parts));
    else
        rc = p->peer->ops->move(p->peer, way == PUT, pieces, count);
    record_copy_fault(p, rc);
}

bool batch_has_pieces(const struct win_peer *p)
{
    const struct batch *b = p->batch;
    return b && (b->count[PUT] || b->count[GET] || b->longs[PUT] || b->longs[GET]);
}

void batch_run(struct win_peer *p)
{
    if (likely(!p->batch))
        return;
    run_direction(p, PUT);
    p->batch->used = 0;
    run_direction(p, GET);
    run_long_pieces(p, PUT);
    run_long_pieces(p, GET);
}

static void collect_long(struct win_peer *to, int way, const struct net_piece *piece)
{
    struct batch *b = to->batch;
    if (b->longs[way] == LONGS)
        run_long_pieces(to, way);
    b->longer[way][b->longs[way]++] = *piece;
}

static int move_piece_now(struct win_peer *to, int way, const struct net_piece *piece)
{
    const int rc = to->peer->ops->move(to->peer, way == PUT, piece, 1);
    if (unlikely(rc)) {
        win_peer_mark_busy(to); /* the next call that waits returns the error */
        record_copy_fault(to, rc);
    }
    return MPI_SUCCESS;
}

/* Collects short operations, which are executed when the batch is full or the program waits. A long operation is
 * executed at once if no other is under way: it needs a system call of its own anyway. */
int batch_move(const struct rma_call *c, struct win_peer *to, char *local, uint64_t remote, size_t len)
{
    const int way = c->kind == RMA_IS_PUT ? PUT : GET;
    struct net_piece piece = {.local = local, .remote = remote, .length = len};
    if (len > PUT_MAX && len <= ALONE && !win_peer_is_busy(to))
        return move_piece_now(to, way, &piece);
    if (!to->batch)
        to->batch = calloc(1, sizeof(*to->batch));
    struct batch *b = to->batch;
    if (!b)
        return move_piece_now(to, way, &piece);
    win_peer_mark_busy(to);
    if (len > (way == PUT ? PUT_MAX : GET_MAX)) {
        collect_long(to, way, &piece);
        return MPI_SUCCESS;
    }
    if (b->count[way] == NET_PIECES_MAX || (way == PUT && b->used + len > STORE))
        batch_run(to);
    if (way == PUT) {
        piece.local = memcpy(b->store + b->used, local, len);
        b->used += len;
    }
    b->piece[way][b->count[way]++] = piece;
    return MPI_SUCCESS;
}
