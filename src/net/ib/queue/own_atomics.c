/* own_atomics.c: atomic operations of the adapter on memory of this process, through two queue pairs connected to
 * each other. Words that peers change through this adapter must be changed through the adapter here too: the
 * adapter is atomic towards its own requests, not towards the processor (IBV_ATOMIC_HCA). The caller waits
 * for each request, which takes about a microsecond.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/cpu.h"
#include "net/ib/ib.h"

static COUNTER(own, "ib_own_atomics",
               "Words of its own memory that this process changed by the adapter's atomics.");

struct ib_self {
    struct ibv_cq *cq;
    struct ibv_qp *from, *to;
    struct ibv_mr *mr;
    uint64_t old; /* value of the word before the change, written by the adapter */
};

static struct ibv_qp *self_create_qp(const struct ib *ib, const struct ib_self *o)
{
    const struct ib_device *d = &ib->device;
    struct ibv_qp_init_attr a = {
        .send_cq = o->cq,
        .recv_cq = o->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = d->verbs.create_qp(d->pd, &a);
    if (qp && ib_qp_init(d, qp) != 0) {
        const int why = errno;
        d->verbs.destroy_qp(qp);
        errno = why;
        qp = NULL;
    }
    return qp;
}

static bool self_connect(const struct ib *ib, const struct ib_self *o)
{
    const struct ib_device *d = &ib->device;
    const uint32_t rd_atomic = (uint32_t)MIN(d->attr.max_qp_rd_atom, 16);
    return ib_qp_connect(d, o->from, 0, &d->address, o->to->qp_num, 0, rd_atomic, IB_SERVICE_LEVEL_DEFAULT) ==
               0 &&
           ib_qp_connect(d, o->to, 0, &d->address, o->from->qp_num, 0, rd_atomic, IB_SERVICE_LEVEL_DEFAULT) ==
               0;
}

void ib_self_close(struct ib *ib)
{
    const struct verbs *v = &ib->device.verbs;
    struct ib_self *o = ib->self;
    if (!o)
        return;
    if (o->from)
        v->destroy_qp(o->from);
    if (o->to)
        v->destroy_qp(o->to);
    if (o->mr)
        v->dereg_mr(o->mr);
    if (o->cq)
        v->destroy_cq(o->cq);
    free(o);
    ib->self = NULL;
}

int ib_self_open(struct transport *t)
{
    struct ib *ib = ib_of(t);
    const struct ib_device *d = &ib->device;
    if (ib->self)
        return 0;
    struct ib_self *o = ib->self = calloc(1, sizeof(*o));
    if (!o)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a connection to this process itself");
    o->cq = d->verbs.create_cq(d->context, 2, NULL, NULL, 0);
    o->mr = o->cq ? d->verbs.reg_mr(d->pd, &o->old, sizeof(o->old), IBV_ACCESS_LOCAL_WRITE) : NULL;
    o->from = o->mr ? self_create_qp(ib, o) : NULL;
    o->to = o->from ? self_create_qp(ib, o) : NULL;
    if (o->to && self_connect(ib, o))
        return 0;
    const int rc =
        err_set(MPI_ERR_OTHER, "%s: cannot connect this process to itself: %s", d->name, err_reason(errno));
    ib_self_close(ib);
    return rc;
}

int ib_self_atomic(struct transport *t, const struct net_atomic *change, uint64_t *old, void *word,
                   const struct net_key *key)
{
    const struct ib *ib = ib_of(t);
    struct ib_self *o = ib->self;
    struct ibv_sge piece = {.addr = (uintptr_t)&o->old, .length = sizeof(o->old), .lkey = o->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &piece, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_wc wc;
    ib_lane_fill_atomic(change, (uintptr_t)word, ib_rkey(key, 0), &wr);
    int rc = ibv_post_send(o->from, &wr, &bad), n = 0;
    while (rc == 0 && (n = ibv_poll_cq(o->cq, 1, &wc)) == 0)
        cpu_relax();
    if (rc != 0 || n < 0 || wc.status != IBV_WC_SUCCESS)
        return err_set(MPI_ERR_OTHER, "%s cannot change memory of this process: %s", ib->device.name,
                       rc != 0 ? err_reason(rc)
                       : n < 0 ? "its completion queue cannot be read"
                               : ib->device.verbs.wc_status_str(wc.status));
    *old = o->old;
    counter_add(&own, 1);
    return 0;
}
