/* plan.c: encodes a plan as bytes and decodes it. Bytes that are not a valid plan are refused, never run.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "plan/plan.h"

#include <stdlib.h>

#include "options/options.h"
#include "plan/pack.h"

void plan_encode(const struct plan *p, struct buf *out)
{
    pack_str(out, p->job);
    pack_str(out, p->host);
    pack_str(out, p->node_map);
    pack_u32(out, p->size);
    pack_u32(out, p->universe);
    pack_u32(out, p->nnodes);
    pack_u32(out, p->bind);
    pack_u32(out, p->scatter_sockets);
    pack_u32(out, p->verbose);
    pack_u32(out, p->recovery);
    pack_u32(out, p->cpus_per_rank);
    pack_u32(out, p->ppr);
    pack_u32(out, p->ppr_unit);
    pack_u32(out, p->oversubscribe);
    pack_u32(out, p->napps);
    for (uint32_t i = 0; i < p->napps; i++) {
        pack_list(out, p->apps[i].argv);
        pack_list(out, p->apps[i].env);
        pack_str(out, p->apps[i].wdir);
        pack_u32(out, p->apps[i].number);
    }
    pack_u32(out, p->nranks);
    for (uint32_t i = 0; i < p->nranks; i++) {
        const struct place *r = &p->ranks[i];
        uint32_t v[] = {r->rank,      r->app, r->node, r->local_rank, r->local_size, (uint32_t)r->vnode,
                        r->stdin_from};
        for (size_t k = 0; k < COUNT_OF(v); k++)
            pack_u32(out, v[k]);
        pack_str(out, r->slots ? r->slots : "");
    }
}

static struct place get_place(struct unpack *r, const struct plan *p)
{
    struct place at;
    at.rank = unpack_u32(r);
    at.app = unpack_u32(r);
    at.node = unpack_u32(r);
    at.local_rank = unpack_u32(r);
    at.local_size = unpack_u32(r);
    at.vnode = (int32_t)unpack_u32(r);
    at.stdin_from = unpack_u32(r);
    at.slots = unpack_str(r);
    if (at.rank >= p->size || at.app >= p->napps || at.local_rank >= at.local_size ||
        at.stdin_from > STDIN_PIPE)
        r->bad = true;
    return at;
}

struct plan *plan_decode(const char *data, size_t len)
{
    struct unpack r = {.at = data, .left = len};
    struct plan *p = xcalloc(1, sizeof(*p));
    p->job = unpack_str(&r);
    p->host = unpack_str(&r);
    p->node_map = unpack_str(&r);
    p->size = unpack_u32(&r);
    p->universe = unpack_u32(&r);
    p->nnodes = unpack_u32(&r);
    p->bind = unpack_u32(&r);
    p->scatter_sockets = unpack_u32(&r);
    p->verbose = unpack_u32(&r);
    p->recovery = unpack_u32(&r);
    p->cpus_per_rank = unpack_u32(&r);
    p->ppr = unpack_u32(&r);
    p->ppr_unit = unpack_u32(&r);
    p->oversubscribe = unpack_u32(&r);
    p->napps = unpack_count(&r, 16);
    p->apps = xcalloc(p->napps, sizeof(*p->apps));
    for (uint32_t i = 0; i < p->napps; i++) {
        p->apps[i].argv = unpack_list(&r);
        p->apps[i].env = unpack_list(&r);
        p->apps[i].wdir = unpack_str(&r);
        p->apps[i].number = unpack_u32(&r);
        r.bad = r.bad || !p->apps[i].argv[0];
    }
    p->nranks = unpack_count(&r, 32);
    p->ranks = xcalloc(p->nranks, sizeof(*p->ranks));
    for (uint32_t i = 0; i < p->nranks && !r.bad; i++)
        p->ranks[i] = get_place(&r, p);
    if (r.bad || r.left || p->bind > BIND_SOCKET || p->ppr_unit > BIND_SOCKET || p->ppr > 1 << 12 ||
        p->cpus_per_rank > 1 << 16) {
        plan_free(p);
        return NULL;
    }
    return p;
}

static void free_list(char **list)
{
    for (char **s = list; s && *s; s++)
        free(*s);
    free(list);
}

void plan_free(struct plan *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->napps; i++) {
        free_list(p->apps[i].argv);
        free_list(p->apps[i].env);
        free(p->apps[i].wdir);
    }
    free(p->apps);
    for (uint32_t i = 0; i < p->nranks && p->ranks; i++)
        free(p->ranks[i].slots);
    free(p->ranks);
    free(p->job);
    free(p->host);
    free(p->node_map);
    free(p);
}
