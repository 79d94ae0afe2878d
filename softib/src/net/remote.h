/* remote.h: connected QPs between machines: requester and responder. TCP preserves the order, so that
 * sequence numbers are needed in two cases only: a request that is rejected because no receive is posted
 * is sent again with all requests after it (go back N), and after a broken connection the responder
 * detects requests that it has executed before.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_REMOTE_H
#define SOFTIB_REMOTE_H

#include "memory/copy.h"
#include "net/conn.h"

#define SEQ_MASK 0xffffffu

/* Returns a - b in modular sequence numbers. */
static inline uint32_t seq_diff(uint32_t a, uint32_t b)
{
    return (a - b) & SEQ_MASK;
}

static inline bool is_reliable(struct qp *q)
{
    return qp_is_reliable(q);
}

/* remote.c: called by connections and through struct wire */
void remote_handle_frame(struct conn *c);
void remote_handle_payload(struct conn *c);
void remote_connection_lost(struct conn *c);
bool remote_attach(struct qp *q, uint32_t node); /* remote_attach and remote_detach acquire the lock */
void remote_detach(struct qp *q);
void remote_end_region_transfers(struct sh_mr *s);
void remote_stop_transfers(struct qp *q); /* the caller holds this wire's lock */
void remote_path_changed(struct qp *q);   /* the caller holds this wire's lock */

/* remote_send.c: the requester */
void remote_progress(struct qp *q, uint64_t unused);
void remote_reserve(struct qp *q, struct wqe *w);
void remote_go_back(struct remote *r);
bool remote_build_next_segment(struct remote *r, struct conn *c);
void remote_arm_ack_timer(struct remote *r, uint64_t now);
/* The connection of a UC QP was lost. unreachable: there is none, and the peer cannot be reached. */
void remote_unreliable_lost(struct remote *r, bool unreachable);
void remote_on_ack(struct remote *r, const struct frame *f);
void remote_on_nak(struct remote *r, const struct frame *f);
void remote_answer_frame(struct conn *c, struct remote *r, const struct frame *f);
void remote_answer_done(struct conn *c, struct remote *r);
/* Drops an arriving READ answer if its buffer is deregistered. */
void remote_drop_answer_to_region(struct conn *c, struct remote *r);

/* remote_receive.c: the responder */
void remote_request_frame(struct conn *c, struct remote *r, const struct frame *f);
void remote_data_done(struct conn *c, struct remote *r);
void remote_atomic_done(struct conn *c, struct remote *r);
void remote_drop_message_to_region(struct remote *r, const struct sh_mr *s);
void read_job_free(struct read_job *j);
void remote_abandon(struct remote *r, bool flush); /* drops the arriving message */

#endif
