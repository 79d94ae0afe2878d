/* boot.c: chooses the back end, checks keys, and computes local ranks from the node map. Protocols of
 * launchers are in the back ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/boot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/kill_point.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/err.h"
#include "base/tunable.h"
#include "base/util.h"
#include "boot/backend.h"
#include "boot/nodemap.h"

#define KEY_LEN_MAX 40

/* boot_open uses the first back end whose detect() returns true; boot_singleton's detect() always returns
 * true. */
static const struct boot_backend *const backends[] = {&boot_pmix, &boot_pmi1, &boot_singleton};

static TUNABLE_INT(init_timeout, "INIT_TIMEOUT", 60, 1, 86400,
                   "Seconds that a step of MPI_Init waits for other ranks before it names the missing ones "
                   "and ends the job.");

static COUNTER(open_us, "start_launcher_us",
               "Microseconds until the launcher reported rank, number of ranks and nodes.");
static COUNTER(fence_us, "start_fence_us",
               "Microseconds spent in launcher fences (barriers of all ranks during start-up).");
static COUNTER(fences, "start_fences", "Launcher fences in which this rank took part.");
static COUNTER(put_bytes, "start_put_bytes", "Bytes of connection data published through the launcher.");
static COUNTER(gets, "start_gets",
               "Connection data of ranks fetched through the launcher, each when first needed.");
static COUNTER(get_us, "start_get_us", "Microseconds spent fetching values of ranks through the launcher.");

static void count_elapsed_us(struct counter *c, uint64_t since)
{
    counter_add(c, (clock_ns() - since) / 1000);
}

int boot_timeout(void)
{
    return (int)init_timeout.value;
}

uint64_t boot_deadline(void)
{
    return clock_ns() + (uint64_t)init_timeout.value * 1000000000u;
}

/* True if this process is one of several tasks of an srun without a PMI server, which would each run as a
 * singleton. A batch script has SLURM_PROCID but no SLURM_STEP_ID; a step of one task may run as a
 * singleton. */
static bool slurm_task_without_server(void)
{
    const char *tasks = env_get("SLURM_STEP_NUM_TASKS");
    if (!env_get("SLURM_PROCID") || (tasks && strcmp(tasks, "1") == 0))
        return false;
    return !env_get("SLURM_JOB_ID") || env_get("SLURM_STEP_ID");
}

#define NO_SERVER "This program is a task of srun, but srun offers no PMI server"

bool boot_is_reported_elsewhere(const char *detail)
{
    const char *task = env_get("SLURM_PROCID");
    return task && strcmp(task, "0") != 0 && strncmp(detail, NO_SERVER, strlen(NO_SERVER)) == 0;
}

/* Launchers that set variables of their own but offer no server that this library can use. */
static const struct {
    const char *rank, *size, *name;
} others[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "the mpirun of an Open MPI older than version 4"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MVAPICH2's mpirun_rsh"},
    {"MP_CHILD", "MP_PROCS", "IBM's poe"},
    {"ALPS_APP_PE", NULL, "aprun"},
    {"PALS_RANKID", NULL, "the mpiexec of PALS"},
};

/* A launcher without a back end is an error: each process would run as a job of its own. */
static int check_launcher_supported(void)
{
    if (slurm_task_without_server())
        return err_set(
            MPI_ERR_OTHER, NO_SERVER
            ", so that each task would run "
            "as a job of its own. Start it with srun --mpi=pmix or srun --mpi=pmi2 (srun --mpi=list shows "
            "which there are), or with Fishplate's mpiexec inside the allocation.");
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        const char *size = others[i].size ? env_get(others[i].size) : NULL;
        if (env_get(others[i].rank) && (!size || strcmp(size, "1") != 0))
            return err_set(
                MPI_ERR_OTHER,
                "This program was started by %s (%s is set), which offers neither PMIx nor PMI-1, so that "
                "each process would run as a job of its own. Start it with Fishplate's mpiexec, or unset %s "
                "to run it alone.",
                others[i].name, others[i].rank, others[i].rank);
    }
    return 0;
}

int boot_open(struct boot **out)
{
    const struct boot_backend *chosen = NULL;
    for (size_t i = 0; i < COUNT_OF(backends) && !chosen; i++)
        if (backends[i]->detect())
            chosen = backends[i];
    if (chosen == &boot_singleton) {
        int rc = check_launcher_supported();
        if (rc)
            return rc;
    }
    uint64_t began = clock_ns();
    int rc = chosen->open(out);
    count_elapsed_us(&open_us, began);
    if (rc == 0)
        kill_point_open((*out)->rank);
    return rc;
}

static int check_key(const char *key)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t len = strlen(key);
    if (len == 0 || len > KEY_LEN_MAX || strspn(key, allowed) != len)
        return err_set(MPI_ERR_ARG,
                       "The start-up key \"%s\" is not 1 to %d characters of letters, digits, _ . and -.",
                       key, KEY_LEN_MAX);
    return 0;
}

int boot_put(struct boot *b, const char *key, const void *val, size_t len)
{
    int rc = check_key(key);
    counter_add(&put_bytes, len);
    return rc ? rc : b->backend->put(b, key, val, len);
}

int boot_fence(struct boot *b)
{
    uint64_t began = clock_ns();
    int rc = b->backend->fence(b);
    count_elapsed_us(&fence_us, began);
    counter_add(&fences, 1);
    return rc;
}

int boot_get(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len)
{
    int rc = check_key(key);
    if (rc)
        return rc;
    if (rank >= b->size)
        return err_set(MPI_ERR_RANK, "Rank %u is not in this job of %u ranks.", rank, b->size);
    uint64_t began = clock_ns();
    rc = b->backend->get(b, rank, key, val, len);
    count_elapsed_us(&get_us, began);
    counter_add(&gets, 1);
    return rc;
}

int boot_spawn(struct boot *b, const struct boot_program *programs, int n, const char *port,
               char id[BOOT_SPAWN_ID])
{
    if (!b->backend->spawn)
        return err_set(
            MPI_ERR_SPAWN,
            "Processes cannot be spawned here: the launcher cannot start more. Start the program with "
            "Fishplate's mpiexec.");
    return b->backend->spawn(b, programs, n, port, id);
}

int boot_spawn_poll(struct boot *b, const char *id, uint64_t since)
{
    int rc = b->backend->spawn_poll ? b->backend->spawn_poll(b, id) : BOOT_CANNOT_QUERY;
    if (rc != BOOT_CANNOT_QUERY)
        return rc;
    if (clock_ns() - since < (uint64_t)boot_timeout() * 1000000000u)
        return 0;
    return err_set(
        MPI_ERR_SPAWN,
        "The launcher (%s) took the request to spawn, but no new process connected within %d seconds "
        "(FISHPLATE_INIT_TIMEOUT). It may have no free processors for them: start the job with more.",
        b->launcher, boot_timeout());
}

void boot_spawn_connected(struct boot *b, const char *id)
{
    if (b->backend->spawn_connected)
        b->backend->spawn_connected(b, id);
}

int boot_report_initialized(struct boot *b)
{
    return b->backend->report_initialized ? b->backend->report_initialized(b) : 0;
}

int boot_report_suspect(struct boot *b, uint32_t rank)
{
    return b->backend->report_suspect ? b->backend->report_suspect(b, rank) : MPI_ERR_UNSUPPORTED_OPERATION;
}

int boot_finalize(struct boot *b)
{
    return b->backend->finalize(b);
}

void boot_close(struct boot *b)
{
    if (b)
        b->backend->close(b);
}

/* Writes buffered output before the job is aborted. Does not wait for a lock that another thread holds. */
static void flush_stdout(void)
{
    if (ftrylockfile(stdout) == 0) {
        fflush(stdout);
        funlockfile(stdout);
    }
}

void boot_print_abort(const struct boot *b, int code, const char *msg)
{
    flush_stdout();
    fprintf(stderr, "fishplate: Rank %u on %s ended the job with code %d%s%s\n", b ? b->rank : 0,
            b ? b->host : "this host", code, msg ? ": " : ".", msg ? msg : "");
}

_Noreturn void boot_abort(struct boot *b, int code, const char *msg)
{
    flush_stdout(); /* before the launcher is notified, which ends all ranks */
    if (!b || !b->backend->abort(b, code, msg))
        boot_print_abort(b, code, msg);
    _exit((code & 0xff) || code == 0 ? code & 0xff : 1);
}

void boot_init(struct boot *b, const struct boot_backend *backend)
{
    *b = (struct boot){.appnum = -1,
                       .universe_size = -1,
                       .vnode = -1,
                       .node_fd = -1,
                       .launcher = backend->name,
                       .backend = backend};
}

int boot_copy_value(const char *key, const void *from, size_t from_len, void **val, size_t *len)
{
    char *copy = malloc(from_len + 1);
    if (!copy)
        return err_set(MPI_ERR_NO_MEM, "Out of memory for the start-up key %s.", key);
    if (from_len > 0)
        memcpy(copy, from, from_len);
    copy[from_len] = '\0';
    *val = copy;
    *len = from_len;
    return 0;
}

static int fill_node_map(struct boot *b, const char *map)
{
    uint32_t *node_of = calloc(b->size, sizeof(*node_of));
    b->node_of = node_of;
    if (!node_of)
        return err_set(MPI_ERR_NO_MEM, "Out of memory for the node map of %u ranks.", b->size);
    b->nnodes = 1;
    if (map && !nodemap_parse(map, b->size, node_of, &b->nnodes))
        return err_set(MPI_ERR_OTHER, "The launcher's node map \"%.200s\" cannot be parsed.", map);
    b->node = node_of[b->rank];
    uint32_t *local = calloc(b->size, sizeof(*local));
    b->local_ranks = local;
    if (!local)
        return err_set(MPI_ERR_NO_MEM, "Out of memory for the list of ranks on this node.");
    for (uint32_t r = 0; r < b->size; r++) {
        if (node_of[r] != b->node)
            continue;
        if (r == b->rank)
            b->local_rank = b->nlocal;
        local[b->nlocal++] = r;
    }
    return 0;
}

int boot_set_layout(struct boot *b, const char *map, const char *job)
{
    int rc = fill_node_map(b, map);
    if (rc)
        return rc;
    char host[300];
    if (gethostname(host, sizeof(host) - 20) != 0)
        strcpy(host, "unknown");
    host[sizeof(host) - 20] = '\0';
    if (b->vnode >= 0)
        snprintf(host + strlen(host), 20, "-v%d", b->vnode);
    b->host = strdup(host);
    b->job = strdup(job);
    return b->host && b->job ? 0 : err_set(MPI_ERR_NO_MEM, "Out of memory for the names of host and job.");
}

int boot_set_layout_foreign(struct boot *b, const char *map, const char *job)
{
    char unique[400];
    const char *host = env_get("SLURM_SRUN_COMM_HOST"), *port = env_get("SLURM_SRUN_COMM_PORT");
    if (!host || !port)
        return boot_set_layout(b, map, job);
    snprintf(unique, sizeof(unique), "%.256s-%.100s-%.10s", job, host, port);
    return boot_set_layout(b, map, unique);
}

void boot_layout_free(struct boot *b)
{
    free((void *)b->node_of);
    free((void *)b->local_ranks);
    free((void *)b->host);
    free((void *)b->job);
    free((void *)b->parent);
}
