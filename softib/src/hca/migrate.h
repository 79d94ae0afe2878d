/* migrate.h: alternate paths of connected QPs; see migrate.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_MIGRATE_H
#define SOFTIB_MIGRATE_H

#include "hca/send_queue.h"

/* ibv_modify_qp: whether these attributes are possible, and taking them. Takes the locks. */
bool migrate_attrs_fit(struct qp *q, const struct ibv_qp_attr *a, int mask);
void migrate_set_attrs(struct qp *q, const struct ibv_qp_attr *a, int mask);
void migrate_reset(struct qp *q);

/* A request arrived at a QP whose state is not MIGRATED. False: it came by a path that is neither, drop it. */
bool migrate_arrival(struct target *t, const struct request *r);

/* The acknowledgement also carried whether the peer has an alternate path. */
void migrate_on_peer_state(struct qp *q, bool arming);

/* The QP takes its alternate path, if it is armed. Both locks are held. */
bool migrate_to_alternate(struct qp *q);

/* The peer has migrated it, or tried. Takes the locks. */
void migrate_event(struct qp *q, enum ibv_event_type what);

/* State of the peer, carried by its requests. */
static inline bool migrate_arming(const struct qp *q)
{
    return UNLIKELY(q->alternate) &&
           atomic_load_explicit(&q->sh->mig, memory_order_relaxed) != IBV_MIG_MIGRATED;
}

#endif
