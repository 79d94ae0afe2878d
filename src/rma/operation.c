/* operation.c: operations in progress that wait for data from the target or for transfers of an adapter.
 * win_peer.pending counts their pieces, for which the end of an epoch waits. Completes the user's request if
 * there is one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/lost.h"
#include "rma/rma.h"

static void operation_release(struct request *r)
{
    r->obj.magic = MAGIC_FREED;
    objmem_free(r);
}

static const struct request_ops request_kind = {.name = "one-sided operation", .release = operation_release};

struct win *rma_request_win(const struct request *r)
{
    return r->ops == &request_kind ? container_of(r, struct rma_op, base)->to->win : NULL;
}

int operation_create(const struct rma_call *c, const struct rma_side *into, struct win_peer *to,
                     struct rma_op **out)
{
    struct rma *r = c->win->proc->rma;
    struct rma_op *o = objmem_new(sizeof(*o));
    uint64_t cookie = o ? ids_add(&r->ids, o) : 0;
    if (!cookie) {
        objmem_free(o);
        return win_error(c->win, MPI_ERR_NO_MEM, "out of memory for an operation");
    }
    request_setup(&o->base, c->win->proc->p2p, &request_kind);
    o->to = to;
    o->cookie = cookie;
    o->type = into->type;
    dtype_retain(o->type);
    o->left = (uint64_t)(into->count * into->type->size);
    dt_cursor_init(&o->cursor, into->type, into->count, into->buf);
    o->sending = true;
    o->wanted = c->request != NULL;
    if (o->wanted)
        *c->request = &o->base;
    else
        o->base.freed = true; /* released when it completes */
    win_peer_mark_busy(to);
    *out = o;
    return MPI_SUCCESS;
}

static void operation_finish(struct rma_op *o, int error)
{
    ids_remove(&o->to->win->proc->rma->ids, o->cookie);
    if (o->registered)
        o->to->peer->transport->ops->mem_release(o->to->peer->transport, &o->mem);
    dtype_release(o->type);
    request_complete(&o->base, error);
}

void op_add_piece(struct rma_op *o)
{
    o->to->pending++;
}

void op_record_progress(struct rma_op *o, uint64_t bytes)
{
    if (o->to->pending)
        o->to->pending--;
    o->left -= bytes;
    if (o->left == 0 && !o->sending)
        operation_finish(o, o->error);
}

void op_end_sending(struct rma_op *o)
{
    o->sending = false;
    if (o->left == 0 || o->error)
        operation_finish(o, o->error);
}

void op_record_fault(struct rma_op *o, int status)
{
    struct win_peer *to = o->to;
    to->fault = status;
    if (peer_is_lost(to->peer))
        to->fault = o->error = win_report_lost(to->win, to);
}

/* Completes all operations on a process that has died, with an error. The transport has ended the transfers,
 * and no replies will arrive. */
void rma_member_died(struct proc *p, uint32_t number)
{
    struct rma *r = p->rma;
    for (uint32_t i = 0; i < r->ids.size; i++) {
        struct rma_op *o = r->ids.slots[i].object;
        if (!o || o->to->peer->rank != number)
            continue;
        o->to->pending = 0;
        o->error = win_report_lost(o->to->win, o->to);
        if (!o->sending)
            operation_finish(o, o->error);
    }
}

static bool has_few_pending(void *arg)
{
    return ((struct win_peer *)arg)->pending < RMA_UNDER_WAY;
}

void op_wait_few_pending(struct win_peer *to)
{
    /* The end of the epoch returns an error of this wait. */
    if (unlikely(to->pending >= RMA_UNDER_WAY))
        rma_wait_for(to->win->proc->rma, to->win, to, has_few_pending, to, false,
                     &(struct net_named){"answers to one-sided operations", to->peer->rank, false});
}

void operation_handle_reply(struct rma *r, struct peer *from, const struct frame_header *h,
                            const char *payload, size_t len)
{
    struct rma_op *o = ids_find(&r->ids, h->word);
    uint64_t position;
    CHECK(o != NULL && o->to->peer == from && len >= sizeof(position) && len - sizeof(position) <= o->left,
          "an answer arrived for a one-sided operation that does not exist");
    memcpy(&position, payload, sizeof(position));
    dt_cursor_seek(&o->cursor, position);
    dt_cursor_unpack(&o->cursor, payload + sizeof(position), len - sizeof(position));
    if (unlikely(o->cursor.error))
        op_record_fault(o, o->cursor.error);
    op_record_progress(o, len - sizeof(position));
}
