/* copy_batch.c: puts and gets of memory that only a system call reaches (cross-memory attach). They are
 * collected and moved by one system call, at the latest when the program waits for them: a system call takes
 * longer than copying a few bytes. A short put is copied when it is called, so it is complete at its origin
 * at once. A target that waits inside MPI copies a part (mailbox.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/counter.h"
#include "rma/rma.h"

static COUNTER(batched, "rma_batched", "Short puts and gets batched with others into one system call.");

enum { PUT, GET, DIRECTIONS };

#define PUT_MAX  512u    /* largest short put in bytes: copying a longer one takes as long as a system call */
#define GET_MAX  4096u   /* largest short get in bytes; a get needs no copy */
#define STORE    8192u   /* size in bytes of the buffer for copies of short puts */
#define LONGS    8       /* long operations that are collected before they are executed */
#define ALONE    16384u  /* largest operation in bytes that is executed at once if no other is in progress */
#define PART_MIN 131072u /* smallest part, in bytes, of an operation that two processors share */

struct batch {
    size_t count[DIRECTIONS], longs[DIRECTIONS]; /* entries of `piece` and of `longer` */
    size_t used;                                 /* bytes of `store` */
    struct net_piece piece[DIRECTIONS][NET_PIECES_MAX], longer[DIRECTIONS][LONGS];
    char store[STORE];
};

/* Records the error of a failed copy. The address was checked before, so the owner of the memory has died:
 * the origin gets MPIX_ERR_PROC_FAILED if the job continues after deaths. */
static void record_copy_fault(struct win_peer *p, int rc)
{
    if (rc)
        p->fault = comm_outlives_deaths(p->win->comm) ? MPIX_ERR_PROC_FAILED : rc;
}

static void run_direction(struct win_peer *p, int direction)
{
    struct batch *b = p->batch;
    const size_t count = b->count[direction];
    if (count == 0)
        return;
    const size_t done = mailbox_move(p, direction == PUT, b->piece[direction], count);
    b->count[direction] = 0;
    if (done == count)
        return;
    int rc = p->peer->ops->move(p->peer, direction == PUT, b->piece[direction] + done, count - done);
    record_copy_fault(p, rc);
    counter_add(&batched, count - done);
}

/* Splits long pieces into parts so that two processors can share the work: LONGS parts for the whole, at
 * least PART_MIN bytes each. */
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

static void run_long_pieces(struct win_peer *p, int direction)
{
    struct batch *b = p->batch;
    const struct net_piece *pieces = b->longer[direction];
    const size_t count = b->longs[direction];
    struct net_piece parts[MAILBOX_PIECES];
    size_t all = 0, longest = 0;
    int rc;
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        all += pieces[i].length;
        longest = MAX(longest, pieces[i].length);
    }
    b->longs[direction] = 0;
    if (longest >= 2 * PART_MIN && mailbox_is_usable(p))
        rc = mailbox_share(p, direction == PUT, parts, batch_split_pieces(pieces, count, all, parts));
    else
        rc = p->peer->ops->move(p->peer, direction == PUT, pieces, count);
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

static void collect_long(struct win_peer *to, int direction, const struct net_piece *piece)
{
    struct batch *b = to->batch;
    if (b->longs[direction] == LONGS)
        run_long_pieces(to, direction);
    b->longer[direction][b->longs[direction]++] = *piece;
}

static int move_piece_now(struct win_peer *to, int direction, const struct net_piece *piece)
{
    const int rc = to->peer->ops->move(to->peer, direction == PUT, piece, 1);
    if (unlikely(rc)) {
        win_peer_mark_busy(to); /* the next flush, unlock or fence returns the error */
        record_copy_fault(to, rc);
    }
    return MPI_SUCCESS;
}

/* Collects short operations, which are executed when the batch is full or the program waits. A long operation
 * of at most ALONE bytes is executed at once if no other one on the target is in progress: it needs its own
 * system call anyway. */
int batch_move(const struct rma_call *c, struct win_peer *to, char *local, uint64_t remote, size_t len)
{
    const int direction = c->kind == RMA_IS_PUT ? PUT : GET;
    struct net_piece piece = {.local = local, .remote = remote, .length = len};
    if (len > PUT_MAX && len <= ALONE && !win_peer_is_busy(to))
        return move_piece_now(to, direction, &piece);
    if (!to->batch)
        to->batch = calloc(1, sizeof(*to->batch));
    struct batch *b = to->batch;
    if (!b)
        return move_piece_now(to, direction, &piece);
    win_peer_mark_busy(to);
    if (len > (direction == PUT ? PUT_MAX : GET_MAX)) {
        collect_long(to, direction, &piece);
        return MPI_SUCCESS;
    }
    if (b->count[direction] == NET_PIECES_MAX || (direction == PUT && b->used + len > STORE))
        batch_run(to);
    if (direction == PUT) {
        piece.local = memcpy(b->store + b->used, local, len);
        b->used += len;
    }
    b->piece[direction][b->count[direction]++] = piece;
    return MPI_SUCCESS;
}
