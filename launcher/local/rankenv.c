/* rankenv.c: builds the environment of one rank in a buffer that is reused for the next rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "local/rankenv.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/launch_env.h"
#include "local/foreign.h"

#define OWN_MAX 30
#define LIBRARY "libmpi_abi.so.1"

/* True if the outer mpiexec of a nested job set this SOFTIB variable for its own ranks. */
static bool is_outer_fabric(const char *entry)
{
    const char *outer = getenv(ENV_JOB);
    if (!outer || !*outer)
        return false;
    return strncmp(entry, ENV_SOFTIB_NODE "=", strlen(ENV_SOFTIB_NODE) + 1) == 0 ||
           (strncmp(entry, ENV_SOFTIB_FABRIC "=", strlen(ENV_SOFTIB_FABRIC) + 1) == 0 &&
            strstr(entry, outer));
}

bool rankenv_is_launcher_variable(const char *entry)
{
    static const char *const names[] = {
        "PMI_FD=",          "PMI_RANK=",         "PMI_SIZE=",        "PMI_ID=",          "PMI_PORT=",
        "PMI_SPAWNED=",     "MPI_LOCALNRANKS=",  "MPI_LOCALRANKID=", ENV_LAUNCHER "=",   ENV_JOB "=",
        ENV_WORLD_RANK "=", ENV_WORLD_SIZE "=",  ENV_LOCAL_RANK "=", ENV_LOCAL_SIZE "=", ENV_UNIVERSE "=",
        ENV_APPNUM "=",     ENV_NODE_FD "=",     ENV_NODE_MAP "=",   ENV_HOST "=",       ENV_VNODE "=",
        ENV_TRACER "=",     ENV_ONE_MACHINE "=", "PMIX_NAMESPACE=",  "PMIX_RANK=",       "PMIX_SERVER_"};
    if (entry[0] == 'S')
        return is_outer_fabric(entry);
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
    char *text; /* up to OWN_MAX zero-terminated strings, one after the other */
    size_t cap, used;
    char **list;
    size_t list_cap, n;
};

static void rankenv_add(struct builder *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(b->text + b->used, b->cap - b->used, fmt, args);
    va_end(args);
    b->list[b->n++] = b->text + b->used;
    b->used += (size_t)len + 1;
}

/* Finds a file below the library folder of this mpiexec's installation; "" if it does not exist. */
static void find_in_tree(const char *name, char *out, size_t size)
{
    static const char *const folders[] = {"lib", FISHPLATE_LIBDIR};
    char self[PATH_MAX];
    snprintf(self, sizeof(self), "%s", self_path());
    for (int up = 0; up < 2; up++) { /* PREFIX/bin/mpiexec becomes PREFIX */
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
    }
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        const int n = snprintf(out, size, "%s/%s/%s", self, folders[i], name);
        if (n > 0 && (size_t)n < size && access(out, R_OK) == 0)
            return;
    }
    out[0] = '\0';
}

static const char *softib_library(void)
{
    static char path[PATH_MAX + 64];
    static bool known;
    if (!known)
        find_in_tree("softib/libibverbs.so.1", path, sizeof(path));
    known = true;
    return path;
}

const char *rankenv_library_folder(const char *program, char *const *env)
{
    static char folder[PATH_MAX + 64];
    static bool known;
    if (!known) {
        find_in_tree(LIBRARY, folder, sizeof(folder));
        char *slash = strrchr(folder, '/');
        if (slash)
            *slash = '\0';
    }
    known = true;
    if (!*folder || foreign_find_in_folders(rankenv_get(env, "LD_LIBRARY_PATH"), LIBRARY) ||
        foreign_program_finds_library(program, LIBRARY))
        return NULL;
    return folder;
}

/* Reserves memory for all later strings, so that pointers to them stay valid. */
static void rankenv_reserve(struct builder *b, const struct plan *p, size_t inherited, const char *fabric,
                            const char *folders, const char *library_folder)
{
    size_t text = OWN_MAX * 64 + (folders ? strlen(folders) : 0) +
                  (library_folder ? strlen(library_folder) : 0) + strlen(p->job) + strlen(p->host) +
                  strlen(p->node_map) + strlen(softib_library()) + (fabric ? strlen(fabric) : 0);
    if (b->cap < text) {
        b->text = xrealloc(b->text, text);
        b->cap = text;
    }
    if (b->list_cap < inherited + OWN_MAX + 1) {
        b->list_cap = inherited + OWN_MAX + 1;
        b->list = xrealloc(b->list, b->list_cap * sizeof(*b->list));
    }
    b->used = b->n = 0;
}

/* Removes an inherited NAME=value, so that the launcher's own value is the only one. */
static void rankenv_remove(struct builder *b, const char *name)
{
    size_t kept = 0, len = strlen(name);
    for (size_t i = 0; i < b->n; i++)
        if (strncmp(b->list[i], name, len) != 0 || b->list[i][len] != '=')
            b->list[kept++] = b->list[i];
    b->n = kept;
}

/* Adds the variables of softib. Each virtual node is a node of the software fabric. If SOFTIB_FABRIC
 * describes links but no nodes ("ports=2"), the number of nodes is added; a complete description is kept. */
static void add_softib(struct builder *b, const struct plan *p, const struct place *at, const char *fabric)
{
    char *const *inherited = p->apps[at->app].env;
    if (*softib_library() && !rankenv_get(inherited, ENV_SOFTIB_LIB))
        rankenv_add(b, ENV_SOFTIB_LIB "=%s", softib_library());
    if (at->vnode < 0)
        return;
    if (!rankenv_get(inherited, ENV_SOFTIB_NODE))
        rankenv_add(b, ENV_SOFTIB_NODE "=%u", at->node);
    if (!rankenv_get(inherited, ENV_SOFTIB_TRACER))
        rankenv_add(b, ENV_SOFTIB_TRACER "=%d",
                    (int)getpid()); /* the common ancestor of all ranks of the fabric */
    if (fabric && (*fabric == '/' || *fabric == '.' || strstr(fabric, "nodes=")))
        return;
    rankenv_remove(b, ENV_SOFTIB_FABRIC);
    rankenv_add(b, ENV_SOFTIB_FABRIC "=nodes=%u name=%s%s%s", p->nnodes, p->job, fabric ? " " : "",
                fabric ? fabric : "");
}

/* Appends `library_folder` to LD_LIBRARY_PATH. */
static void add_library_folder(struct builder *b, const char *folders, const char *library_folder)
{
    if (!library_folder)
        return;
    rankenv_remove(b, "LD_LIBRARY_PATH");
    rankenv_add(b, "LD_LIBRARY_PATH=%s%s%s", folders ? folders : "", folders && *folders ? ":" : "",
                library_folder);
}

char *const *rankenv_build(const struct plan *p, const struct place *at, int pmi_fd, int node_fd,
                           int notices_fd, const char *library_folder)
{
    static struct builder b;
    char **inherited = p->apps[at->app].env;
    size_t n = 0;
    while (inherited[n])
        n++;
    const char *fabric = rankenv_get(inherited, ENV_SOFTIB_FABRIC);
    const char *folders = rankenv_get(inherited, "LD_LIBRARY_PATH");
    rankenv_reserve(&b, p, n, fabric, folders, library_folder);
    memcpy(b.list, inherited, n * sizeof(*inherited));
    b.n = n;
    rankenv_add(&b, "PMI_FD=%d", pmi_fd);
    rankenv_add(&b, "PMI_RANK=%u", at->rank);
    rankenv_add(&b, "PMI_SIZE=%u", p->size);
    rankenv_add(&b, "MPI_LOCALNRANKS=%u", at->local_size);
    rankenv_add(&b, "MPI_LOCALRANKID=%u", at->local_rank);
    rankenv_add(&b, ENV_LAUNCHER "=%s", FISHPLATE_VERSION);
    rankenv_add(&b, ENV_JOB "=%s", p->job);
    rankenv_add(&b, ENV_WORLD_RANK "=%u", at->rank);
    rankenv_add(&b, ENV_WORLD_SIZE "=%u", p->size);
    rankenv_add(&b, ENV_LOCAL_RANK "=%u", at->local_rank);
    rankenv_add(&b, ENV_LOCAL_SIZE "=%u", at->local_size);
    rankenv_add(&b, ENV_UNIVERSE "=%u", p->universe);
    rankenv_add(&b, ENV_APPNUM "=%u", p->apps[at->app].number);
    rankenv_add(&b, ENV_HOST "=%s", p->host);
    rankenv_add(&b, ENV_TRACER "=%d", (int)getpid());
    if (p->one_machine)
        rankenv_add(&b, ENV_ONE_MACHINE "=1");
    if (node_fd >= 0)
        rankenv_add(&b, ENV_NODE_FD "=%d", node_fd);
    if (notices_fd >= 0)
        rankenv_add(&b, ENV_NOTICES "=%d", notices_fd);
    else
        rankenv_remove(&b, ENV_NOTICES);
    if (strlen(p->node_map) <= NODE_MAP_ENV_MAX)
        rankenv_add(&b, ENV_NODE_MAP "=%s", p->node_map);
    if (at->vnode >= 0)
        rankenv_add(&b, ENV_VNODE "=%d", at->vnode);
    add_softib(&b, p, at, fabric);
    add_library_folder(&b, folders, library_folder);
    b.list[b.n] = NULL;
    return b.list;
}
