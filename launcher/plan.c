/*
 * A plan as bytes: numbers in network order, strings with their length. The reader checks every length
 * against what is left, since the bytes crossed a network.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "plan.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static void put_u32(struct buf *out, uint32_t v)
{
    v = htonl(v);
    buf_add(out, &v, sizeof v);
}

static void put_str(struct buf *out, const char *s)
{
    uint32_t len = (uint32_t)strlen(s);
    put_u32(out, len);
    buf_add(out, s, len);
}

static void put_list(struct buf *out, char **list)
{
    uint32_t n = 0;
    while (list[n])
        n++;
    put_u32(out, n);
    for (uint32_t i = 0; i < n; i++)
        put_str(out, list[i]);
}

void plan_encode(const struct plan *p, struct buf *out)
{
    put_str(out, p->job);
    put_str(out, p->host);
    put_str(out, p->node_map);
    put_u32(out, p->size);
    put_u32(out, p->universe);
    put_u32(out, p->nnodes);
    put_u32(out, p->bind);
    put_u32(out, p->scatter_sockets);
    put_u32(out, p->verbose);
    put_u32(out, p->napps);
    for (uint32_t i = 0; i < p->napps; i++) {
        put_list(out, p->apps[i].argv);
        put_list(out, p->apps[i].env);
        put_str(out, p->apps[i].wdir);
    }
    put_u32(out, p->nranks);
    for (uint32_t i = 0; i < p->nranks; i++) {
        const struct place *r = &p->ranks[i];
        uint32_t v[] = {r->rank,      r->app, r->node, r->local_rank, r->local_size, (uint32_t)r->vnode,
                        r->stdin_from};
        for (size_t k = 0; k < COUNT_OF(v); k++)
            put_u32(out, v[k]);
    }
}

struct reader {
    const char *at;
    size_t left;
    bool bad;
};

static uint32_t get_u32(struct reader *r)
{
    uint32_t v = 0;
    if (r->bad || r->left < sizeof v) {
        r->bad = true;
        return 0;
    }
    memcpy(&v, r->at, sizeof v);
    r->at += sizeof v;
    r->left -= sizeof v;
    return ntohl(v);
}

static char *get_str(struct reader *r)
{
    uint32_t len = get_u32(r);
    if (r->bad || len > r->left || memchr(r->at, 0, len)) {
        r->bad = true;
        return xstrdup("");
    }
    char *s = xcalloc(len + 1, 1);
    memcpy(s, r->at, len);
    r->at += len;
    r->left -= len;
    return s;
}

/* How many items follow; each takes at least `each` bytes, so a false count cannot ask for much memory. */
static uint32_t get_count(struct reader *r, size_t each)
{
    uint32_t n = get_u32(r);
    if (n > r->left / each)
        r->bad = true;
    return r->bad ? 0 : n;
}

static char **get_list(struct reader *r)
{
    uint32_t n = get_count(r, 4);
    char **list = xcalloc((size_t)n + 1, sizeof *list);
    for (uint32_t i = 0; i < n; i++)
        list[i] = get_str(r);
    return list;
}

static struct place get_place(struct reader *r, const struct plan *p)
{
    struct place at;
    at.rank = get_u32(r);
    at.app = get_u32(r);
    at.node = get_u32(r);
    at.local_rank = get_u32(r);
    at.local_size = get_u32(r);
    at.vnode = (int32_t)get_u32(r);
    at.stdin_from = get_u32(r);
    if (at.rank >= p->size || at.app >= p->napps || at.local_rank >= at.local_size ||
        at.stdin_from > STDIN_PIPE)
        r->bad = true;
    return at;
}

struct plan *plan_decode(const char *data, size_t len)
{
    struct reader r = {.at = data, .left = len};
    struct plan *p = xcalloc(1, sizeof *p);
    p->job = get_str(&r);
    p->host = get_str(&r);
    p->node_map = get_str(&r);
    p->size = get_u32(&r);
    p->universe = get_u32(&r);
    p->nnodes = get_u32(&r);
    p->bind = get_u32(&r);
    p->scatter_sockets = get_u32(&r);
    p->verbose = get_u32(&r);
    p->napps = get_count(&r, 12);
    p->apps = xcalloc(p->napps, sizeof *p->apps);
    for (uint32_t i = 0; i < p->napps; i++) {
        p->apps[i].argv = get_list(&r);
        p->apps[i].env = get_list(&r);
        p->apps[i].wdir = get_str(&r);
        r.bad = r.bad || !p->apps[i].argv[0];
    }
    p->nranks = get_count(&r, 28);
    p->ranks = xcalloc(p->nranks, sizeof *p->ranks);
    for (uint32_t i = 0; i < p->nranks && !r.bad; i++)
        p->ranks[i] = get_place(&r, p);
    if (r.bad || r.left || p->bind > BIND_SOCKET) {
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
    free(p->ranks);
    free(p->job);
    free(p->host);
    free(p->node_map);
    free(p);
}
