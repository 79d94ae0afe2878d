/* window_lock.c: passive target synchronisation. The lock of a target is a gate (gate.h) in its slot. Ranks
 * of the target's node enter the gate with processor atomics; ranks of other nodes enter it by RDMA if the
 * adapter can add (far.c). Otherwise the target's progress enters it for them when RMA_LOCK arrives, and
 * sends RMA_LOCKED when they are inside.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/rma.h"

/* Executes a step of a gate by processor atomics. Stores the value before an addition in *old. */
static void near_run_step(struct win_slot *slot, const struct gate_step *step, uint64_t *old)
{
    for (uint32_t i = 0; i < step->count; i++) {
        const struct gate_op *op = &step->op[i];
        if (op->add)
            *old = atomic_fetch_add(&slot->gate[op->word], op->value);
        else
            atomic_store(&slot->gate[op->word], op->value);
    }
}

static void near_begin_entry(struct near_entry *n, struct win_slot *slot, int type, bool one_side,
                             uint32_t rank)
{
    struct gate_step step;
    n->slot = slot;
    n->rank = rank;
    n->awaits = (struct net_named){"lock of a window's memory", NET_NOBODY, true};
    gate_enter(&n->entry, GATE_NEAR, type == MPI_LOCK_SHARED, one_side, &step);
    near_run_step(slot, &step, &n->old);
}

static bool near_advance_entry(void *arg)
{
    struct near_entry *n = arg;
    struct gate_step step;
    bool inside;
    do {
        uint64_t seen[GATE_WORDS];
        for (uint32_t i = 0; i < GATE_WORDS; i++)
            seen[i] = atomic_load(&n->slot->gate[i]);
        inside = gate_next_step(&n->entry, n->old, seen, &step);
        near_run_step(n->slot, &step, &n->old);
    } while (!inside && step.count > 0);
    if (inside && !n->entry.shared)
        atomic_store_explicit(&n->slot->holder, n->rank + 1, memory_order_relaxed);
    else if (!inside)
        n->awaits.rank = atomic_load_explicit(&n->slot->holder, memory_order_relaxed) - 1; /* 0: NET_NOBODY */
    return inside;
}

static void near_leave_lock(struct win_slot *slot, int type, bool one_side)
{
    const struct gate_entry entry = {
        .side = GATE_NEAR, .shared = type == MPI_LOCK_SHARED, .one_side = one_side};
    struct gate_step step;
    uint64_t old;
    if (type == MPI_LOCK_EXCLUSIVE)
        atomic_store_explicit(&slot->holder, 0, memory_order_relaxed);
    gate_leave(&entry, &step);
    near_run_step(slot, &step, &old);
}

/* True if all users of this lock are on the target's node. */
static bool has_only_near_users(const struct win_target *t)
{
    return !t->locks_open;
}

static bool is_lock_granted(void *arg)
{
    return ((struct win_peer *)arg)->granted;
}

static int near_lock_window(struct win_peer *p, int type)
{
    struct rma *r = p->win->proc->rma;
    struct near_entry n;
    near_begin_entry(&n, p->slot, type, has_only_near_users(&p->at), r->proc->rank);
    if (near_advance_entry(&n))
        return MPI_SUCCESS;
    return rma_wait_for(r, p->win, NULL, near_advance_entry, &n, true, &n.awaits);
}

static int request_lock(struct win_peer *p, int type)
{
    /* An earlier request of this rank may still be queued at the target. */
    if (unlikely(p->win->comm->broken))
        return win_report_lost(p->win, NULL);
    p->granted = false;
    rma_send(p, RMA_LOCK, (uint16_t)type, 0, 0, NULL, 0);
    return rma_wait_for(p->win->proc->rma, p->win, NULL, is_lock_granted, p, false,
                        &(struct net_named){"lock of a window's memory", NET_NOBODY, true});
}

static int lock_acquire(struct win_peer *p, int type, bool nocheck)
{
    int rc = nocheck           ? MPI_SUCCESS
             : p->slot         ? near_lock_window(p, type)
             : far_can_lock(p) ? far_lock_window(p, type)
                               : request_lock(p, type);
    if (rc)
        return rc;
    p->lock = type;
    p->lock_nocheck = nocheck;
    return MPI_SUCCESS;
}

static bool has_no_acquirer(void *arg)
{
    return !((struct win_peer *)arg)->acquiring;
}

/* Takes the lock, or returns at once if it is held. Operations call it too, for the first access to a target
 * under MPI_Win_lock_all: several threads may do so at once, and the lock is taken only once. */
int peer_lock(struct win_peer *p, int type, bool nocheck)
{
    if (unlikely(p->acquiring))
        rma_wait(p->win->proc->rma, has_no_acquirer, p, true, "lock that another thread acquires");
    if (p->lock)
        return p->win->access == EPOCH_LOCK_ALL
                   ? MPI_SUCCESS
                   : win_error(p->win, MPI_ERR_RMA_SYNC, "rank %d is locked already", p->rank);
    p->acquiring = true;
    int rc = lock_acquire(p, type, nocheck);
    p->acquiring = false;
    return rc;
}

static int peer_unlock(struct win_peer *p)
{
    const int type = p->lock;
    int rc;
    watch_forget_rank(p->win, p->rank); /* ends the recorded epoch before another rank may get the lock */
    p->lock = 0;
    if (p->lock_nocheck || p->slot || p->far) {
        rc = peer_wait_operations(p, true);
        if (!p->lock_nocheck && p->slot)
            near_leave_lock(p->slot, type, has_only_near_users(&p->at));
        else if (!p->lock_nocheck) {
            int left = far_unlock_window(p, type);
            rc = rc ? rc : left;
        }
    } else {
        rc = peer_flush_and_wait(p, RMA_UNLOCK, type);
    }
    return rc;
}

/* ---- the target, for other nodes ---- */

static int lock_grant(struct win *w)
{
    int granted = 0;
    while (!list_empty(&w->waiting)) {
        struct win_peer *from = list_entry(w->waiting.next, struct win_peer, request.link);
        if (!near_advance_entry(&from->request.entry))
            break;
        list_remove(&from->request.link);
        from->request.waiting = false;
        rma_send(from, RMA_LOCKED, 0, 0, 0, NULL, 0);
        granted++;
    }
    return granted;
}

void lock_stop_polling(struct win *w)
{
    if (!w->hooked)
        return;
    list_remove(&w->hook.link);
    w->proc->net->unrung--;
    w->hooked = false;
}

/* Polls the lock of this rank for `waiting` origins: ranks of this node and adapters of other nodes release
 * the lock without a message. */
static int lock_poll_waiters(struct net_hook *hook)
{
    struct win *w = container_of(hook, struct win, hook);
    int granted = lock_grant(w);
    if (list_empty(&w->waiting))
        lock_stop_polling(w);
    return granted;
}

void lock_handle_request(struct win *w, struct win_peer *from, int type)
{
    CHECK(type == MPI_LOCK_SHARED || type == MPI_LOCK_EXCLUSIVE, "a lock request of an unknown kind arrived");
    CHECK(!from->request.waiting, "a rank requested a lock that it is waiting for already");
    near_begin_entry(&from->request.entry, w->my_slot, type, has_only_near_users(w->mine), from->peer->rank);
    from->request.waiting = true;
    list_append(&w->waiting, &from->request.link);
    lock_grant(w);
    if (list_empty(&w->waiting) || w->hooked)
        return;
    w->hook.progress = lock_poll_waiters;
    list_append(&w->proc->net->hooks, &w->hook.link);
    w->proc->net->unrung++;
    w->hooked = true;
}

void lock_handle_unlock(struct win *w, struct win_peer *from, int type)
{
    (void)from;
    CHECK(type == MPI_LOCK_SHARED || type == MPI_LOCK_EXCLUSIVE, "an unlock of an unknown kind arrived");
    near_leave_lock(w->my_slot, type, has_only_near_users(w->mine));
    lock_grant(w);
}

/* ---- the calls ---- */

static int check_may_lock(const struct win *w, const char *what)
{
    if (unlikely(w->comm->broken)) /* the holder of a lock may be dead */
        return win_report_lost(w, NULL);
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

static int check_assertion(struct win *w, int assertion, const char *what)
{
    if (assertion & ~MPI_MODE_NOCHECK)
        return win_error(w, MPI_ERR_ASSERT, "assert is %#x; %s takes MPI_MODE_NOCHECK", (unsigned)assertion,
                         what);
    return MPI_SUCCESS;
}

int win_lock(struct win *w, int type, int rank, int assertion)
{
    struct win_peer *p;
    if (type != MPI_LOCK_SHARED && type != MPI_LOCK_EXCLUSIVE)
        return win_error(w, MPI_ERR_LOCKTYPE, "lock_type is %d, not MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE",
                         type);
    int rc = check_rank(w, rank);
    rc = rc ? rc : check_assertion(w, assertion, "MPI_Win_lock");
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
        const bool idle = !win_peer_is_busy(p);
        rc = peer_unlock(p);
        if (idle)
            win_count_empty_flush(w);
    }
    if (--w->locks == 0)
        w->access = EPOCH_NONE;
    return rc;
}

/* Takes locks now only of targets whose memory the program may load and store directly. The lock of any other
 * target is taken at the first access to the target. */
int win_lock_all(struct win *w, int assertion)
{
    int rc = check_assertion(w, assertion, "MPI_Win_lock_all");
    rc = rc ? rc : check_may_lock(w, "MPI_Win_lock_all");
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
    const bool idle = list_empty(&w->busy);
    for (uint32_t i = 0; i < w->table_size; i++)
        if (w->table[i] && w->table[i]->lock) {
            int one = peer_unlock(w->table[i]);
            rc = rc ? rc : one;
        }
    w->access = EPOCH_NONE;
    if (idle)
        win_count_empty_flush(w);
    return rc;
}
