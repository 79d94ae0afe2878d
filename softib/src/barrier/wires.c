/* wires.c: the hosts' ends of the barrier network: the calls softib_wires_* of softib/barrier.h. The hub
 * is in the registry; a process that changes the level of its wire executes the hub's logic under its
 * lock, and other processes poll one word.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/hca.h"
#include <stdlib.h>

struct softib_wires {
    uint32_t level; /* level of this process's `arrive` wire */
    bool entered;
};

static bool has_wires(struct ibv_context *device)
{
    if (ctx_from_ibv(device)->wires)
        return true;
    errno = EOPNOTSUPP;
    return false;
}

SOFTIB_API int softib_wires_hosts(struct ibv_context *device)
{
    return has_wires(device) ? MEMBERS - 1 : -1;
}

/* True if all processes that use the hub have died without leaving it. Another process may have the slot of
 * a dead one. */
static bool is_hub_abandoned(const struct registry *r)
{
    if (r->hub_owner && shlock_owner_alive(r->hub_owner))
        return false;
    for (uint32_t slot = 1; slot < MEMBERS; slot++)
        if ((r->hub.plugged[slot / 64] >> (slot % 64) & 1) && shlock_owner_alive(r->hub_user[slot]))
            return false;
    return true;
}

SOFTIB_API int softib_wires_take(struct ibv_context *device, uint32_t *job)
{
    static atomic_uint count;
    struct registry *r = proc.reg;
    if (!has_wires(device))
        return -1;
    shlock_lock(&r->hub_lock);
    const bool mine = !r->hub.job || is_hub_abandoned(r);
    if (mine) {
        r->hub = (struct softib_hub){.job = ((uint32_t)now_ns() ^ atomic_fetch_add(&count, 1) << 24) | 1};
        r->hub_owner = shlock_self;
        *job = r->hub.job;
    }
    shlock_unlock(&r->hub_lock);
    if (!mine)
        errno = EBUSY;
    return mine ? 0 : -1;
}

SOFTIB_API int softib_wires_give_back(struct ibv_context *device, uint32_t job)
{
    struct registry *r = proc.reg;
    if (!has_wires(device))
        return -1;
    shlock_lock(&r->hub_lock);
    if (r->hub.job == job)
        r->hub.job = r->hub_owner = 0;
    shlock_unlock(&r->hub_lock);
    return 0;
}

SOFTIB_API struct softib_wires *softib_wires_plug(struct ibv_context *device, uint32_t job)
{
    struct registry *r = proc.reg;
    struct softib_wires *w = has_wires(device) ? calloc(1, sizeof(*w)) : NULL;
    if (!w)
        return NULL;
    shlock_lock(&r->hub_lock);
    const bool good = r->hub.job == job;
    if (good) {
        softib_hub_wire(&r->hub, proc.slot, true);
        r->hub_user[proc.slot] = shlock_self;
        r->hub_owner = 0;
    }
    shlock_unlock(&r->hub_lock);
    if (good)
        return w;
    free(w);
    errno = EINVAL;
    return NULL;
}

SOFTIB_API int softib_wires_enter(struct softib_wires *w)
{
    struct registry *r = proc.reg;
    if (w->entered)
        return EBUSY;
    w->entered = true;
    w->level = !w->level;
    shlock_lock(&r->hub_lock);
    softib_hub_level(&r->hub, proc.slot, w->level);
    shlock_unlock(&r->hub_lock);
    return 0;
}

SOFTIB_API int softib_wires_test(struct softib_wires *w)
{
    if (!w->entered || __atomic_load_n(&proc.reg->hub.released, __ATOMIC_ACQUIRE) != w->level)
        return 0;
    w->entered = false;
    return 1;
}

SOFTIB_API void softib_wires_unplug(struct softib_wires *w)
{
    struct registry *r = proc.reg;
    shlock_lock(&r->hub_lock);
    softib_hub_wire(&r->hub, proc.slot, false);
    shlock_unlock(&r->hub_lock);
    free(w);
}
