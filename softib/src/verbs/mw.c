/* mw.c: memory windows: allocation, deallocation, and the verb that binds a window of type 1. See
 * hca/window.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/window.h"
#include "base/slab.h"
#include "verbs/mr.h"
#include "verbs/send.h"

static void mw_publish(struct sh_mr *s, uint32_t pd, enum ibv_mw_type type)
{
    s->pd = pd;
    s->access = (uint32_t)type << WINDOW_SHIFT;
    s->qpn = 0;
    s->fd = -1;
}

struct ibv_mw *mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type)
{
    const bool known = type == IBV_MW_TYPE_1 || type == IBV_MW_TYPE_2,
               offered = ctx_has_feature(ctx_from_ibv(pd->context), FEATURE_MW);
    struct mw *mw = known && offered ? slab_new(sizeof(*mw)) : NULL;
    uint32_t idx = mw ? mr_number_allocate() : 0;
    if (!idx) {
        slab_free(mw, sizeof(*mw));
        errno = !offered ? EOPNOTSUPP : known ? ENOMEM : EINVAL;
        return NULL;
    }
    mw->sh = &proc.arena->mr[idx];
    mw->ibv = (struct ibv_mw){
        .context = pd->context, .pd = pd, .rkey = mr_key_make(idx), .handle = idx, .type = type};
    mw_publish(mw->sh, pd_key(pd), type);
    window_list_add(mw);
    atomic_fetch_add(&((struct pd *)pd)->refs, 1);
    return &mw->ibv;
}

int mw_dealloc(struct ibv_mw *ibv)
{
    struct mw *mw = CONTAINER_OF(ibv, struct mw, ibv);
    struct sh_mr *s = mw->sh;
    window_list_remove(mw);
    window_unbind(s, NULL);
    s->fd = -1; /* the descriptor belongs to the region */
    mr_end_access(s);
    s->access = s->qpn = 0;
    mr_table_release(ibv->handle);
    atomic_fetch_sub(&((struct pd *)ibv->pd)->refs, 1);
    slab_free(mw, sizeof(*mw));
    return 0;
}

int mw_bind(struct ibv_qp *v, struct ibv_mw *mw, struct ibv_mw_bind *b)
{
    struct qp *q = qp_from_ibv(v);
    const uint32_t rkey = ibv_inc_rkey(mw->rkey);
    int err = b->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED ? EINVAL : 0;
    if (err)
        return err;
    sq_begin_posting(q);
    struct wqe *w = sq_begin_request(q, &err);
    if (w) {
        w->wr_id = b->wr_id;
        w->opcode = IBV_WR_BIND_MW;
        w->flags = (uint8_t)b->send_flags;
        err = sq_set_bind(q, w, mw, rkey, &b->bind_info);
        err = err ? err : sq_commit_request(q, w);
    }
    if (!err)
        mw->rkey = rkey;
    sq_end_posting(q);
    return err;
}
