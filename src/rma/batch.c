/* batch.c: short puts and gets of memory that only a system call reaches (cross-memory attach) are collected and moved by
 * one call, at the latest when the program waits for them: the call costs more than the bytes. A put is copied when it is
 * made, so it is complete at its origin at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/counter.h"
#include "rma/engine.h"

static COUNTER(batched, "rma_batched", "Short puts and gets that shared a system call with others.");

enum { PUT, GET, WAYS };

#define PUT_MAX 512u  /* bytes: beyond, a copy costs as much as the call */
#define GET_MAX 4096u /* gets need no copy */
#define STORE   8192u /* bytes of puts */

struct batch {
    size_t count[WAYS], used;
    struct net_piece piece[WAYS][NET_PIECES_MAX];
    char store[STORE];
};

/* The memory was checked before: only a process that is gone refuses. In a job that goes on after deaths it is told so. */
static void note_fault(struct win_peer *p, int rc)
{
    if (rc)
        p->fault = p->win->proc->net->lost ? MPIX_ERR_PROC_FAILED : rc;
}

static void run_one_way(struct win_peer *p, int way)
{
    struct batch *b = p->batch;
    if (b->count[way] == 0)
        return;
    int rc = p->peer->ops->move(p->peer, way == PUT, b->piece[way], b->count[way]);
    note_fault(p, rc);
    counter_add(&batched, b->count[way]);
    b->count[way] = 0;
}

bool batch_holds(const struct win_peer *p)
{
    return p->batch && (p->batch->count[PUT] || p->batch->count[GET]);
}

void batch_run(struct win_peer *p)
{
    if (likely(!p->batch))
        return;
    run_one_way(p, PUT);
    p->batch->used = 0;
    run_one_way(p, GET);
}

/* A long one is moved at once; a short one when there are many of them or the program waits. */
int batch_move(const struct rma_call *c, struct win_peer *to, char *local, uint64_t remote, size_t len)
{
    const int way = c->kind == RMA_IS_PUT ? PUT : GET;
    win_peer_busy(to);
    if (len <= (way == PUT ? PUT_MAX : GET_MAX) && !to->batch)
        to->batch = calloc(1, sizeof(*to->batch));
    struct batch *b = to->batch;
    struct net_piece piece = {.local = local, .remote = remote, .length = len};
    if (!b || len > (way == PUT ? PUT_MAX : GET_MAX)) {
        int rc = to->peer->ops->move(to->peer, way == PUT, &piece, 1);
        note_fault(to, rc);
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
