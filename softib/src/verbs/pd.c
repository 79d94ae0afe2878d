/* pd.c: protection domains: a number that is equal for a QP and the memory that it accesses. A parent
 * domain has the number of its domain; thread domains have no effect.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include <stdlib.h>

#define COUNT_BITS 22 /* low bits of a number; the high bits are the slot of the process, for imports */

static struct lock lock;
static struct pd *domains; /* domains of this process */

static struct ibv_pd *pd_create(struct ibv_context *c, uint32_t handle, struct pd *parent)
{
    struct pd *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->ibv.context = c;
    p->ibv.handle = handle;
    p->parent = parent;
    if (parent)
        atomic_fetch_add(&parent->refs, 1);
    return &p->ibv;
}

SOFTIB_API struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
    static atomic_uint next;
    if (ctx_from_ibv(c)->wires) { /* a barrier network has no memory and no queue pairs */
        errno = EOPNOTSUPP;
        return NULL;
    }
    const uint32_t count = (atomic_fetch_add(&next, 1) + 1) & ((1u << COUNT_BITS) - 1);
    struct ibv_pd *v = pd_create(c, proc.slot << COUNT_BITS | count, NULL);
    struct pd *p = (struct pd *)v;
    spinlock_acquire(&lock);
    if (p) {
        p->next = domains;
        domains = p;
    }
    spinlock_release(&lock);
    return v;
}

static bool is_handle_allocated(uint32_t handle)
{
    spinlock_acquire(&lock);
    struct pd *p = domains;
    while (p && p->ibv.handle != handle)
        p = p->next;
    spinlock_release(&lock);
    return p != NULL;
}

/* Imports a domain of this process, or of the process whose context was imported: then the program
 * guarantees that it exists. */
SOFTIB_API struct ibv_pd *ibv_import_pd(struct ibv_context *c, uint32_t handle)
{
    const uint32_t slot = handle >> COUNT_BITS;
    if (slot == proc.slot ? !is_handle_allocated(handle) : slot != ctx_from_ibv(c)->exporter) {
        errno = ENOENT;
        return NULL;
    }
    return pd_create(c, handle, NULL);
}

SOFTIB_API void ibv_unimport_pd(struct ibv_pd *pd)
{
    free(pd);
}

struct ibv_pd *pd_parent(struct ibv_context *c, struct ibv_parent_domain_init_attr *a)
{
    if (!a->pd || a->comp_mask & ~(uint32_t)(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                             IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) {
        errno = EINVAL;
        return NULL;
    }
    return pd_create(c, a->pd->handle, (struct pd *)a->pd);
}

SOFTIB_API int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    struct pd *p = (struct pd *)ibv;
    if (atomic_load(&p->refs))
        return EBUSY;
    if (p->parent)
        atomic_fetch_sub(&p->parent->refs, 1);
    spinlock_acquire(&lock);
    for (struct pd **at = &domains; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    spinlock_release(&lock);
    free(p);
    return 0;
}

struct ibv_td *td_alloc(struct ibv_context *c, struct ibv_td_init_attr *a)
{
    if (a->comp_mask) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_td *t = calloc(1, sizeof(*t));
    if (t)
        t->context = c;
    return t;
}

int td_dealloc(struct ibv_td *t)
{
    free(t);
    return 0;
}
