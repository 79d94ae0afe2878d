/* migrate.h: alternate paths of connected QPs; see migrate.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_MIGRATE_H
#define SOFTIB_MIGRATE_H

#include "hca/send_queue.h"

/* For ibv_modify_qp: check the attributes, and apply them. Both acquire the locks. */
bool migrate_attrs_fit(struct qp *q, const struct ibv_qp_attr *a, int mask);
void migrate_set_attrs(struct qp *q, const struct ibv_qp_attr *a, int mask);
void migrate_reset(struct qp *q);

/* Called for a request to a QP whose migration state is not MIGRATED. Returns false if the request arrived
 * by neither of the two paths and must be dropped. */
bool migrate_check_arrival(struct target *t, const struct request *r);

/* Called with the peer's state, which its acknowledgements contain. arming: the peer has loaded an
 * alternate path. */
void migrate_on_peer_state(struct qp *q, bool arming);

/* Switches the QP to its alternate path if that is armed. Requires both locks. */
bool migrate_to_alternate(struct qp *q);

/* Reports that the peer has migrated the QP or has failed to. Acquires the locks. */
void migrate_handle_event(struct qp *q, enum ibv_event_type what);

/* True while this end has loaded an alternate path and not migrated; requests inform the peer. */
static inline bool migrate_is_arming(const struct qp *q)
{
    return UNLIKELY(q->alternate) &&
           atomic_load_explicit(&q->sh->mig, memory_order_relaxed) != IBV_MIG_MIGRATED;
}

#endif
