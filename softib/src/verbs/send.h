/* send.h: builds one send request in place; ibv_post_send and the ibv_wr_* calls share it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SEND_H
#define SOFTIB_SEND_H

#include "hca/hca.h"

void sq_begin_posting(struct qp *q); /* acquires the locks, under which requests are built */
/* Posts the requests that were built, runs the queue, releases the locks. */
void sq_end_posting(struct qp *q);

struct wqe *sq_begin_request(struct qp *q, int *err); /* NULL with *err: queue full, or wrong state */
void sq_set_path(struct wqe *w, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
int sq_set_sge_list(struct qp *q, struct wqe *w, const struct ibv_sge *sge, size_t n);
int sq_set_inline(struct qp *q, struct wqe *w, const struct ibv_data_buf *buf, size_t n);
/* Describes the bind of a memory window. Returns EINVAL if window and QP have different protection
 * domains. */
int sq_set_bind(struct qp *q, struct wqe *w, struct ibv_mw *mw, uint32_t rkey,
                const struct ibv_mw_bind_info *i);
int sq_commit_request(struct qp *q, struct wqe *w);

#endif
