/* failover.h: a connection whose queue pairs fail is opened again, over another rail or the same one, and nothing is lost, doubled
 * or out of order; docs/failover.md states the guarantees, states and messages. reopen.c decides when, resend.c repeats what did
 * not arrive, migrate.c lets the adapter change the path, death.c ends connections to processes that died.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_FAILOVER_H
#define FP_NET_IB_FAILOVER_H

#include "net/ib/ib.h"

/* reopen.c */
bool ib_failover_start(struct ib_endpoint *ep, const char *why); /* false: it cannot be opened again */
void ib_failover_reopen_all(struct ib *ib);                      /* those that failed */
void ib_failover_finish(struct ib_endpoint *ep);                 /* it is open */
void ib_failover_check_ports(struct ib *ib, bool rested);
void ib_failover_check_patience(struct ib *ib);
void ib_failover_send_failed(struct ib_lane *lane, const struct ibv_wc *wc);

/* resend.c */
void ib_resend_collect(struct ib_endpoint *ep); /* before the queue pairs are destroyed */
void ib_resend_collect_lane(struct ib_lane *lane);
void ib_resend_acknowledge(struct ib_endpoint *ep, uint16_t expected); /* all before `expected` has arrived */
void ib_resend_continue(
    struct ib_endpoint *ep); /* sends what was collected, then control messages that wait */
void ib_resend_free(struct ib_endpoint *ep, int status); /* the peer is gone */
size_t ib_resend_fill_write(struct ib_endpoint *ep, void *body);
size_t ib_resend_fill_query(struct ib_endpoint *ep, void *body);
size_t ib_resend_fill_answer(struct ib_endpoint *ep, void *body);
void ib_resend_take_status(struct ib_endpoint *ep, const struct ib_head *h,
                           size_t len); /* IB_QUERY, IB_ANSWER */
void ib_resend_take_write(struct ib_endpoint *ep, const struct ib_head *h,
                          size_t len); /* IB_WRITE, IB_WRITTEN */

/* migrate.c */
void ib_migration_find_alternate(struct ib *ib);
void ib_migration_arm(struct ib_lane *lane);
void ib_migration_count_event(struct ib *ib, struct ib_lane *lane); /* in the event thread */
void ib_migration_check(struct ib *ib, bool rested); /* after events of ports; rested: time to move back */

/* death.c */
void ib_peer_lost(struct transport *t, struct peer *peer); /* the launcher reports that the peer has died */
bool ib_peer_suspect(
    struct ib_endpoint *ep); /* false: the job cannot go on without it. true: the launcher was notified */

#endif
