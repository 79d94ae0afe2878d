/* xrc.c: XRC domains, and receive QPs that are opened by their number. Processes of a node that open the
 * same file share a domain: a receive QP of one process delivers to the SRQs of all of them. A receive QP
 * ends with the process that created it; handles that other processes opened do not keep it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include "base/slab.h"
#include "hca/wire.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

/* True if a live process has the domain open: the registry counts the open handles of each process. The
 * registry's lock is held. */
static bool is_domain_open(const struct reg_xrcd *r)
{
    return r->key && atomic_load(&proc.reg->member[r->slot].gen) == r->gen && member_is_alive(r->slot);
}

static bool is_own_domain_row(const struct reg_xrcd *r, uint64_t key)
{
    return r->key == key && r->slot == proc.slot && r->gen == atomic_load(&proc.reg->member[proc.slot].gen);
}

/* Opens a registry row for the domain. Returns 0, or an errno: flags not permitted, no free row. */
static int row_open(uint64_t key, int oflags)
{
    struct reg_xrcd *mine = NULL, *free = NULL;
    bool exists = false;
    for (struct reg_xrcd *r = proc.reg->xrcd; r < proc.reg->xrcd + XRCDS; r++) {
        if (r->key && r->key != key)
            continue;
        if (is_own_domain_row(r, key))
            mine = r;
        bool live = is_domain_open(r);
        exists |= live;
        if (!live && !free)
            free = r;
    }
    if (!exists && !(oflags & O_CREAT))
        return EAGAIN;
    if (exists && oflags & O_EXCL)
        return EINVAL;
    if (mine) {
        mine->opened++;
        return 0;
    }
    for (struct reg_xrcd *r = proc.reg->xrcd; !free && r < proc.reg->xrcd + XRCDS; r++)
        if (!is_domain_open(r)) /* the row of a process that has died */
            free = r;
    if (!free)
        return ENOMEM;
    *free = (struct reg_xrcd){key, proc.slot, atomic_load(&proc.reg->member[proc.slot].gen), 1};
    return 0;
}

static void row_close(uint64_t key)
{
    for (struct reg_xrcd *r = proc.reg->xrcd; r < proc.reg->xrcd + XRCDS; r++)
        if (is_own_domain_row(r, key) && !--r->opened)
            r->key = 0;
}

/* Returns the key of the domain of a file on this adapter, or of an unshared domain (fd -1); 0: invalid
 * fd. */
static uint64_t domain_key(struct ibv_context *c, int fd)
{
    struct stat st;
    if (fd == -1)
        return random_u64() | 1;
    if (fstat(fd, &st))
        return 0;
    uint64_t name[] = {st.st_dev, st.st_ino, proc.fab.node, ctx_from_ibv(c)->hca};
    return hash_bytes(name, sizeof(name), 14695981039346656037ull) | 1;
}

struct ibv_xrcd *xrc_open_domain(struct ibv_context *c, struct ibv_xrcd_init_attr *a)
{
    const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    int err = a->comp_mask & ~both || !ctx_has_feature(ctx_from_ibv(c), FEATURE_XRC) ? EOPNOTSUPP
              : a->comp_mask != both || a->oflags & ~(O_CREAT | O_EXCL)              ? EINVAL
              : (a->fd == -1 && !(a->oflags & O_CREAT)) || ctx_from_ibv(c)->wires    ? EINVAL
                                                                                     : 0;
    uint64_t key = err ? 0 : domain_key(c, a->fd);
    struct xrcd *x = key ? calloc(1, sizeof(*x)) : NULL;
    if (!err && !x)
        err = key ? ENOMEM : EBADF;
    if (!err) {
        shlock_lock(&proc.reg->lock);
        err = row_open(key, a->oflags);
        shlock_unlock(&proc.reg->lock);
    }
    if (err) {
        free(x);
        errno = err;
        return NULL;
    }
    x->ibv.context = c;
    x->key = key;
    return &x->ibv;
}

int xrc_close_domain(struct ibv_xrcd *ibv)
{
    struct xrcd *x = (struct xrcd *)ibv;
    if (atomic_load(&x->refs))
        return EBUSY;
    shlock_lock(&proc.reg->lock);
    row_close(x->key);
    shlock_unlock(&proc.reg->lock);
    free(x);
    return 0;
}

/* --- receive QPs opened by number --- */

/* Finds the QP in its owner's arena, if it is a receive QP of that domain. The caller releases *owner. */
static struct sh_qp *xrc_find_qp(uint32_t qpn, uint64_t key, struct peer **owner)
{
    *owner = peer_get(qpn >> QP_BITS);
    if (!*owner)
        return NULL;
    struct sh_qp *s = &(*owner)->arena->qp[qpn & (QP_MAX - 1)];
    if (atomic_load(&s->state) != QP_NONE && atomic_load(&s->qpn) == qpn &&
        atomic_load(&s->type) == IBV_QPT_XRC_RECV && atomic_load(&s->domain) == key)
        return s;
    peer_release(*owner);
    return NULL;
}

struct ibv_qp *xrc_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *a)
{
    const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    struct peer *owner;
    if ((a->comp_mask & needed) != needed || a->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED ||
        a->qp_type != IBV_QPT_XRC_RECV || !a->xrcd) {
        errno = EINVAL;
        return NULL;
    }
    struct xrcd *x = (struct xrcd *)a->xrcd;
    if (!xrc_find_qp(a->qp_num, x->key, &owner)) {
        errno = EINVAL;
        return NULL;
    }
    peer_release(owner);
    struct qp *q = slab_new(sizeof(*q));
    if (!q) {
        errno = ENOMEM;
        return NULL;
    }
    q->opened = true;
    q->wire = wire_near;
    q->xrcd = x;
    struct ibv_qp *v = qp_to_ibv(q);
    v->context = c;
    v->qp_context = a->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? a->qp_context : NULL;
    v->qp_num = a->qp_num;
    v->qp_type = IBV_QPT_XRC_RECV;
    v->state = IBV_QPS_UNKNOWN; /* requests cannot be posted */
    pthread_mutex_init(&v->mutex, NULL);
    pthread_cond_init(&v->cond, NULL);
    atomic_fetch_add(&x->refs, 1);
    return v;
}

struct qp *xrc_find_local_qp(struct qp *q)
{
    uint32_t qpn = qp_to_ibv(q)->qp_num;
    return qpn >> QP_BITS == proc.slot ? qp_lookup(qpn) : NULL;
}

int xrc_query_remote(struct qp *q, struct ibv_qp_attr *a, struct ibv_qp_init_attr *init)
{
    uint32_t qpn = qp_to_ibv(q)->qp_num;
    struct peer *owner;
    struct sh_qp *s = xrc_find_qp(qpn, q->xrcd->key, &owner);
    if (!s)
        return EINVAL;
    *a = (struct ibv_qp_attr){.dest_qp_num = atomic_load(&s->dest_qpn),
                              .qp_access_flags = atomic_load(&s->access),
                              .path_mtu = (enum ibv_mtu)atomic_load(&s->mtu),
                              .min_rnr_timer = (uint8_t)atomic_load(&s->rnr_timer),
                              .max_dest_rd_atomic = (uint8_t)atomic_load(&s->max_dest_rd),
                              .path_mig_state = (enum ibv_mig_state)atomic_load(&s->mig)};
    a->qp_state = a->cur_qp_state = (enum ibv_qp_state)atomic_load(&s->state);
    *init = (struct ibv_qp_init_attr){.qp_context = qp_to_ibv(q)->qp_context, .qp_type = IBV_QPT_XRC_RECV};
    peer_release(owner);
    return 0;
}

int xrc_release(struct qp *q)
{
    atomic_fetch_sub(&q->xrcd->refs, 1);
    pthread_mutex_destroy(&qp_to_ibv(q)->mutex);
    pthread_cond_destroy(&qp_to_ibv(q)->cond);
    slab_free(q, sizeof(*q));
    return 0;
}
