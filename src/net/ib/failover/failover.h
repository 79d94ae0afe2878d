/* failover.h: a connection whose queue pairs fail is reopened, over another rail or the same one, without
 * loss, duplicates or reordering; docs/failover.md states the guarantees, states and messages. reopen.c
 * decides when to reopen, resend.c repeats undelivered messages, death.c ends connections to processes that
 * died.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_FAILOVER_H
#define FP_NET_IB_FAILOVER_H

#include "net/ib/ib.h"

/* reopen.c */
bool ib_failover_start(struct ib_endpoint *ep,
                       const char *why);         /* false: the connection cannot be reopened */
void ib_failover_reopen_all(struct ib *ib);      /* reopens all failed connections */
void ib_failover_finish(struct ib_endpoint *ep); /* called when the connection is open again */
void ib_failover_check_ports(struct ib *ib, bool rested);
void ib_failover_check_patience(struct ib *ib);
void ib_failover_send_failed(struct ib_lane *lane, const struct ibv_wc *wc);

/* resend.c */
void ib_resend_collect(struct ib_endpoint *ep); /* called before the queue pairs are destroyed */
void ib_resend_collect_lane(struct ib_lane *lane);
void ib_resend_acknowledge(struct ib_endpoint *ep,
                           uint16_t expected); /* all messages before `expected` have arrived */
void ib_resend_continue(
    struct ib_endpoint *ep); /* sends recorded transfers and messages, then pending control messages */
void ib_resend_free(struct ib_endpoint *ep,
                    int status); /* ends recorded transfers with `status`; 0: silently */
size_t ib_resend_fill_write(struct ib_endpoint *ep, void *body);
size_t ib_resend_fill_query(struct ib_endpoint *ep, void *body);
size_t ib_resend_fill_answer(struct ib_endpoint *ep, void *body);
/* Handlers of IB_QUERY and IB_ANSWER, of IB_WRITE and IB_WRITTEN. */
void ib_resend_take_status(struct ib_endpoint *ep, const struct ib_head *h, size_t len);
void ib_resend_take_write(struct ib_endpoint *ep, const struct ib_head *h, size_t len);

/* death.c */
void ib_peer_lost(struct transport *t, struct peer *peer); /* the launcher reports that the peer has died */
bool ib_peer_report_suspect(
    struct ib_endpoint *ep); /* notifies the launcher; false: the job ends with the peer */

#endif
