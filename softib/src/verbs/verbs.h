/* verbs.h: functions that the files of verbs/ call in each other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_VERBS_H
#define SOFTIB_VERBS_H

#include "hca/hca.h"

/* machine.c: starts the wires and the engine when the process joins. */
extern const struct machine machine;

/* defined in cq.c, cq_ex.c */
void cq_purge(struct cq *cq, uint32_t qpn);
int cq_poll(struct ibv_cq *ibv, int n, struct ibv_wc *wc);
int cq_arm(struct ibv_cq *ibv, int solicited_only);
struct cq *cq_make(struct ibv_context *c, uint32_t cqe, void *user, struct ibv_comp_channel *ch);
struct ibv_cq_ex *cq_create_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *a);
void cq_free_send_slots(const struct sh_cqe *e); /* called when a send's completion was polled */
void cq_report_overrun(uint32_t idx);

/* defined in srq.c */
int srq_post(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void srq_limit_event(uint32_t idx);
struct ibv_srq *srq_create_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *a);
int srq_number(struct ibv_srq *ibv, uint32_t *number);
void mr_advise_huge_pages(uint32_t idx, uint32_t key);

/* defined in qp.c, qp_state.c, send.c, wr_ex.c, mcast.c */
int qp_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int qp_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
struct ibv_qp *qp_create_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *a);
void qp_bind_wr_ops(struct qp *q);
bool qp_transition_legal(enum ibv_qp_type t, enum ibv_qp_state from, enum ibv_qp_state to, int mask);
bool is_mcast_member(uint32_t qpn);

/* defined in mw.c */
struct ibv_mw *mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int mw_dealloc(struct ibv_mw *ibv);
int mw_bind(struct ibv_qp *v, struct ibv_mw *mw, struct ibv_mw_bind *b); /* of a window of type 1 */

/* defined in dm.c */
struct ibv_dm *dm_alloc(struct ibv_context *c, struct ibv_alloc_dm_attr *a);
int dm_free(struct ibv_dm *ibv);
struct ibv_mr *dm_register(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length,
                           unsigned access);

/* defined in odp.c */
void odp_fill_caps(struct ibv_device_attr_ex *a);
int odp_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *s,
               uint32_t n);

/* defined in xrc.c */
struct ibv_xrcd *xrc_open_domain(struct ibv_context *c, struct ibv_xrcd_init_attr *a);
int xrc_close_domain(struct ibv_xrcd *x);
struct ibv_qp *xrc_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *a);
/* Returns the queue pair of the opened handle q, with a reference (qp_release), if this process created it;
 * else NULL. */
struct qp *xrc_find_local_qp(struct qp *q);
int xrc_query_remote(struct qp *q, struct ibv_qp_attr *a, struct ibv_qp_init_attr *init);
int xrc_release(struct qp *q);

/* defined in event.c */
extern struct ctx *contexts; /* open devices */
extern struct lock contexts_lock;
void event_report_port_change(uint32_t linear, bool up);
void event_report_hca_removal(uint32_t hca);

/* defined in device.c, export.c */
bool ctx_has_port(struct ibv_context *ctx, uint32_t port);
struct ctx *ctx_open(struct device *d, int cmd_fd); /* owns the descriptor unless it fails */
int export_device(uint32_t hca);                    /* creates a descriptor for ibv_import_device */
/* Reads a descriptor made by export_device. False: it belongs to no device of a live process of this node. */
bool export_read(int fd, uint32_t *slot, uint32_t *hca);

/* defined in pd.c */
struct ibv_pd *pd_parent(struct ibv_context *c, struct ibv_parent_domain_init_attr *a);
struct ibv_td *td_alloc(struct ibv_context *c, struct ibv_td_init_attr *a);
int td_dealloc(struct ibv_td *td);

#endif
