/* dispatch.c: checks the user's call of a one-sided operation and chooses the path: loads and stores if the
 * target's memory is mapped here, the transport's put and get, or frames.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/checked.h"
#include "dt/kernel.h"
#include "dt/kind.h"
#include "net/lost.h"
#include "rma/rma.h"

int check_rank(const struct win *w, int rank)
{
    if ((unsigned)rank < (unsigned)w->comm->size || rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return win_error(w, MPI_ERR_RANK, "the target is rank %d; the window's ranks are 0 to %d", rank,
                     w->comm->size - 1);
}

static int check_epoch(const struct rma_call *c, struct win_peer *to)
{
    struct win *w = c->win;
    switch (w->access) {
    case EPOCH_FENCE:
        w->fence_ops++;
        return MPI_SUCCESS;
    case EPOCH_START:
        return to->started
                   ? MPI_SUCCESS
                   : win_error(w, MPI_ERR_RMA_SYNC, "rank %d is not in the group of MPI_Win_start", c->rank);
    case EPOCH_LOCK:
        return to->lock ? MPI_SUCCESS : win_error(w, MPI_ERR_RMA_SYNC, "rank %d is not locked", c->rank);
    case EPOCH_LOCK_ALL:
        return to->lock ? MPI_SUCCESS : peer_lock(to, MPI_LOCK_SHARED, w->lock_all_nocheck);
    default:
        return win_error(w, MPI_ERR_RMA_SYNC,
                         "no access epoch is open: call MPI_Win_fence, MPI_Win_start, MPI_Win_lock or "
                         "MPI_Win_lock_all first");
    }
}

static int check_range(const struct rma_call *c, const struct win_peer *to, uint64_t *offset)
{
    const struct win *w = c->win;
    const struct win_target *t = &to->at;
    MPI_Aint gap;
    MPI_Count span, first, start;
    if (!dt_span_checked(c->type, c->count, &gap, &span))
        return win_error(w, MPI_ERR_RMA_RANGE,
                         "%lld elements of the target's datatype span more than 2^63 bytes",
                         (long long)c->count);
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        *offset = (uint64_t)c->disp;
        if (c->rank == w->comm->rank && !win_attached(w, *offset + (uint64_t)gap, (uint64_t)span))
            return win_error(w, MPI_ERR_RMA_RANGE, "%lld bytes at %#llx are not attached at rank %d",
                             (long long)span, (unsigned long long)(*offset + (uint64_t)gap), c->rank);
        return MPI_SUCCESS;
    }
    if (c->disp < 0)
        return win_error(w, MPI_ERR_DISP, "target_disp is %lld; it must not be negative", (long long)c->disp);
    if (!checked_mul(c->disp, t->unit, &first) || !checked_add(first, gap, &start) || start < 0 ||
        (uint64_t)start > t->size || (uint64_t)span > t->size - (uint64_t)start)
        return win_error(
            w, MPI_ERR_RMA_RANGE,
            "%lld bytes at displacement %lld (units of %lld bytes) end outside of the window of rank %d, "
            "which has %llu bytes",
            (long long)span, (long long)c->disp, (long long)t->unit, c->rank, (unsigned long long)t->size);
    *offset = (uint64_t)first;
    return MPI_SUCCESS;
}

static int check_side(const struct rma_call *c, const struct rma_side *side, const char *what)
{
    MPI_Count mine, theirs;
    if (!checked_mul(side->count, side->type->size, &mine) || !checked_mul(c->count, c->type->size, &theirs))
        return win_error(c->win, MPI_ERR_COUNT, "the %s or the target has more than 2^63 bytes of data",
                         what);
    if (mine == theirs)
        return MPI_SUCCESS;
    return win_error(c->win, mine > theirs ? MPI_ERR_TRUNCATE : MPI_ERR_ARG,
                     "the %s has %lld bytes of data and the target %lld: they must be the same", what,
                     (long long)mine, (long long)theirs);
}

static bool is_swap_type_valid(const struct dtype *t)
{
    const unsigned class = dt_kinds[t->kind].class;
    return t->obj.predefined && !t->shape && t->size <= 16 &&
           (class == CLASS_C_INTEGER || class == CLASS_FORTRAN_INTEGER || class == CLASS_LOGICAL ||
            class == CLASS_BYTE || class == CLASS_MULTI || class == CLASS_CHARACTER);
}

static int check_types(const struct rma_call *c)
{
    int rc = MPI_SUCCESS;
    if (c->kind == RMA_IS_SWAP)
        return is_swap_type_valid(c->type)
                   ? MPI_SUCCESS
                   : win_error(c->win, MPI_ERR_TYPE,
                               "MPI_Compare_and_swap takes a predefined integer, logical or byte type");
    if (c->op)
        rc = op_check_accumulate(c->op, c->type, c->count);
    if (!rc && c->kind == RMA_IS_ACCUMULATE && c->op->code == OP_NO_OP)
        rc = win_error(c->win, MPI_ERR_OP, "MPI_NO_OP is only for MPI_Get_accumulate and MPI_Fetch_and_op");
    if (!rc && c->origin.type && !(c->op && c->op->code == OP_NO_OP))
        rc = check_side(c, &c->origin, "origin");
    if (!rc && c->result.type)
        rc = check_side(c, &c->result, "result");
    return rc;
}

static int run_direct(const struct rma_call *c, struct win_peer *to, char *at)
{
    if (c->request)
        *c->request = p2p_completed_send_request(c->win->proc->p2p);
    switch (c->kind) {
    case RMA_IS_PUT:
        return dt_copy(c->origin.buf, c->origin.count, c->origin.type, at, c->count, c->type);
    case RMA_IS_GET:
        return dt_copy(at, c->count, c->type, c->origin.buf, c->origin.count, c->origin.type);
    case RMA_IS_SWAP:
        return win_swap(c->win, to->slot, c->type, c->origin.buf, c->compare, at, c->result.buf);
    default:
        return accumulate_direct(c, to, at);
    }
}

/* True if this process may load and store the target's memory directly. False for accumulates if only the
 * target's adapter may change elements. */
static bool is_direct(const struct rma_call *c, const struct win_peer *to)
{
    const struct win *w = c->win;
    const bool changes = c->op || c->kind == RMA_IS_SWAP;
    return to->here && !(changes && c->rank != w->comm->rank && unlikely(to->at.atomics == ATOMICS_ADAPTER));
}

static int accumulate_remote(const struct rma_call *c, struct win_peer *to, uint64_t offset)
{
    if (to->at.atomics != ATOMICS_PROCESSOR) {
        const bool by_adapter = adapter_atomics_are_possible(c, to, offset);
        int rc = c->win->unordered ? MPI_SUCCESS : adapter_wait_for_conflicts(c, to, offset, by_adapter);
        if (rc || by_adapter)
            return rc ? rc : adapter_atomics_start(c, to, offset);
    }
    return c->kind == RMA_IS_SWAP ? swap_start(c, to) : accumulate_start(c, to);
}

static bool is_target_in_epoch(struct win *w, const struct win_peer *to)
{
    if (w->access == EPOCH_FENCE)
        w->fence_ops++;
    return w->access == EPOCH_FENCE || (w->access == EPOCH_START && to->started) ||
           (w->access >= EPOCH_LOCK && to->lock != 0);
}

char *rma_local_address(struct win *w, int rank, MPI_Aint disp, uint64_t bytes)
{
    struct win_peer *to;
    uint64_t first;
    if ((unsigned)rank >= (unsigned)w->comm->size || win_peer_find_or_create(w, rank, &to) != 0)
        return NULL;
    const struct win_target *t = &to->at;
    if (unlikely(!to->known || !to->direct || bytes == 0 || disp < 0 || w->comm->broken ||
                 w->proc->rma->debug))
        return NULL;
    if (!checked_mul((uint64_t)disp, (uint64_t)t->unit, &first) || first > t->size ||
        bytes > t->size - first || !is_target_in_epoch(w, to))
        return NULL;
    return to->direct + first;
}

/* Argument of run_change(): the target of an accumulate. */
struct change_target {
    struct win_peer *to;
    uint64_t offset;
    char *at; /* mapped address of the target; NULL: frames or the adapter are used */
};

static int run_change(const struct rma_call *c, void *arg)
{
    const struct change_target *t = arg;
    return t->at ? run_direct(c, t->to, t->at) : accumulate_remote(c, t->to, t->offset);
}

int rma_run(const struct rma_call *c)
{
    struct win *w = c->win;
    struct win_peer *to;
    uint64_t offset = 0;
    int rc = check_rank(w, c->rank);
    if (unlikely(rc))
        return rc;
    if (unlikely(c->rank == MPI_PROC_NULL)) {
        if (c->request)
            *c->request = p2p_proc_null_request(w->proc->p2p);
        return MPI_SUCCESS;
    }
    rc = check_types(c);
    rc = rc ? rc : win_peer(w, c->rank, &to);
    rc = rc ? rc : check_epoch(c, to);
    const bool empty = c->count == 0 || c->type->size == 0;
    rc = rc || empty ? rc : check_range(c, to, &offset);
    if (unlikely(rc))
        return rc;
    if (unlikely(w->comm->broken) && peer_is_lost(to->peer))
        return win_report_lost(w, to);
    if (unlikely(empty)) {
        if (c->request)
            *c->request = p2p_completed_send_request(w->proc->p2p);
        return MPI_SUCCESS;
    }
    if (unlikely(w->proc->rma->debug))
        watch_record_call(c, offset);
    struct change_target t = {.to = to, .offset = offset};
    if (is_direct(c, to))
        t.at = w->flavor == MPI_WIN_FLAVOR_DYNAMIC ? (char *)(uintptr_t)offset : to->direct + offset;
    if (c->op || c->kind == RMA_IS_SWAP)
        return unlikely(rma_needs_copies(c, t.at)) ? rma_run_on_copies(c, t.at != NULL, run_change, &t)
                                                   : run_change(c, &t);
    if (t.at)
        return run_direct(c, to, t.at);
    return transfer_is_possible(c, to) ? transfer_start(c, to) : frame_move_start(c, to);
}
