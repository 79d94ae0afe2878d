/* pmix.c: the PMIx back end: orterun, prun and srun --mpi=pmix. libpmix.so.2 is loaded only when the
 * environment shows that such a launcher started this process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/tunable.h"
#include "base/util.h"
#include "boot/pmix_answer.h"
#include "boot/backend.h"
#include "boot/death_watcher.h"
#include "boot/nodemap.h"
#include "boot/pmix_abi.h"
#include "boot/pmix_spawn.h"
#include "boot/program.h"
#include "boot/launcher_watch.h"

#define LIBRARY "libpmix.so.2"

/* The functions of libpmix that this file calls. */
static struct {
    int (*Init)(struct px_proc *, struct px_info *, size_t);
    int (*Finalize)(const struct px_info *, size_t);
    int (*Abort)(int, const char *, struct px_proc *, size_t);
    int (*Put)(uint8_t, const char *, struct px_value *);
    int (*Commit)(void);
    int (*Fence_nb)(const struct px_proc *, size_t, const struct px_info *, size_t, px_done, void *);
    int (*Get)(const struct px_proc *, const char *, const struct px_info *, size_t, struct px_value **);
    int (*Register_event_handler)(int *, size_t, struct px_info *, size_t, px_event, px_registered, void *);
    px_spawn_nb Spawn_nb;
    const char *(*Error_string)(int);
    const char *(*Get_version)(void);
} px;

static const struct {
    const char *name;
    void *slot;
} functions[] = {
    {"PMIx_Init", &px.Init},
    {"PMIx_Finalize", &px.Finalize},
    {"PMIx_Abort", &px.Abort},
    {"PMIx_Put", &px.Put},
    {"PMIx_Commit", &px.Commit},
    {"PMIx_Fence_nb", &px.Fence_nb},
    {"PMIx_Get", &px.Get},
    {"PMIx_Register_event_handler", &px.Register_event_handler},
    {"PMIx_Spawn_nb", &px.Spawn_nb},
    {"PMIx_Error_string", &px.Error_string},
    {"PMIx_Get_version", &px.Get_version},
};

struct pmix {
    struct boot boot;
    struct px_proc me;
    struct death_watcher watcher;
};

static struct pmix *pmix_of(struct boot *b)
{
    return container_of(b, struct pmix, boot);
}

static bool pmix_detect(void)
{
    return env_get("PMIX_NAMESPACE") != NULL;
}

static int load_library(void)
{
    static const char instead[] = "Install it (Debian: libpmix2), or start the program with Fishplate's "
                                  "mpiexec or with srun --mpi=pmi2.";
    void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return err_set(MPI_ERR_OTHER,
                       "This program was started by a PMIx launcher (orterun, prun or srun --mpi=pmix), "
                       "but the PMIx client library cannot be loaded: %s. %s",
                       dlerror(), instead);
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        void *address = dlsym(lib, functions[i].name);
        if (!address)
            return err_set(MPI_ERR_OTHER, "The installed " LIBRARY " is too old: it has no %s. %s",
                           functions[i].name, instead);
        memcpy(functions[i].slot, &address, sizeof(address));
    }
    return 0;
}

static int pmix_error(const char *what, int status)
{
    return err_set(MPI_ERR_OTHER, "The PMIx launcher failed in %s: %s (%d). Library: %.60s.", what,
                   px.Error_string(status), status, px.Get_version());
}

/* Frees a value: libpmix has only macros for that. */
static void value_free(struct px_value *v)
{
    if (v->type == PX_STRING)
        free(v->data.string);
    else if (v->type == PX_BYTE_OBJECT)
        free(v->data.bo.bytes);
    free(v);
}

/* A value of the server, if the server has already sent it to this process. */
static struct px_value *get_server_value(const struct pmix *p, uint32_t rank, const char *key)
{
    struct px_proc whose = p->me;
    struct px_info optional = {.key = PX_OPTIONAL, .value = {.type = PX_BOOL, .data.flag = true}};
    struct px_value *v = NULL;
    whose.rank = rank;
    return px.Get(&whose, key, &optional, 1, &v) == PX_SUCCESS ? v : NULL;
}

/* Servers use different types for the same number. */
static bool value_get_number(const struct px_value *v, int64_t *out)
{
    switch (v->type) {
    case PX_INT:
        *out = v->data.integer;
        return true;
    case PX_INT32:
        *out = v->data.int32;
        return true;
    case PX_INT64:
        *out = v->data.int64;
        return true;
    case PX_UINT:
        *out = v->data.uint;
        return true;
    case PX_UINT16:
        *out = v->data.uint16;
        return true;
    case PX_UINT32:
    case PX_PROC_RANK:
        *out = v->data.uint32;
        return true;
    case PX_UINT64:
        *out = (int64_t)v->data.uint64;
        return true;
    case PX_SIZE:
        *out = (int64_t)v->data.size;
        return true;
    default:
        return false;
    }
}

static bool get_server_number(const struct pmix *p, uint32_t rank, const char *key, int64_t min, int64_t *out)
{
    int64_t n;
    struct px_value *v = get_server_value(p, rank, key);
    bool ok = v && value_get_number(v, &n) && n >= min && n <= INT32_MAX;
    if (v)
        value_free(v);
    if (ok)
        *out = n;
    return ok;
}

/* The index of the host in `names`, to which a new name is appended. Takes ownership of `name`. The search
 * begins at index `last`: consecutive ranks are usually on the same node or on the next one. */
static uint32_t find_or_add_host(char **names, uint32_t *n, uint32_t last, char *name)
{
    for (uint32_t k = 0; k < *n; k++) {
        uint32_t at = (last + k) % *n;
        if (strcmp(names[at], name) == 0) {
            free(name);
            return at;
        }
    }
    names[*n] = name;
    return (*n)++;
}

/* Builds a node map from the host names of the ranks, which orterun sends at start. (PMIx_Resolve_peers,
 * with one request for each node, hangs under orterun.) NULL: the host of a rank is not known. */
static char *build_map_from_hosts(const struct pmix *p)
{
    uint32_t size = p->boot.size, n = 0, last = 0;
    uint32_t *node_of = calloc(size, sizeof(*node_of));
    char **names = calloc(size, sizeof(*names));
    bool known = node_of && names;
    for (uint32_t r = 0; r < size && known; r++) {
        struct px_value *v = get_server_value(p, r, PX_HOSTNAME);
        char *name = v && v->type == PX_STRING && v->data.string ? strdup(v->data.string) : NULL;
        known = name != NULL;
        if (known)
            node_of[r] = last = find_or_add_host(names, &n, last, name);
        if (v)
            value_free(v);
    }
    char *map = known ? nodemap_format(node_of, size) : NULL;
    for (uint32_t k = 0; k < n; k++)
        free(names[k]);
    free(names);
    free(node_of);
    return map;
}

static int read_layout(struct pmix *p)
{
    int64_t nodes = 0;
    if (p->boot.size == 1 || (get_server_number(p, PX_RANK_WILDCARD, PX_NUM_NODES, 1, &nodes) && nodes == 1))
        return boot_set_layout_foreign(&p->boot, NULL, p->me.nspace);
    struct px_value *v = get_server_value(p, PX_RANK_WILDCARD, PX_PACKED_MAP);
    char *map =
        v && v->type == PX_STRING && v->data.string ? strdup(v->data.string) : build_map_from_hosts(p);
    if (v)
        value_free(v);
    if (!map)
        return err_set(MPI_ERR_OTHER, "The PMIx launcher does not report which rank is on which node.");
    int rc = boot_set_layout_foreign(&p->boot, map, p->me.nspace);
    free(map);
    return rc;
}

static int pmix_connect(struct pmix *p)
{
    int status = px.Init(&p->me, NULL, 0);
    if (status != PX_SUCCESS)
        return err_set(MPI_ERR_OTHER,
                       "PMIX_NAMESPACE is set, but no PMIx launcher answers: %s (%d). If a rank started this "
                       "program, unset PMIX_NAMESPACE to run it alone.",
                       px.Error_string(status), status);
    int64_t n;
    if (!get_server_number(p, PX_RANK_WILDCARD, PX_JOB_SIZE, 1, &n) || (uint64_t)n <= p->me.rank)
        return err_set(MPI_ERR_OTHER, "The PMIx launcher does not report how many ranks the job has.");
    p->boot.rank = p->me.rank;
    p->boot.size = (uint32_t)n;
    if (get_server_number(p, p->me.rank, PX_APPNUM, 0, &n))
        p->boot.appnum = (int)n;
    if (get_server_number(p, PX_RANK_WILDCARD, PX_UNIV_SIZE, 1, &n))
        p->boot.universe_size = (int)n;
    int rc = program_read_parent_port(&p->boot);
    return rc ? rc : read_layout(p);
}

/* The back end that on_server_lost uses: an event handler of PMIx gets no argument of the caller. */
static struct pmix *served;

/* The loss of the server of this process ends the process. Events about other ranks are ignored. */
static void on_server_lost(size_t id, int status, const struct px_proc *source, struct px_info *info,
                           size_t ninfo, struct px_info *results, size_t nresults, px_handled handled,
                           void *event)
{
    struct pmix *p = __atomic_load_n(&served, __ATOMIC_ACQUIRE);
    (void)id;
    (void)info;
    (void)ninfo;
    (void)results;
    (void)nresults;
    if (p && status == PX_ERR_LOST_CONNECTION && source && strcmp(source->nspace, p->me.nspace) != 0)
        launcher_watch_end_process(&p->boot);
    if (handled)
        handled(PX_SUCCESS, NULL, 0, NULL, NULL, event);
}

static void on_handler_registered(int status, size_t id, void *ctx)
{
    (void)id;
    pmix_answer_complete(status, ctx);
}

static void watch_server(struct pmix *p)
{
    static int codes[] = {PX_ERR_LOST_CONNECTION};
    struct pmix_answer *w = pmix_answer_new();
    if (!w)
        return;
    __atomic_store_n(&served, p, __ATOMIC_RELEASE);
    /* If registration fails, the process does not detect that its launcher was killed. */
    int status =
        px.Register_event_handler(codes, COUNT_OF(codes), NULL, 0, on_server_lost, on_handler_registered, w);
    if (status != PX_SUCCESS || pmix_answer_wait(w))
        pmix_answer_free(w);
}

/* If pmix_finalize was not called, MPI_Init has failed: the death watcher keeps running and ends the job when
 * this process ends. */
static void pmix_close(struct boot *b)
{
    boot_layout_free(b);
    free(pmix_of(b));
}

static int pmix_open(struct boot **out)
{
    int rc = load_library();
    if (rc)
        return rc;
    struct pmix *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(MPI_ERR_NO_MEM, "Out of memory for the connection to the launcher.");
    boot_init(&p->boot, &boot_pmix);
    rc = pmix_connect(p);
    if (rc) {
        pmix_close(&p->boot);
        return rc;
    }
    watch_server(p);
    death_watcher_start(&p->watcher, &p->boot, -1);
    *out = &p->boot;
    return 0;
}

static void format_store_key(const char *key, char out[64])
{
    snprintf(out, 64, "fp.%.40s", key);
}

static int pmix_put(struct boot *b, const char *key, const void *val, size_t len)
{
    char name[64];
    struct px_value v = {.type = PX_BYTE_OBJECT};
    (void)b;
    format_store_key(key, name);
    v.data.bo.bytes = (char *)val; /* PMIx_Put copies the value */
    v.data.bo.size = len;
    int status = px.Put(PX_SCOPE_GLOBAL, name, &v);
    return status == PX_SUCCESS ? 0 : pmix_error("PMIx_Put", status);
}

/*
 * A fence copies the values of every rank to the server of every node, where ranks read them from shared
 * memory. Direct modex, in which a value is fetched from its owner on request, would scale better but is
 * not reliable: with PMIx 4.2.2 under Slurm 22.05 values of a second fence are not found, and 32 of 50
 * jobs with a single fence hung in PMIx_Get.
 */
static int pmix_fence(struct boot *b)
{
    (void)b;
    struct px_info collect = {.key = PX_COLLECT, .value = {.type = PX_BOOL, .data.flag = true}};
    int status = px.Commit();
    if (status != PX_SUCCESS)
        return pmix_error("PMIx_Commit", status);
    struct pmix_answer *w = pmix_answer_new();
    if (!w)
        return err_set(MPI_ERR_NO_MEM, "Out of memory while waiting for the other ranks.");
    status = px.Fence_nb(NULL, 0, &collect, 1, pmix_answer_complete, w);
    if (status == PX_SUCCESS) {
        /* A late answer is written through the pointer, so `w` is not freed. The job ends. */
        if (!pmix_answer_wait(w))
            return err_set(MPI_ERR_OTHER,
                           "Start-up did not finish within %d seconds (FISHPLATE_INIT_TIMEOUT) because "
                           "not all ranks arrived; the launcher cannot tell which ranks are missing.",
                           boot_timeout());
        status = w->status;
    }
    pmix_answer_free(w);
    return status == PX_SUCCESS || status == PX_OPERATION_SUCCEEDED ? 0 : pmix_error("PMIx_Fence", status);
}

static int pmix_get(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len)
{
    struct px_proc whose = pmix_of(b)->me;
    /* The local server has the value since the fence, or no server has it: it must not query other
     * servers. */
    struct px_info now = {.key = PX_IMMEDIATE, .value = {.type = PX_BOOL, .data.flag = true}};
    struct px_value *v = NULL;
    char name[64];
    format_store_key(key, name);
    whose.rank = rank;
    int status = px.Get(&whose, name, &now, 1, &v);
    if (status == PX_ERR_NOT_FOUND)
        return err_set(MPI_ERR_OTHER, "Rank %u did not publish the start-up key %s.", rank, key);
    if (status != PX_SUCCESS)
        return pmix_error("PMIx_Get", status);
    int rc = v->type == PX_BYTE_OBJECT
                 ? boot_copy_value(key, v->data.bo.bytes, v->data.bo.size, val, len)
                 : err_set(MPI_ERR_OTHER, "The start-up key %s of rank %u came back with a different type.",
                           key, rank);
    value_free(v);
    return rc;
}

static int pmix_finalize(struct boot *b)
{
    death_watcher_stop(&pmix_of(b)->watcher);
    __atomic_store_n(&served, NULL, __ATOMIC_RELEASE);
    int status = px.Finalize(NULL, 0);
    return status == PX_SUCCESS ? 0 : pmix_error("PMIx_Finalize", status);
}

static bool pmix_abort(struct boot *b, int code, const char *msg)
{
    boot_print_abort(b, code, msg);
    px.Abort(code, msg ? msg : "", NULL, 0);
    return true;
}

static int pmix_spawn(struct boot *b, const struct boot_program *programs, int n, const char *port,
                      char id[BOOT_SPAWN_ID])
{
    int status = pmix_spawn_start(px.Spawn_nb, b, programs, n, port, id);
    if (status == PX_NO_MEMORY)
        return err_set(MPI_ERR_NO_MEM, "Out of memory for the request to spawn %d programs.", n);
    if (status == PX_NO_ANSWER)
        return err_set(MPI_ERR_SPAWN, "The launcher did not answer a request to spawn within %d seconds.",
                       boot_timeout());
    if (status == PX_ERR_NOT_SUPPORTED)
        return err_set(MPI_ERR_SPAWN,
                       "Processes cannot be spawned here: this PMIx launcher cannot start more "
                       "processes. Start the program with Fishplate's mpiexec.");
    return status == PX_SUCCESS ? 0
                                : err_set(MPI_ERR_SPAWN, "The launcher refused to spawn %s: %s (%d).",
                                          programs[0].command, px.Error_string(status), status);
}

const struct boot_backend boot_pmix = {.name = "pmix",
                                       .detect = pmix_detect,
                                       .open = pmix_open,
                                       .put = pmix_put,
                                       .fence = pmix_fence,
                                       .get = pmix_get,
                                       .finalize = pmix_finalize,
                                       .abort = pmix_abort,
                                       .close = pmix_close,
                                       .spawn = pmix_spawn};
