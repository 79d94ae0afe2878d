/*
 * Builds the environment of one rank in a buffer that is used again for the next.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "rankenv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "boot/launch_env.h"

#define OWN_MAX 24

bool rankenv_is_launchers(const char *entry)
{
    static const char *const names[] = {
        "PMI_FD=",          "PMI_RANK=",        "PMI_SIZE=",        "PMI_ID=",          "PMI_PORT=",
        "PMI_SPAWNED=",     "MPI_LOCALNRANKS=", "MPI_LOCALRANKID=", ENV_LAUNCHER "=",   ENV_JOB "=",
        ENV_WORLD_RANK "=", ENV_WORLD_SIZE "=", ENV_LOCAL_RANK "=", ENV_LOCAL_SIZE "=", ENV_UNIVERSE "=",
        ENV_APPNUM "=",     ENV_NODE_FD "=",    ENV_NODE_MAP "=",   ENV_HOST "=",       ENV_VNODE "=",
        "PMIX_NAMESPACE=",  "PMIX_RANK=",       "PMIX_SERVER_"};
    if (entry[0] != 'P' && entry[0] != 'M' && entry[0] != 'F')
        return false;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

const char *rankenv_get(char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

struct builder {
    char *text; /* OWN_MAX strings, one after the other */
    size_t cap, used;
    char **list;
    size_t list_cap, n;
};

static void add(struct builder *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(b->text + b->used, b->cap - b->used, fmt, args);
    va_end(args);
    b->list[b->n++] = b->text + b->used;
    b->used += (size_t)len + 1;
}

/* Room for everything that follows, so that the strings never move. */
static void reserve(struct builder *b, const struct plan *p, size_t inherited)
{
    size_t text = OWN_MAX * 64 + strlen(p->job) + strlen(p->host) + strlen(p->node_map);
    if (b->cap < text) {
        b->text = xrealloc(b->text, text);
        b->cap = text;
    }
    if (b->list_cap < inherited + OWN_MAX + 1) {
        b->list_cap = inherited + OWN_MAX + 1;
        b->list = xrealloc(b->list, b->list_cap * sizeof *b->list);
    }
    b->used = b->n = 0;
}

char *const *rankenv_build(const struct plan *p, const struct place *at, int pmi_fd, int node_fd)
{
    static struct builder b;
    char **inherited = p->apps[at->app].env;
    size_t n = 0;
    while (inherited[n])
        n++;
    reserve(&b, p, n);
    memcpy(b.list, inherited, n * sizeof *inherited);
    b.n = n;
    add(&b, "PMI_FD=%d", pmi_fd);
    add(&b, "PMI_RANK=%u", at->rank);
    add(&b, "PMI_SIZE=%u", p->size);
    add(&b, "MPI_LOCALNRANKS=%u", at->local_size);
    add(&b, "MPI_LOCALRANKID=%u", at->local_rank);
    add(&b, ENV_LAUNCHER "=%s", FISHPLATE_VERSION);
    add(&b, ENV_JOB "=%s", p->job);
    add(&b, ENV_WORLD_RANK "=%u", at->rank);
    add(&b, ENV_WORLD_SIZE "=%u", p->size);
    add(&b, ENV_LOCAL_RANK "=%u", at->local_rank);
    add(&b, ENV_LOCAL_SIZE "=%u", at->local_size);
    add(&b, ENV_UNIVERSE "=%u", p->universe);
    add(&b, ENV_APPNUM "=%u", at->app);
    add(&b, ENV_HOST "=%s", p->host);
    if (node_fd >= 0)
        add(&b, ENV_NODE_FD "=%d", node_fd);
    if (strlen(p->node_map) <= NODE_MAP_ENV_MAX)
        add(&b, ENV_NODE_MAP "=%s", p->node_map);
    if (at->vnode >= 0)
        add(&b, ENV_VNODE "=%d", at->vnode);
    b.list[b.n] = NULL;
    return b.list;
}
