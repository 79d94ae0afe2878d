/* migrate.c: automatic path migration. A connected QP may have an alternate path: another port of its
 * adapter, another port of the peer, or other path bits (LMC). When both sides have loaded it (state
 * REARM), the first request between them changes the state of both to ARMED. When the requester's retries
 * are exhausted, it switches to the alternate path, and its peer follows when the first request arrives by
 * that path. The state is in the arena, since in shared memory the sender executes the receiver's part.
 *
 * A bit of each frame states that the sender has loaded an alternate path (the opposite of InfiniBand's
 * MigReq).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/migrate.h"
#include "hca/wire.h"

static bool migrate_change_state(struct sh_qp *s, unsigned from, unsigned to)
{
    return atomic_compare_exchange_strong(&s->mig, &from, to);
}

bool migrate_check_arrival(struct target *t, const struct request *r)
{
    struct sh_qp *s = t->qp;
    if (r->arming) {
        migrate_change_state(s, IBV_MIG_REARM, IBV_MIG_ARMED);
        return true;
    }
    if (atomic_load(&s->mig) != IBV_MIG_ARMED)
        return true;
    uint32_t port = (uint32_t)(r->dlid >> proc.fab.lmc) - 1;
    if (port != atomic_load(&s->alt_port) || r->slid != atomic_load(&s->alt_dlid)) {
        peer_post_event(t->owner, SHEV_QP_PATH, atomic_load(&s->qpn), IBV_EVENT_PATH_MIG_ERR);
        return false;
    }
    if (migrate_change_state(s, IBV_MIG_ARMED, IBV_MIG_MIGRATED)) {
        atomic_store(&s->port, port);
        atomic_store(&s->dlid, r->slid);
        peer_post_event(t->owner, SHEV_QP_PATH, atomic_load(&s->qpn), IBV_EVENT_PATH_MIG);
    }
    return true;
}

void migrate_on_peer_state(struct qp *q, bool arming)
{
    if (arming)
        migrate_change_state(q->sh, IBV_MIG_REARM, IBV_MIG_ARMED);
}

/* Makes the alternate path the primary path. Afterwards the QP has no alternate path. */
static void switch_to_alternate(struct qp *q)
{
    struct ibv_qp_attr *a = &q->attr;
    a->ah_attr = a->alt_ah_attr;
    a->port_num = a->alt_port_num;
    a->timeout = a->alt_timeout;
    a->path_mig_state = IBV_MIG_MIGRATED;
    path_from_attr(&a->ah_attr, ctx_from_ibv(qp_to_ibv(q)->context)->hca, &q->path);
    q->linear =
        fabric_port_index(&proc.fab, proc.fab.node, ctx_from_ibv(qp_to_ibv(q)->context)->hca, a->port_num);
    atomic_store(&q->sh->port, q->linear);
    atomic_store(&q->sh->dlid, q->path.dlid);
    q->alternate = false;
    q->retry_left = a->retry_cnt;
    q->wait_until = 0;
    q->wire->moved(q);
    qp_report(q, IBV_EVENT_PATH_MIG);
}

bool migrate_to_alternate(struct qp *q)
{
    /* The peer may have migrated the shared state already: then only the private state changes. */
    if (!q->alternate || (!migrate_change_state(q->sh, IBV_MIG_ARMED, IBV_MIG_MIGRATED) &&
                          atomic_load(&q->sh->mig) != IBV_MIG_MIGRATED))
        return false;
    switch_to_alternate(q);
    return true;
}

void migrate_handle_event(struct qp *q, enum ibv_event_type what)
{
    sq_lock(q);
    bool works = qp_to_ibv(q)->state != IBV_QPS_RESET && qp_to_ibv(q)->state != IBV_QPS_ERR;
    if (works && what == IBV_EVENT_PATH_MIG_ERR)
        qp_report(q, what);
    else if (works && migrate_to_alternate(q))
        q->wire->progress(q, 0);
    sq_unlock(q);
}

bool migrate_attrs_fit(struct qp *q, const struct ibv_qp_attr *a, int mask)
{
    struct fab_place at, now;
    struct path p;
    sq_lock(q); /* the engine thread may be switching the QP to its alternate path */
    const bool loaded = mask & IBV_QP_ALT_PATH || q->attr.alt_port_num;
    const struct ibv_ah_attr primary = mask & IBV_QP_AV ? a->ah_attr : q->attr.ah_attr;
    sq_unlock(q);
    if (mask & IBV_QP_PATH_MIG_STATE && a->path_mig_state != IBV_MIG_MIGRATED &&
        (a->path_mig_state != IBV_MIG_REARM || !loaded))
        return false;
    if (!(mask & IBV_QP_ALT_PATH))
        return true;
    const uint32_t hca = ctx_from_ibv(qp_to_ibv(q)->context)->hca;
    if (a->alt_port_num < 1 || a->alt_port_num > proc.fab.ports || a->alt_pkey_index || a->alt_timeout > 31 ||
        !path_attr_legal(&primary, hca) || !path_attr_legal(&a->alt_ah_attr, hca))
        return false;
    path_from_attr(&primary, hca, &p);
    bool known = fabric_find_lid(&proc.fab, p.dlid, &now);
    path_from_attr(&a->alt_ah_attr, hca, &p);
    return known && fabric_find_lid(&proc.fab, p.dlid, &at) && at.node == now.node;
}

static void load_alternate(struct qp *q, const struct ibv_qp_attr *a)
{
    struct path p;
    q->attr.alt_ah_attr = a->alt_ah_attr;
    q->attr.alt_port_num = a->alt_port_num;
    q->attr.alt_timeout = a->alt_timeout;
    q->attr.alt_pkey_index = a->alt_pkey_index;
    path_from_attr(&a->alt_ah_attr, ctx_from_ibv(qp_to_ibv(q)->context)->hca, &p);
    atomic_store(&q->sh->alt_port,
                 fabric_port_index(&proc.fab, proc.fab.node, ctx_from_ibv(qp_to_ibv(q)->context)->hca,
                                   a->alt_port_num));
    atomic_store(&q->sh->alt_dlid, p.dlid);
}

void migrate_set_attrs(struct qp *q, const struct ibv_qp_attr *a, int mask)
{
    sq_lock(q);
    if (mask & IBV_QP_ALT_PATH)
        load_alternate(q, a);
    if (mask & IBV_QP_PATH_MIG_STATE && a->path_mig_state == IBV_MIG_REARM) {
        q->alternate = true;
        atomic_store(&q->sh->mig, IBV_MIG_REARM);
    } else if (mask & IBV_QP_PATH_MIG_STATE && q->alternate) { /* the program requests the migration */
        if (migrate_change_state(q->sh, IBV_MIG_REARM, IBV_MIG_MIGRATED))
            q->alternate = false; /* not armed: the path does not change */
        else if (migrate_to_alternate(q))
            q->wire->progress(q, 0);
    }
    sq_unlock(q);
}

void migrate_reset(struct qp *q)
{
    q->alternate = false;
    atomic_store(&q->sh->mig, IBV_MIG_MIGRATED);
}
