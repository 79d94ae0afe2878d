/* adapter_atomics.c: integers of 8 bytes that the target's adapter changes for all origins (info key
 * fishplate_accumulate_by=adapter). An adapter is atomic only with respect to its own requests, so no
 * processor atomics change these elements in such a window: ranks of other nodes send the adapter RDMA
 * requests, which the target's processor does not handle; the target, for itself and for frames (of ranks of
 * its node, or of many elements), uses its own adapter. A sum is one request; an operator that an adapter
 * does not have (bits, minimum, replace) repeats compare-and-swap until it succeeds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/counter.h"
#include "boot/boot.h"
#include "dt/kernel.h"
#include "rma/rma.h"

static COUNTER(
    adapter_atomics, "rma_adapter_atomics",
    "Accumulated elements and compare-and-swaps that the adapter of a rank on another node carried "
    "out, without its processor.");

#define ELEMENTS_MAX 4 /* a call with more elements is sent to the target in a frame */

bool adapter_can_change_element(const struct dtype *basic, uint64_t address)
{
    return basic->size == 8 && has_processor_atomic(basic, address);
}

static uint64_t compute_new_value(const struct op *op, const struct dtype *basic, uint64_t value,
                                  uint64_t old)
{
    if (op->code == OP_REPLACE)
        return value;
    op_kernel_for((enum op_code)op->code, (enum dt_num)dt_kinds[basic->kind].num)(&value, &old, &old, 1);
    return old;
}

static bool is_single_atomic(const struct op *op, const struct dtype *basic)
{
    return op->code == OP_NO_OP || is_integer_sum(op, basic);
}

/* An 8-byte word of a target. `change` executes one adapter atomic on the word. */
struct word {
    bool (*change)(struct word *w, const struct net_atomic *change, uint64_t *old);
    struct win *win;
    struct win_peer *to; /* NULL: the word is in this process's memory */
    uint64_t address;
};

static bool word_apply(struct word *w, const struct op *op, const struct dtype *basic, uint64_t value,
                       uint64_t *old)
{
    const bool once = is_single_atomic(op, basic);
    uint64_t found;
    if (!w->change(w, &(struct net_atomic){.operand = once ? value : 0}, old))
        return false;
    if (once)
        return true;
    for (;;) {
        const struct net_atomic swap = {
            .swap = true, .operand = *old, .value = compute_new_value(op, basic, value, *old)};
        if (!w->change(w, &swap, &found))
            return false;
        if (found == *old)
            return true;
        *old = found;
    }
}

/* ---- words of this process ---- */

static bool change_local_word(struct word *word, const struct net_atomic *change, uint64_t *old)
{
    struct win *w = word->win;
    const struct net_key *key = &w->mine->key;
    if (likely(w->adapter->ops->atomic_here(w->adapter, change, old, (void *)(uintptr_t)word->address, key) ==
               0))
        return true;
    /* There is no fallback: only the adapter may change the word. */
    boot_abort(w->proc->boot, 1, err_detail(MPI_ERR_OTHER));
    return false;
}

void adapter_apply(struct win *w, const struct op *op, struct dtype *basic, const char *in, uint64_t *target,
                   char *fetched, size_t n)
{
    struct word word = {.change = change_local_word, .win = w};
    for (size_t i = 0; i < n; i++) {
        uint64_t value = 0, old;
        if (op->code != OP_NO_OP)
            memcpy(&value, in + i * sizeof(value), sizeof(value));
        word.address = (uintptr_t)&target[i];
        word_apply(&word, op, basic, value, &old);
        if (fetched)
            memcpy(fetched + i * sizeof(old), &old, sizeof(old));
    }
}

static struct net_atomic make_compare_swap(const void *value, const void *compare)
{
    struct net_atomic change = {.swap = true};
    memcpy(&change.operand, compare, sizeof(change.operand));
    memcpy(&change.value, value, sizeof(change.value));
    return change;
}

void adapter_swap(struct win *w, const void *value, const void *compare, uint64_t *target, void *fetched)
{
    struct word word = {.change = change_local_word, .win = w, .address = (uintptr_t)target};
    const struct net_atomic change = make_compare_swap(value, compare);
    uint64_t old;
    change_local_word(&word, &change, &old);
    memcpy(fetched, &old, sizeof(old));
}

/* ---- words of a rank on another node ---- */

struct atomic_request {
    struct net_op op;
    struct win_peer *to;
    struct rma_op *of; /* operation of the request; NULL: change_remote_word() waits for the request */
    char *into;        /* destination of the old value, or NULL */
    int status;
    bool over;
};

struct reach {
    uint64_t first, end; /* offsets in the target's memory */
};

struct adapter_atomics {
    struct net_mem mem;
    struct reach reach[2]; /* memory that accumulates in progress change: [0] by frames, [1] by the adapter */
    struct atomic_request request[RMA_UNDER_WAY];
    uint64_t old[RMA_UNDER_WAY]; /* values before the change, written by the adapter */
    uint8_t idle[RMA_UNDER_WAY]; /* indexes of unused requests */
    int nidle;
};

static int adapter_atomics_open(struct win_peer *p)
{
    struct transport *adapter = p->win->adapter;
    struct net_key unused;
    struct adapter_atomics *x = calloc(1, sizeof(*x));
    if (!x)
        return win_error(p->win, MPI_ERR_NO_MEM, "out of memory for operations on rank %d", p->rank);
    int rc = adapter->ops->mem_register(adapter, x, sizeof(*x), &x->mem, &unused);
    if (rc) {
        free(x);
        return rc;
    }
    for (int i = 0; i < RMA_UNDER_WAY; i++)
        x->idle[x->nidle++] = (uint8_t)i;
    p->adapter_atomics = x;
    return MPI_SUCCESS;
}

void adapter_atomics_close(struct win_peer *p)
{
    if (!p->adapter_atomics)
        return;
    p->win->adapter->ops->mem_release(p->win->adapter, &p->adapter_atomics->mem);
    free(p->adapter_atomics);
}

static void free_request(struct adapter_atomics *x, const struct atomic_request *r)
{
    x->idle[x->nidle++] = (uint8_t)(r - x->request);
}

static void on_atomic_done(struct net_op *op, int status)
{
    struct atomic_request *r = container_of(op, struct atomic_request, op);
    struct adapter_atomics *x = r->to->adapter_atomics;
    r->status = status;
    r->over = true;
    if (!r->of)
        return;
    if (unlikely(status))
        op_record_fault(r->of, status);
    else if (r->into)
        memcpy(r->into, &x->old[r - x->request], sizeof(uint64_t));
    free_request(x, r);
    op_record_progress(r->of, sizeof(uint64_t));
}

static bool has_idle_request(void *arg)
{
    return ((struct win_peer *)arg)->adapter_atomics->nidle > 0;
}

static struct atomic_request *post_atomic(struct win_peer *p, const struct net_atomic *change,
                                          uint64_t remote, struct rma_op *of, char *into)
{
    struct adapter_atomics *x = p->adapter_atomics;
    if (x->nidle == 0)
        rma_wait(p->win->proc->rma, has_idle_request, p, false, "adapter that changes elements of a window");
    struct atomic_request *r = &x->request[x->idle[--x->nidle]];
    *r = (struct atomic_request){.op.done = on_atomic_done, .to = p, .of = of, .into = into};
    if (of)
        op_add_piece(of);
    counter_add(&adapter_atomics, !change->swap || of);
    int rc = adapter_post(p, &(struct adapter_request){.kind = ADAPTER_ATOMIC,
                                                       .local = &x->old[r - x->request],
                                                       .mem = &x->mem,
                                                       .remote = remote,
                                                       .key = &p->at.key,
                                                       .change = *change,
                                                       .op = &r->op});
    if (rc)
        on_atomic_done(&r->op, rc);
    return r;
}

static bool is_request_over(void *arg)
{
    return ((struct atomic_request *)arg)->over;
}

static bool change_remote_word(struct word *w, const struct net_atomic *change, uint64_t *old)
{
    struct adapter_atomics *x = w->to->adapter_atomics;
    struct atomic_request *r = post_atomic(w->to, change, w->address, NULL, NULL);
    rma_wait(w->win->proc->rma, is_request_over, r, false, "adapter that changes elements of a window");
    *old = x->old[r - x->request];
    if (r->status)
        w->to->fault = r->status;
    free_request(x, r);
    return r->status == 0;
}

bool adapter_atomics_are_possible(const struct rma_call *c, const struct win_peer *to, uint64_t offset)
{
    const bool takes = c->op && c->op->code != OP_NO_OP, gives = c->kind == RMA_IS_GET_ACCUMULATE;
    return to->peer->transport == c->win->adapter && c->win->adapter->adds && c->count <= ELEMENTS_MAX &&
           !gpu_memory_is_device(c->result.buf) && c->type->obj.predefined &&
           adapter_can_change_element(c->type, to->at.base + offset) &&
           (!takes || c->origin.type == c->type) && (!gives || c->result.type == c->type);
}

/* Accumulates of one origin to the same memory keep their order (MPI-5.0, 12.7.2): an operation by frames
 * waits for overlapping operations by the adapter, and vice versa. The ranges of frames sent before the
 * adapter's first use are not recorded, so the adapter's first operation waits for all of them. */
int adapter_wait_for_conflicts(const struct rma_call *c, struct win_peer *to, uint64_t offset,
                               bool by_adapter)
{
    struct adapter_atomics *x = to->adapter_atomics;
    if (!x)
        return by_adapter ? peer_wait_operations(to, true) : MPI_SUCCESS;
    struct reach *const mine = &x->reach[by_adapter], *const other = &x->reach[!by_adapter];
    MPI_Aint gap;
    const MPI_Count span = dt_span(c->type, c->count, &gap);
    const uint64_t first = offset + (uint64_t)gap, end = first + (uint64_t)span;
    int rc = MPI_SUCCESS;
    if (to->busy.next != &to->busy && first < other->end && other->first < end)
        rc = peer_wait_operations(to, true);
    if (!win_peer_is_busy(to)) /* no operation on this peer is in progress */
        *mine = *other = (struct reach){0};
    *mine =
        mine->end ? (struct reach){MIN(mine->first, first), MAX(mine->end, end)} : (struct reach){first, end};
    return rc;
}

/* Starts a call that needs one adapter request per element. Does not wait for completion. */
static int start_requests(const struct rma_call *c, struct win_peer *to, uint64_t address)
{
    const bool gives = c->kind != RMA_IS_ACCUMULATE;
    struct rma_op *o;
    int rc = operation_create(c, gives ? &c->result : &c->origin, to, &o);
    if (rc)
        return rc;
    for (MPI_Count i = 0; i < c->count; i++) {
        struct net_atomic change = {0};
        if (c->kind == RMA_IS_SWAP)
            change = make_compare_swap(c->origin.buf, c->compare);
        else if (c->op->code != OP_NO_OP)
            memcpy(&change.operand, (const char *)c->origin.buf + 8 * i, sizeof(change.operand));
        post_atomic(to, &change, address + 8 * (uint64_t)i, o, gives ? (char *)c->result.buf + 8 * i : NULL);
    }
    op_end_sending(o);
    return MPI_SUCCESS;
}

int adapter_atomics_start(const struct rma_call *c, struct win_peer *to, uint64_t offset)
{
    struct word word = {.change = change_remote_word, .win = c->win, .to = to};
    const uint64_t address = to->at.base + offset;
    int rc = to->adapter_atomics ? MPI_SUCCESS : adapter_atomics_open(to);
    if (rc)
        return rc;
    if (c->kind == RMA_IS_SWAP || is_single_atomic(c->op, c->type))
        return start_requests(c, to, address);
    if (c->request)
        *c->request = p2p_completed_send_request(c->win->proc->p2p);
    win_peer_mark_busy(to); /* so that the next flush, unlock or fence returns an error of these requests */
    for (MPI_Count i = 0; i < c->count; i++) {
        uint64_t value, old;
        memcpy(&value, (const char *)c->origin.buf + 8 * i, sizeof(value));
        word.address = address + 8 * (uint64_t)i;
        if (!word_apply(&word, c->op, c->type, value, &old))
            break;
        if (c->kind == RMA_IS_GET_ACCUMULATE)
            memcpy((char *)c->result.buf + 8 * i, &old, sizeof(old));
    }
    return MPI_SUCCESS;
}
