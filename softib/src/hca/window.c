/* window.c: allocates, binds and invalidates memory windows. The entry of a window has a protection domain
 * from allocation to deallocation. Like that of a region, its key is written last when the window is bound
 * and first when it is unbound.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/window.h"
#include "fabric/hold.h"
#include "hca/wire.h"

/* Access flags of a bind. IBV_ACCESS_LOCAL_WRITE is accepted and has no effect. */
#define WINDOW_ACCESS                                                                                       \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
     IBV_ACCESS_ZERO_BASED)
#define WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static struct lock list_lock;
static struct mw *list;

void window_list_add(struct mw *mw)
{
    spinlock_acquire(&list_lock);
    mw->next = list;
    list = mw;
    spinlock_release(&list_lock);
}

void window_list_remove(struct mw *mw)
{
    spinlock_acquire(&list_lock);
    struct mw **at = &list;
    while (*at != mw)
        at = &(*at)->next;
    *at = mw->next;
    spinlock_release(&list_lock);
}

void window_list_reset_after_fork(void)
{
    list = NULL;
    memset(&list_lock, 0, sizeof(list_lock));
}

bool window_is_bound_to(uint32_t region)
{
    bool bound = false;
    spinlock_acquire(&list_lock);
    for (const struct mw *mw = list; mw && !bound; mw = mw->next)
        bound = mw->sh->within == region && atomic_load(&mw->sh->rkey);
    spinlock_release(&list_lock);
    return bound;
}

static struct sh_mr *window_entry(struct peer *owner, uint32_t key)
{
    uint32_t idx = key >> MR_SHIFT;
    struct sh_mr *s = idx && idx < MR_MAX ? &owner->arena->mr[idx] : NULL;
    return s && atomic_load(&s->rkey) == key ? s : NULL;
}

struct sh_mr *window_find_by_key(const struct target *t, uint32_t key)
{
    struct sh_mr *s = window_entry(t->memory, key);
    return s && mr_window_type(s) == IBV_MW_TYPE_2 && window_permits_qp(s, t) ? s : NULL;
}

static void stop_remote_transfers(struct sh_mr *s, const struct wire *held)
{
    if (!wire_far)
        return;
    if (held != wire_far)
        wire_far->lock();
    wire_far->retract(s);
    if (held != wire_far)
        wire_far->unlock();
}

void window_unbind(struct sh_mr *s, const struct wire *held)
{
    atomic_store(&s->rkey, 0);
    stop_remote_transfers(s, held);
    hold_wait((uint32_t)(s - proc.arena->mr));
}

/* True if the window lies in the region, and the region permits windows with the requested access. */
static bool region_permits_window(const struct sh_mr *s, const struct sh_mr *region, const struct wqe *w)
{
    const uint64_t length = w->swap;
    const uint32_t access = w->imm;
    return region && !mr_window_type(region) && region->pd == s->pd && region->access & IBV_ACCESS_MW_BIND &&
           (!(access & WRITES) || region->access & IBV_ACCESS_LOCAL_WRITE) && w->raddr >= region->iova &&
           length <= region->length && w->raddr - region->iova <= region->length - length;
}

static enum answer bind_window(struct qp *q, struct wqe *w)
{
    struct mw *mw = (struct mw *)(uintptr_t)w->compare;
    struct sh_mr *s = mw->sh, *region = window_entry(proc.self, w->remote_qkey);
    const bool second = mr_window_type(s) == IBV_MW_TYPE_2, empty = !w->swap;
    if (w->imm & ~(uint32_t)WINDOW_ACCESS || (!empty && !region_permits_window(s, region, w)) ||
        (second && (empty || atomic_load(&s->rkey) || (w->rkey ^ mw->ibv.rkey) & ~0xffu)))
        return ANS_WINDOW;
    window_unbind(s, q->wire); /* also after an invalidation by the peer, whose process only clears the key */
    if (second)
        mw->ibv.rkey = w->rkey;
    if (empty)
        return ANS_OK;
    const uint64_t offset = w->raddr - region->iova;
    s->within = (uint32_t)(region - proc.arena->mr);
    s->access = (w->imm & ~(uint32_t)IBV_ACCESS_LOCAL_WRITE) | (region->access & MR_ON_DEMAND) |
                mr_window_type(s) << WINDOW_SHIFT;
    s->iova = w->imm & IBV_ACCESS_ZERO_BASED ? 0 : w->raddr;
    s->length = w->swap;
    s->addr = region->addr + offset;
    s->file_off = region->file_off + offset;
    s->fd = region->fd;
    s->qpn = qp_to_ibv(q)->qp_num;
    s->serial = mr_next_serial();
    atomic_store_explicit(&s->rkey, w->rkey, memory_order_release);
    return ANS_OK;
}

static enum answer window_invalidate(struct qp *q, const struct wqe *w)
{
    struct sh_mr *s = window_entry(proc.self, w->imm);
    if (!s || mr_window_type(s) != IBV_MW_TYPE_2 || s->pd != pd_key(qp_to_ibv(q)->pd) ||
        s->qpn != qp_to_ibv(q)->qp_num)
        return ANS_WINDOW;
    window_unbind(s, q->wire);
    return ANS_OK;
}

enum answer window_execute(struct qp *q, struct wqe *w)
{
    if (w->settled) /* executed before: the request is sent again, because the peer has not counted it */
        return ANS_OK;
    enum answer a = w->opcode == IBV_WR_BIND_MW ? bind_window(q, w) : window_invalidate(q, w);
    w->settled = a == ANS_OK;
    return a;
}
