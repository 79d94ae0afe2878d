/* window.h: memory windows. A window has an entry in the table of regions, with a key of its own; the
 * entry of a bound window describes a part of a region. The requester executes the send requests that bind
 * and invalidate a window. SEND_WITH_INV of a peer invalidates a window of type 2: the
 * peer's process clears the key, nothing else. A window is bound if its key is not 0.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_WINDOW_H
#define SOFTIB_WINDOW_H

#include "hca/responder.h"

struct mw {
    struct ibv_mw ibv;
    struct sh_mr *sh;
    struct mw *next; /* in the list of the windows of this process */
};

void window_list_add(struct mw *mw);
void window_list_remove(struct mw *mw);
void window_list_reset_after_fork(void);
/* True if a window is bound to the region with this index. */
bool window_is_bound_to(uint32_t region);

static inline bool is_window_request(uint8_t opcode)
{
    return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
}

/* Executes the bind or invalidation unless an earlier call has done so. The locks of the QP and of its wire
 * are held. Returns ANS_OK or ANS_WINDOW. */
enum answer window_execute(struct qp *q, struct wqe *w);

/* Unbinds the window. wire: the wire whose lock is held, or NULL. */
void window_unbind(struct sh_mr *window, const struct wire *wire);

/* True if the target's QP may access memory by this key: a window of type 2 belongs to the QP that bound
 * it. */
static inline bool window_permits_qp(const struct sh_mr *s, const struct target *t)
{
    return mr_window_type(s) != IBV_MW_TYPE_2 ||
           s->qpn == atomic_load_explicit(&t->qp->qpn, memory_order_relaxed);
}

/* The window of type 2 with the key of a peer's SEND_WITH_INV, if it is bound to this QP; else NULL. */
struct sh_mr *window_find_by_key(const struct target *t, uint32_t key);

#endif
