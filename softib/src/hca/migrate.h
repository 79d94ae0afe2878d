/* migrate.h: alternate paths of connected QPs; see migrate.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_MIGRATE_H
#define SOFTIB_MIGRATE_H

#include "hca/send_queue.h"

/* For ibv_modify_qp: check whether these attributes are possible, and apply them. Both take the locks. */
bool migrate_attrs_fit(struct qp *q, const struct ibv_qp_attr *a, int mask);
void migrate_set_attrs(struct qp *q, const struct ibv_qp_attr *a, int mask);
void migrate_reset(struct qp *q);

/* Called for a request to a QP whose state is not MIGRATED. Returns false if it came by neither of the two paths and
 * must be dropped. */
bool migrate_check_arrival(struct target *t, const struct request *r);

/* Called with the peer's state, which its acknowledgements carry. */
void migrate_on_peer_state(struct qp *q, bool arming);

/* Switches the QP to its alternate path if that is armed. Requires both locks. */
bool migrate_to_alternate(struct qp *q);

/* Reports that the peer has migrated the QP, or has failed to. Takes the locks. */
void migrate_handle_event(struct qp *q, enum ibv_event_type what);

/* True while this end arms its alternate path; requests carry this to the peer. */
static inline bool migrate_is_arming(const struct qp *q)
{
    return UNLIKELY(q->alternate) &&
           atomic_load_explicit(&q->sh->mig, memory_order_relaxed) != IBV_MIG_MIGRATED;
}

#endif
