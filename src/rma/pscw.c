/* pscw.c: post, start, complete, wait. MPI_Win_post notifies each origin, MPI_Win_complete each target:
 * between nodes by a counter written by RDMA (counts.c), else by a frame. The target must receive the
 * notification of MPI_Win_complete after the operations, so the origin first waits for operations of an
 * adapter; if operations were sent as frames, so is the notification, since frames are in order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "rma/rma.h"

/* The members of a group as ranks of the window; the caller frees *out. */
static int translate_group_ranks(struct win *w, struct group *group, int **out)
{
    const int n = group->size;
    int *from = malloc((size_t)MAX(n, 1) * 2 * sizeof(*from));
    if (!from)
        return win_error(w, MPI_ERR_NO_MEM, "out of memory for a group of %d", n);
    int *to = from + n;
    for (int i = 0; i < n; i++)
        from[i] = i;
    int rc = group_translate(group, n, from, w->comm->group, to);
    for (int i = 0; i < n && !rc; i++)
        if (to[i] == MPI_UNDEFINED)
            rc = win_error(w, MPI_ERR_GROUP, "member %d of the group is not in the window", i);
    memmove(from, to, (size_t)n * sizeof(*from));
    if (rc)
        free(from);
    else
        *out = from;
    return rc;
}

/* Requires that pscw_expose() has created the peer. */
static void send_post_notification(struct win *w, int rank)
{
    struct win_peer *p = win_peer_for_sender(w, rank);
    if (rank == w->comm->rank)
        p->posts++;
    else if (!counts_write(p, COUNT_POSTS))
        counts_notify(p, RMA_POST);
    rma_wait_few_queued(w->proc->rma);
}

static void pscw_unexpose(struct win *w)
{
    free(w->posted);
    w->posted = NULL;
    w->nposted = 0;
    w->exposed = false;
}

/* Records the ranks whose completion counters end the exposure epoch. */
static int pscw_expose(struct win *w, const int *ranks, int n)
{
    w->nposted = 0;
    w->posted = malloc((size_t)MAX(n, 1) * sizeof(struct win_peer *));
    if (!w->posted)
        return win_error(w, MPI_ERR_NO_MEM, "out of memory for a group of %d", n);
    for (int i = 0; i < n; i++) {
        int rc = win_peer_find_or_create(w, ranks[i], &w->posted[w->nposted]);
        if (rc) {
            pscw_unexpose(w);
            return rc;
        }
        w->nposted += ranks[i] != w->comm->rank && win_peer_uses_adapter(w->posted[w->nposted]);
    }
    return MPI_SUCCESS;
}

int win_post(struct win *w, struct group *group, int assertion)
{
    int *ranks = NULL;
    if (assertion & ~(MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT))
        return win_error(w, MPI_ERR_ASSERT,
                         "assert is %#x; MPI_Win_post takes MPI_MODE_NOCHECK, _NOSTORE and _NOPUT",
                         (unsigned)assertion);
    if (w->exposed)
        return win_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_post: the window is exposed already");
    if (w->access == EPOCH_FENCE && w->fence_ops > 0)
        return win_error(w, MPI_ERR_RMA_SYNC,
                         "MPI_Win_post: operations have been called since MPI_Win_fence");
    int rc = unlikely(w->comm->broken) ? win_report_lost(w, NULL) : translate_group_ranks(w, group, &ranks);
    if (rc)
        return rc;
    atomic_thread_fence(memory_order_seq_cst);
    rc = pscw_expose(w, ranks, group->size);
    if (rc) {
        free(ranks);
        return rc;
    }
    for (int i = 0; i < group->size && !(assertion & MPI_MODE_NOCHECK); i++)
        send_post_notification(w, ranks[i]);
    free(ranks);
    watch_begin_epoch(w);
    w->exposed = true;
    w->expected = group->size;
    if (w->access == EPOCH_FENCE)
        w->access = EPOCH_NONE;
    return MPI_SUCCESS;
}

static bool has_posted(void *arg)
{
    const struct win_peer *p = arg;
    return p->posts > 0 || counts_get_unconsumed(p, COUNT_POSTS) > 0;
}

static void end_access(struct win *w)
{
    for (int i = 0; i < w->nstarted; i++)
        w->started[i]->started = false;
    free(w->started);
    w->started = NULL;
    w->nstarted = 0;
    w->access = EPOCH_NONE;
}

int win_start(struct win *w, struct group *group, int assertion)
{
    int *ranks = NULL;
    if (assertion & ~MPI_MODE_NOCHECK)
        return win_error(w, MPI_ERR_ASSERT, "assert is %#x; MPI_Win_start takes MPI_MODE_NOCHECK",
                         (unsigned)assertion);
    if (w->access > EPOCH_FENCE || w->fence_ops > 0)
        return win_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_start: another access epoch is open");
    int rc = translate_group_ranks(w, group, &ranks);
    if (rc)
        return rc;
    w->started = calloc((size_t)MAX(group->size, 1), sizeof(struct win_peer *));
    if (!w->started)
        rc = win_error(w, MPI_ERR_NO_MEM, "out of memory for a group of %d", group->size);
    for (w->nstarted = 0; !rc && w->nstarted < group->size; w->nstarted++) {
        struct win_peer **p = &w->started[w->nstarted];
        rc = win_peer_find_or_create(w, ranks[w->nstarted], p);
        if (rc)
            break;
        (*p)->started = true;
    }
    free(ranks);
    w->access = rc ? EPOCH_NONE : EPOCH_START;
    for (int i = 0; i < w->nstarted && !rc && !(assertion & MPI_MODE_NOCHECK); i++) {
        struct win_peer *p = w->started[i];
        rc = rma_wait_for(
            w->proc->rma, w, NULL, has_posted, p, win_peer_uses_adapter(p),
            &(struct net_named){"MPI_Win_post of a target", group_job_rank(w->comm->group, p->rank), false});
        if (!rc && p->posts > 0)
            p->posts--;
        else if (!rc)
            counts_consume(p, COUNT_POSTS, 1);
    }
    if (rc)
        end_access(w);
    return rc;
}

int win_complete(struct win *w)
{
    int rc = MPI_SUCCESS;
    if (w->access != EPOCH_START)
        return win_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_complete: MPI_Win_start has not been called");
    for (int i = 0; i < w->nstarted; i++) {
        struct win_peer *p = w->started[i];
        /* In a dynamic window the origin waits for the target, which may detect an error. */
        int one = peer_wait_operations(p, w->flavor == MPI_WIN_FLAVOR_DYNAMIC);
        const bool in_frames = p->dirty;
        rc = rc ? rc : one;
        p->started = false;
        p->dirty = false; /* the target processes RMA_COMPLETE after the frames before it */
        list_remove(&p->busy);
        if (p->rank == w->comm->rank)
            w->completes++;
        else if (in_frames || !counts_write(p, COUNT_COMPLETES))
            rma_send_throttled(p, RMA_COMPLETE, 0, 0, 0, NULL, 0);
    }
    end_access(w);
    watch_forget_rank(w, -1);
    return rc;
}

static bool all_completed(void *arg)
{
    struct win *w = arg;
    for (int i = 0; i < w->nposted && w->completes < w->expected;) {
        const uint32_t some = counts_get_unconsumed(w->posted[i], COUNT_COMPLETES);
        if (some == 0) {
            i++;
            continue;
        }
        counts_consume(w->posted[i], COUNT_COMPLETES, some);
        w->completes += (int)some;
        w->posted[i] = w->posted[--w->nposted];
    }
    return w->completes >= w->expected;
}

static void end_exposure(struct win *w)
{
    w->completes -= w->expected;
    watch_end_exposure(w);
    pscw_unexpose(w);
    atomic_thread_fence(memory_order_seq_cst);
}

/* A rank has died: ends this rank's exposure of the window. */
static void fail_exposure(struct win *w)
{
    w->completes = 0;
    pscw_unexpose(w);
}

int win_wait(struct win *w)
{
    if (!w->exposed)
        return win_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_wait: MPI_Win_post has not been called");
    int rc = rma_wait_for(w->proc->rma, w, NULL, all_completed, w, w->nposted > 0,
                          &(struct net_named){"MPI_Win_complete of an origin", NET_NOBODY, false});
    if (rc)
        fail_exposure(w);
    else
        end_exposure(w);
    return rc;
}

int win_test(struct win *w, int *flag)
{
    if (!w->exposed)
        return win_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_test: MPI_Win_post has not been called");
    if (!all_completed(w))
        net_progress(w->proc->net);
    *flag = all_completed(w);
    if (!*flag && unlikely(w->comm->broken)) {
        fail_exposure(w);
        return win_report_lost(w, NULL);
    }
    if (*flag)
        end_exposure(w);
    return MPI_SUCCESS;
}
