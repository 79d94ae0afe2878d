/* pd.c: protection domains: a number that a QP and the memory it accesses must have in common. A parent
 * domain has the number of the domain it was made from; thread domains have no effect.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include <stdlib.h>

static struct ibv_pd *make(struct ibv_context *c, uint32_t handle, struct pd *parent)
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
    if (ctx_of(c)->wires) { /* nor any memory or queue pair then */
        errno = EOPNOTSUPP;
        return NULL;
    }
    return make(c, atomic_fetch_add(&next, 1) + 1, NULL);
}

struct ibv_pd *pd_parent(struct ibv_context *c, struct ibv_parent_domain_init_attr *a)
{
    if (!a->pd || a->comp_mask & ~(uint32_t)(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                             IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) {
        errno = EINVAL;
        return NULL;
    }
    return make(c, a->pd->handle, (struct pd *)a->pd);
}

SOFTIB_API int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    struct pd *p = (struct pd *)ibv;
    if (atomic_load(&p->refs))
        return EBUSY;
    if (p->parent)
        atomic_fetch_sub(&p->parent->refs, 1);
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
