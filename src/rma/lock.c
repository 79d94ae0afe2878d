/* lock.c: passive target synchronisation. A lock is three counters at its target (struct win_slot). A process
 * takes a ticket from `users`; a writer enters when all before it are done (`write`), a reader when all
 * before it are done or are readers that have entered (`read`). The order is first come, first served;
 * consecutive readers share the lock.
 *
 * Ranks of the target's node do this themselves, by atomics. For the others the target's progress takes the
 * ticket when RMA_LOCK arrives, and answers when it is their turn.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/engine.h"

struct turn {
    struct win_slot *slot;
    uint64_t ticket;
    int type;
};

static bool is_my_turn(void *arg)
{
    const struct turn *t = arg;
    return atomic_load_explicit(t->type == MPI_LOCK_SHARED ? &t->slot->read : &t->slot->write,
                                memory_order_acquire) == t->ticket;
}

static uint64_t take_ticket(struct win_slot *slot)
{
    return atomic_fetch_add_explicit(&slot->users, 1, memory_order_acq_rel);
}

/* It is this one's turn: a reader lets the next one look. */
static void go_in(const struct turn *t)
{
    if (t->type == MPI_LOCK_SHARED)
        atomic_fetch_add_explicit(&t->slot->read, 1, memory_order_acq_rel);
}

static void go_out(struct win_slot *slot, int type)
{
    if (type == MPI_LOCK_EXCLUSIVE)
        atomic_fetch_add_explicit(&slot->read, 1, memory_order_acq_rel);
    atomic_fetch_add_explicit(&slot->write, 1, memory_order_acq_rel);
}

static bool is_granted(void *arg)
{
    return ((struct win_peer *)arg)->granted;
}

/* Also from inside an operation, for the first one to a target under MPI_Win_lock_all. */
int peer_lock(struct win_peer *p, int type, bool nocheck)
{
    struct rma *r = p->win->proc->rma;
    if (!nocheck && p->slot) {
        struct turn t = {.slot = p->slot, .ticket = take_ticket(p->slot), .type = type};
        if (!is_my_turn(&t))
            rma_wait(r, is_my_turn, &t, true);
        go_in(&t);
    } else if (!nocheck) {
        p->granted = false;
        rma_send(p, RMA_LOCK, (uint16_t)type, 0, 0, NULL, 0);
        rma_wait(r, is_granted, p, false);
    }
    p->lock = type;
    p->lock_nocheck = nocheck;
    return MPI_SUCCESS;
}

static int peer_unlock(struct win_peer *p)
{
    const int type = p->lock;
    int rc;
    p->lock = 0;
    if (p->lock_nocheck || p->slot) {
        rc = peer_finish(p, true);
        if (!p->lock_nocheck)
            go_out(p->slot, type);
    } else {
        rc = peer_settle(p, RMA_UNLOCK, type);
    }
    watch_forget(p->win, p->rank);
    return rc;
}

/* ---- the target, for other nodes ---- */

static int grant(struct win *w)
{
    int granted = 0;
    while (!list_empty(&w->waiting)) {
        struct win_peer *from = list_entry(w->waiting.next, struct win_peer, request.link);
        struct turn t = {.slot = w->my_slot, .ticket = from->request.ticket, .type = from->request.type};
        if (!is_my_turn(&t))
            break;
        go_in(&t);
        list_remove(&from->request.link);
        from->request.waiting = false;
        rma_send(from, RMA_LOCKED, 0, 0, 0, NULL, 0);
        granted++;
    }
    return granted;
}

/* Ranks of this node let go without telling anyone: look now and then while somebody waits. */
static int look(struct net_hook *hook)
{
    struct win *w = container_of(hook, struct win, hook);
    int granted = grant(w);
    if (list_empty(&w->waiting)) {
        list_remove(&w->hook.link);
        w->proc->net->unrung--;
        w->hooked = false;
    }
    return granted;
}

void lock_arrived(struct win *w, struct win_peer *from, int type)
{
    CHECK(type == MPI_LOCK_SHARED || type == MPI_LOCK_EXCLUSIVE, "a lock request of an unknown kind arrived");
    CHECK(!from->request.waiting, "a rank asked for a lock that it is waiting for already");
    from->request.type = type;
    from->request.ticket = take_ticket(w->my_slot);
    from->request.waiting = true;
    list_append(&w->waiting, &from->request.link);
    grant(w);
    if (list_empty(&w->waiting) || w->hooked)
        return;
    w->hook.progress = look;
    list_append(&w->proc->net->hooks, &w->hook.link);
    w->proc->net->unrung++;
    w->hooked = true;
}

void unlock_arrived(struct win *w, struct win_peer *from, int type)
{
    (void)from;
    CHECK(type == MPI_LOCK_SHARED || type == MPI_LOCK_EXCLUSIVE, "an unlock of an unknown kind arrived");
    go_out(w->my_slot, type);
    grant(w);
}

/* ---- the calls ---- */

static int check_may_lock(const struct win *w, const char *what)
{
    if (w->no_locks)
        return win_error(w, MPI_ERR_RMA_SYNC, "%s: the window was made with the info key no_locks", what);
    if (w->access == EPOCH_START)
        return win_error(w, MPI_ERR_RMA_SYNC, "%s: an epoch of MPI_Win_start is open", what);
    if (w->access == EPOCH_FENCE && w->fence_ops > 0)
        return win_error(
            w, MPI_ERR_RMA_SYNC,
            "%s: operations have been called since MPI_Win_fence; another fence must follow first", what);
    return MPI_SUCCESS;
}

int win_lock(struct win *w, int type, int rank, int assertion)
{
    struct win_peer *p;
    if (type != MPI_LOCK_SHARED && type != MPI_LOCK_EXCLUSIVE)
        return win_error(w, MPI_ERR_LOCKTYPE, "lock_type is %d, not MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE",
                         type);
    int rc = check_rank(w, rank);
    rc = rc ? rc : check_may_lock(w, "MPI_Win_lock");
    if (!rc && w->access == EPOCH_LOCK_ALL)
        rc = win_error(w, MPI_ERR_RMA_SYNC, "all ranks are locked already by MPI_Win_lock_all");
    if (rc)
        return rc;
    if (rank != MPI_PROC_NULL) {
        rc = win_peer(w, rank, &p);
        if (!rc && p->lock)
            rc = win_error(w, MPI_ERR_RMA_SYNC, "rank %d is locked already", rank);
        rc = rc ? rc : peer_lock(p, type, assertion & MPI_MODE_NOCHECK);
        if (rc)
            return rc;
    }
    w->access = EPOCH_LOCK;
    w->locks++;
    return MPI_SUCCESS;
}

int win_unlock(struct win *w, int rank)
{
    struct win_peer *p;
    int rc = check_rank(w, rank);
    if (rc)
        return rc;
    if (w->access != EPOCH_LOCK)
        return win_error(w, MPI_ERR_RMA_SYNC, "rank %d is not locked", rank);
    if (rank != MPI_PROC_NULL) {
        rc = win_peer(w, rank, &p);
        if (!rc && !p->lock)
            rc = win_error(w, MPI_ERR_RMA_SYNC, "rank %d is not locked", rank);
        if (rc)
            return rc;
        rc = peer_unlock(p);
    }
    if (--w->locks == 0)
        w->access = EPOCH_NONE;
    return rc;
}

/* Locks are taken when a target is first touched, except where the program may load and store without telling us. */
int win_lock_all(struct win *w, int assertion)
{
    int rc = check_may_lock(w, "MPI_Win_lock_all");
    if (!rc && (w->access == EPOCH_LOCK || w->access == EPOCH_LOCK_ALL))
        rc = win_error(w, MPI_ERR_RMA_SYNC, "a lock is held already");
    const bool nocheck = assertion & MPI_MODE_NOCHECK, shared = w->flavor == MPI_WIN_FLAVOR_SHARED;
    const int first = shared ? 0 : w->comm->rank, end = shared ? w->comm->size : w->comm->rank + 1;
    for (int r = first; r < end && !rc && !nocheck; r++) {
        struct win_peer *p;
        rc = win_peer(w, r, &p);
        rc = rc ? rc : peer_lock(p, MPI_LOCK_SHARED, false);
    }
    if (rc)
        return rc;
    w->access = EPOCH_LOCK_ALL;
    w->lock_all_nocheck = nocheck;
    return MPI_SUCCESS;
}

int win_unlock_all(struct win *w)
{
    int rc = MPI_SUCCESS;
    if (w->access != EPOCH_LOCK_ALL)
        return win_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_lock_all has not been called");
    for (uint32_t i = 0; i < w->table_size; i++)
        if (w->table[i] && w->table[i]->lock) {
            int one = peer_unlock(w->table[i]);
            rc = rc ? rc : one;
        }
    w->access = EPOCH_NONE;
    return rc;
}
