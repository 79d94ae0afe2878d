/* direct_transfer.c: put and get of one block by the transport itself: cross-memory attach on a node, RDMA
 * write and read between nodes. The target's processor takes no part. The operation is complete at the target
 * when the transport reports it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/counter.h"
#include "dt/device_pack.h"
#include "rma/rma.h"

static COUNTER(transfers, "rma_transfers", "Puts and gets done by RDMA, without the target's processor.");

bool transfer_is_possible(const struct rma_call *c, const struct win_peer *to)
{
    const struct transport_caps *caps = &to->peer->caps;
    const struct win *w = c->win;
    MPI_Aint gap;
    /* The program's memory may be read-only while stores are watched: only its owner can write there. */
    if (w->flavor == MPI_WIN_FLAVOR_CREATE && unlikely(w->proc->rma->debug))
        return false;
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC || !(c->kind == RMA_IS_PUT ? caps->put : caps->get))
        return false;
    if (!caps->cpu_moves && !to->at.registered)
        return false;
    if (to->at.on_device || dt_is_device(c->origin.buf, c->origin.count, c->origin.type))
        return false;
    return dt_is_contiguous_block(c->type, c->count, &gap) &&
           dt_is_contiguous_block(c->origin.type, c->origin.count, &gap);
}

static void transfer_op_done(struct net_op *op, int status)
{
    struct rma_op *o = container_of(op, struct rma_op, transfer);
    if (unlikely(status))
        op_record_fault(o, status);
    op_record_progress(o, o->left);
}

int transfer_start(const struct rma_call *c, struct win_peer *to)
{
    const struct win_target *t = &to->at;
    struct transport *transport = to->peer->transport;
    const size_t len = (size_t)(c->count * c->type->size);
    MPI_Aint gap;
    struct net_key unused;
    struct rma_op *o;
    dt_is_contiguous_block(c->origin.type, c->origin.count, &gap);
    char *local = ptr_add(c->origin.buf, gap);
    struct net_mem mem;
    if (to->peer->ops->move && !c->request) {
        counter_add(&transfers, 1);
        dt_is_contiguous_block(c->type, c->count, &gap);
        return batch_move(c, to, local, t->base + (uint64_t)(c->disp * t->unit + gap), len);
    }
    if (transport->ops->mem_register(transport, local, len, &mem, &unused) != 0)
        return frame_move_start(
            c, to); /* memory that cannot be registered is sent in frames, which hold copies */
    int rc = operation_create(c, &c->origin, to, &o);
    if (rc) {
        transport->ops->mem_release(transport, &mem);
        return rc;
    }
    o->mem = mem;
    o->registered = true;
    o->transfer = (struct net_op){.done = transfer_op_done};
    op_add_piece(o);
    counter_add(&transfers, 1);
    dt_is_contiguous_block(c->type, c->count, &gap);
    rc = adapter_post(to, &(struct adapter_request){.kind = c->kind == RMA_IS_PUT ? ADAPTER_PUT : ADAPTER_GET,
                                                    .local = local,
                                                    .mem = &o->mem,
                                                    .remote = t->base + (uint64_t)(c->disp * t->unit + gap),
                                                    .key = &t->key,
                                                    .len = len,
                                                    .op = &o->transfer});
    if (rc) {
        op_record_fault(o, rc);
        op_record_progress(o, o->left);
    }
    op_end_sending(o);
    return MPI_SUCCESS;
}
