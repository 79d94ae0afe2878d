/*
 * What the sender's halves of the two wires share.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SOFTIB_REQUESTER_H
#define SOFTIB_REQUESTER_H

#include "responder.h"
#include <sys/uio.h>

int sq_gather(struct qp *q, struct wqe *w, uint32_t need, struct iovec *iov);
void sq_request(struct qp *q, const struct wqe *w, struct request *r);
enum ibv_wc_status sq_retry(struct qp *q, enum answer a, uint32_t arg, uint64_t now);
void qp_drained(struct qp *q);

/* ud.c */
enum answer ud_execute(struct qp *q, struct wqe *w);
void ud_deliver(struct peer *to, uint32_t qpn, const struct request *r, const struct iovec *iov, int n);
void ud_deliver_group(const uint8_t gid[16], const struct request *r, const struct iovec *iov, int n,
                      uint32_t not_qpn);
void ud_release_held(struct qp *q);

#endif
