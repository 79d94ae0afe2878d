/* pscw.c: post, start, complete, wait. A post is one frame to each origin, a complete one frame to each
 * target. The complete frame comes after the operations themselves: those sent as frames are in order, and
 * those of an adapter are waited for first.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "rma/engine.h"

/* The members of a group as ranks of the window; the caller frees *out. */
static int ranks_of(struct win *w, struct group *group, int **out)
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
    int rc = unlikely(w->comm->broken) ? win_lost(w, NULL) : ranks_of(w, group, &ranks);
    if (rc)
        return rc;
    atomic_thread_fence(memory_order_seq_cst);
    for (int i = 0; i < group->size && !rc && !(assertion & MPI_MODE_NOCHECK); i++) {
        struct win_peer *p;
        rc = win_peer_plain(w, ranks[i], &p);
        if (rc)
            break;
        if (ranks[i] == w->comm->rank)
            p->posts++;
        else
            rma_send_calmly(p, RMA_POST, 0, 0, 0, NULL, 0);
    }
    free(ranks);
    w->exposed = true;
    w->expected = group->size;
    if (w->access == EPOCH_FENCE)
        w->access = EPOCH_NONE;
    return rc;
}

static bool has_posted(void *arg)
{
    return ((struct win_peer *)arg)->posts > 0;
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
    int rc = ranks_of(w, group, &ranks);
    if (rc)
        return rc;
    w->started = calloc((size_t)MAX(group->size, 1), sizeof(struct win_peer *));
    if (!w->started)
        rc = win_error(w, MPI_ERR_NO_MEM, "out of memory for a group of %d", group->size);
    for (w->nstarted = 0; !rc && w->nstarted < group->size; w->nstarted++) {
        struct win_peer **p = &w->started[w->nstarted];
        rc = win_peer_plain(w, ranks[w->nstarted], p);
        if (rc)
            break;
        (*p)->started = true;
    }
    free(ranks);
    w->access = rc ? EPOCH_NONE : EPOCH_START;
    for (int i = 0; i < w->nstarted && !rc && !(assertion & MPI_MODE_NOCHECK); i++) {
        rc = rma_wait_for(w->proc->rma, w, NULL, has_posted, w->started[i], false);
        if (!rc)
            w->started[i]->posts--;
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
        int one =
            peer_finish(p, w->flavor == MPI_WIN_FLAVOR_DYNAMIC); /* there the target may find an error */
        rc = rc ? rc : one;
        p->started = false;
        p->dirty = false; /* the next frame confirms it */
        list_remove(&p->busy);
        if (p->rank == w->comm->rank)
            w->completes++;
        else
            rma_send_calmly(p, RMA_COMPLETE, 0, 0, 0, NULL, 0);
    }
    end_access(w);
    watch_forget(w, -1);
    return rc;
}

static bool all_completed(void *arg)
{
    const struct win *w = arg;
    return w->completes >= w->expected;
}

static void end_exposure(struct win *w)
{
    w->completes -= w->expected;
    w->exposed = false;
    atomic_thread_fence(memory_order_seq_cst);
}

/* Somebody has died: nobody exposes the window again. */
static void give_up_exposure(struct win *w)
{
    w->completes = 0;
    w->exposed = false;
}

int win_wait(struct win *w)
{
    if (!w->exposed)
        return win_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_wait: MPI_Win_post has not been called");
    int rc = rma_wait_for(w->proc->rma, w, NULL, all_completed, w, false);
    if (rc)
        give_up_exposure(w);
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
        give_up_exposure(w);
        return win_lost(w, NULL);
    }
    if (*flag)
        end_exposure(w);
    return MPI_SUCCESS;
}
