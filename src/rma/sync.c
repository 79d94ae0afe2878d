/* sync.c: waiting for operations in flight, flush, fence, and sync. A flush frame that follows operations
 * sent as frames confirms them: the target answers it when it has processed them. Operations with answers or
 * adapter completions are counted in win_peer.pending.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>

#include "coll/coll.h"
#include "net/lost.h"
#include "rma/rma.h"
#include "rma/stores.h"

/* Empty flushes per poll of the network. A poll takes longer than a put by stores and its flush. */
#define EMPTY_FLUSHES_PER_POLL 16

/* True if `to` (or, if NULL, any member of `w`) has died and the job continues after deaths. */
static bool can_never_complete(const struct rma *r, const struct win *w, const struct win_peer *to)
{
    if (likely(!net_outlives_deaths(r->proc->net)))
        return false;
    return to ? peer_is_lost(to->peer) : w && w->comm->broken;
}

/* Waits until ready(arg). Returns an error if `to` has died or, if `to` is NULL, any member of `w`. Both may
 * be NULL. */
int rma_wait_for(struct rma *r, const struct win *w, const struct win_peer *to, bool (*ready)(void *),
                 void *arg, bool unrung, const struct net_named *what)
{
    struct net *net = r->proc->net;
    struct net_waiter waiter = {.ready = ready, .arg = arg, .awaited_kind = NET_NAMED, .awaited = what};
    bool hopeless = false;
    net->unrung += unrung;
    while (!ready(arg) && !(hopeless = can_never_complete(r, w, to)))
        net_wait_step(net, &waiter);
    net_wait_end(net, &waiter);
    net->unrung -= unrung;
    return hopeless ? win_report_lost(w, to) : MPI_SUCCESS;
}

int win_report_lost(const struct win *w, const struct win_peer *to)
{
    if (to)
        return win_error(w, MPIX_ERR_PROC_FAILED, "rank %d has died", to->rank);
    return w->comm->broken == MPIX_ERR_REVOKED
               ? win_error(w, MPIX_ERR_REVOKED, "its communicator was revoked")
               : win_error(w, MPIX_ERR_PROC_FAILED, "a process of the window has died");
}

void rma_wait(struct rma *r, bool (*ready)(void *), void *arg, bool unrung, const char *name)
{
    rma_wait_for(r, NULL, NULL, ready, arg, unrung, &(struct net_named){name, NET_NOBODY, false});
}

static int adapter_try_post(struct peer *peer, const struct adapter_request *r)
{
    switch (r->kind) {
    case ADAPTER_PUT:
        return peer->ops->put(peer, r->local, r->mem, r->remote, r->key, r->len, r->op);
    case ADAPTER_GET:
        return peer->ops->get(peer, r->local, r->mem, r->remote, r->key, r->len, r->op);
    default:
        return peer->ops->atomic(peer, &r->change, r->local, r->mem, r->remote, r->key, r->op);
    }
}

int adapter_post(const struct win_peer *p, const struct adapter_request *r)
{
    struct net *net = p->win->proc->net;
    struct net_waiter waiter = {.awaited_kind = NET_PEER, .awaited = p->peer};
    int rc = adapter_try_post(p->peer, r);
    if (likely(rc != ERR_AGAIN))
        return rc;
    while ((rc = adapter_try_post(p->peer, r)) == ERR_AGAIN) {
        net->unrung++; /* no doorbell is rung when the send queue has room again */
        net_wait_step(net, &waiter);
        net->unrung--;
    }
    net_wait_end(net, &waiter);
    return rc;
}

static bool nothing_pending(void *arg)
{
    return ((struct win_peer *)arg)->pending == 0;
}

static bool is_flushed(void *arg)
{
    const struct win_peer *p = arg;
    return p->flushed == p->flushes && p->pending == 0;
}

static int wait_for_peer(struct win_peer *p, bool (*ready)(void *))
{
    const struct net_named what = {"completion of one-sided operations", p->peer->rank, false};
    return rma_wait_for(p->win->proc->rma, p->win, p, ready, p, false, &what);
}

/* Returns, once, the error of an operation that the target detected or a transfer returned. */
static int peer_fetch_error(struct win_peer *p)
{
    const int fault = p->fault;
    p->fault = 0;
    if (!fault)
        return MPI_SUCCESS;
    if (fault == MPI_ERR_RMA_RANGE)
        return win_error(p->win, fault, "an operation on rank %d touched memory that is not in the window%s",
                         p->rank,
                         p->win->flavor == MPI_WIN_FLAVOR_DYNAMIC ? ": it is not attached there" : "");
    return win_error(p->win, fault, "an operation on rank %d failed", p->rank);
}

/* Removes the peer from the busy list unless other threads have started operations meanwhile; those threads
 * will wait for their operations. */
static void peer_mark_idle(struct win_peer *p, bool lost)
{
    if (unlikely(lost)) {
        p->dirty = false;
        p->flushed = p->flushes; /* a dead peer answers no flush */
    }
    if (!p->dirty && (is_flushed(p) || lost) && !batch_has_pieces(p))
        list_remove(&p->busy);
}

/* Requests a confirmation of all frames sent so far; frames that are sent later need another flush. */
static void send_flush_request(struct win_peer *p, enum rma_frame how, int type)
{
    p->dirty = false;
    rma_send(p, how, (uint16_t)type, 0, ++p->flushes, NULL, 0);
}

int peer_flush_and_wait(struct win_peer *p, enum rma_frame how, int type)
{
    batch_run(p);
    /* All operations must be complete before RMA_UNLOCK releases the lock. */
    int rc = wait_for_peer(p, nothing_pending);
    if (!rc)
        send_flush_request(p, how, type);
    rc = rc ? rc : wait_for_peer(p, is_flushed);
    peer_mark_idle(p, rc != 0);
    int fault = peer_fetch_error(p);
    return rc ? rc : fault;
}

int peer_wait_operations(struct win_peer *p, bool remotely)
{
    atomic_thread_fence(memory_order_seq_cst); /* orders direct loads and stores to shared memory */
    if (!win_peer_is_busy(p))
        return MPI_SUCCESS;
    batch_run(p);
    if (remotely && p->dirty)
        return peer_flush_and_wait(p, RMA_FLUSH, 0);
    /* Another thread's flush may confirm the frames of this thread. */
    bool (*const ready)(void *) = remotely ? is_flushed : nothing_pending;
    int rc = ready(p) ? MPI_SUCCESS : wait_for_peer(p, ready);
    peer_mark_idle(p, rc != 0);
    int fault = peer_fetch_error(p);
    return rc ? rc : fault;
}

/* Returns a busy peer that round `round` has not waited for yet. */
static struct win_peer *next_busy(struct win *w, bool remotely, uint64_t round)
{
    list_foreach(pos, &w->busy)
    {
        struct win_peer *p = list_entry(pos, struct win_peer, busy);
        if (p->round[remotely] < round)
            return p;
    }
    return NULL;
}

/* Sends all flush requests before waiting for the first reply. */
int peers_wait_operations(struct win *w, bool remotely)
{
    const uint64_t round = ++w->proc->rma->rounds;
    struct win_peer *p;
    int rc = MPI_SUCCESS;
    atomic_thread_fence(memory_order_seq_cst);
    list_foreach(pos, &w->busy)
    {
        p = list_entry(pos, struct win_peer, busy);
        batch_run(p);
        if (remotely && p->dirty)
            send_flush_request(p, RMA_FLUSH, 0);
    }
    while ((p = next_busy(w, remotely, round)) != NULL) {
        int lost = wait_for_peer(p, remotely ? is_flushed : nothing_pending);
        p->round[remotely] = MAX(p->round[remotely], round);
        peer_mark_idle(p, lost != 0);
        int fault = peer_fetch_error(p);
        rc = rc ? rc : lost ? lost : fault;
    }
    return rc;
}

int win_barrier(struct win *w)
{
    struct coll_args a = {.kind = COLL_BARRIER, .name = "MPI_Win_fence", .comm = w->comm};
    int rc = w->comm->size > 1 ? coll_run(&a) : MPI_SUCCESS;
    atomic_thread_fence(memory_order_seq_cst);
    return rc;
}

#define FENCE_ASSERTIONS \
    (MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED | MPI_MODE_NOCHECK)

int win_fence(struct win *w, int assertion)
{
    if (assertion & ~FENCE_ASSERTIONS)
        return win_error(w, MPI_ERR_ASSERT, "assert is %#x, which is not made of MPI_MODE_ constants",
                         (unsigned)assertion);
    if (w->access > EPOCH_FENCE)
        return win_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_fence: an epoch of %s is open",
                         w->access == EPOCH_START ? "MPI_Win_start" : "MPI_Win_lock");
    if (w->exposed)
        return win_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_fence: MPI_Win_post was not followed by MPI_Win_wait");
    if ((assertion & MPI_MODE_NOPRECEDE) && w->fence_ops > 0)
        return win_error(
            w, MPI_ERR_RMA_SYNC,
            "MPI_Win_fence: MPI_MODE_NOPRECEDE, but operations have been called since the last fence");
    int rc = peers_wait_operations(w, true);
    int met = win_barrier(w);
    watch_switch_fence_epoch(w);
    w->fences++;
    watch_forget_rank(w, -1);
    w->fence_ops = 0;
    w->access = assertion & MPI_MODE_NOSUCCEED ? EPOCH_NONE : EPOCH_FENCE;
    return rc ? rc : met;
}

static int check_passive(const struct win *w, const char *what)
{
    if (w->access == EPOCH_LOCK || w->access == EPOCH_LOCK_ALL)
        return MPI_SUCCESS;
    return win_error(w, MPI_ERR_RMA_SYNC,
                     "%s is only for epochs of MPI_Win_lock and MPI_Win_lock_all, and none is open", what);
}

/* Called for a flush or unlock that has nothing to wait for. Programs poll memory by operations and flushes
 * in a loop (for a lock or a list of their own): the change that they poll for may arrive in a frame to this
 * process, or come from a process that needs this core. */
void win_count_empty_flush(struct win *w)
{
    struct proc *p = w->proc;
    if (likely(++p->rma->idle % EMPTY_FLUSHES_PER_POLL != 0) || net_progress(p->net) > 0)
        return;
    if (p->threaded)
        biglock_count_empty_poll(&p->lock);
    else if (p->net->oversubscribed)
        sched_yield();
}

int win_flush(struct win *w, int rank, bool local)
{
    struct win_peer *p;
    int rc = check_rank(w, rank);
    rc = rc ? rc : check_passive(w, local ? "MPI_Win_flush_local" : "MPI_Win_flush");
    if (rc || rank == MPI_PROC_NULL)
        return rc;
    rc = win_peer_find_or_create(w, rank, &p);
    if (!rc && w->access == EPOCH_LOCK && !p->lock)
        rc = win_error(w, MPI_ERR_RMA_SYNC, "rank %d is not locked", rank);
    if (rc)
        return rc;
    if (unlikely(w->proc->rma->debug))
        (local ? watch_complete_gets : watch_forget_rank)(w, rank);
    if (!win_peer_is_busy(p))
        win_count_empty_flush(w);
    return peer_wait_operations(p, !local);
}

int win_flush_all(struct win *w, bool local)
{
    int rc = check_passive(w, local ? "MPI_Win_flush_local_all" : "MPI_Win_flush_all");
    if (!rc && unlikely(w->proc->rma->debug))
        (local ? watch_complete_gets : watch_forget_rank)(w, -1);
    if (!rc && list_empty(&w->busy))
        win_count_empty_flush(w);
    return rc ? rc : peers_wait_operations(w, !local);
}

int win_sync(struct win *w)
{
    if (unlikely(w->stores))
        stores_reset_budget(w->stores);
    atomic_thread_fence(memory_order_seq_cst);
    /* Programs poll memory with MPI_Win_sync in a loop: the process that writes the memory may need this
     * process to make progress. */
    net_progress(w->proc->net);
    return MPI_SUCCESS;
}
