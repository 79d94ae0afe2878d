/*
 * Chooses the back end, checks keys, and works out what follows from the node map. Nothing here knows a
 * wire protocol.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "boot/boot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tunable.h"
#include "base/util.h"
#include "boot/backend.h"
#include "boot/nodemap.h"

#define KEY_LEN_MAX 40

/* The first that detects itself is used; singleton always does. */
static const struct boot_backend *const backends[] = {&boot_pmi1, &boot_singleton};

/*
 * A task of `srun` without a PMI server would be one of N singletons that each believe to be rank 0. A
 * batch script also has SLURM_PROCID but no step, and a step of one task is an honest singleton.
 */
static bool slurm_task_without_server(void)
{
    const char *tasks = env_get("SLURM_STEP_NUM_TASKS");
    if (!env_get("SLURM_PROCID") || (tasks && strcmp(tasks, "1") == 0))
        return false;
    return !env_get("SLURM_JOB_ID") || env_get("SLURM_STEP_ID");
}

/* Evidence of a launcher that no back end can talk to is an error: running on would be silently wrong. */
static int refuse_unserved(void)
{
    if (env_get("PMIX_NAMESPACE"))
        return err_set(
            MPI_ERR_OTHER,
            "This program was started by a PMIx launcher (orterun, prun or srun --mpi=pmix), which this "
            "version of Fishplate does not speak yet. Start it with Fishplate's mpiexec, with "
            "mpiexec.hydra or with srun --mpi=pmi2.");
    if (slurm_task_without_server())
        return err_set(
            MPI_ERR_OTHER,
            "This program is a task of srun, but srun offers no PMI server, so that each task would run "
            "as a job of its own. Start it with srun --mpi=pmi2, or with Fishplate's mpiexec inside the "
            "allocation.");
    return 0;
}

int boot_open(struct boot **out)
{
    const struct boot_backend *chosen = NULL;
    for (size_t i = 0; i < COUNT_OF(backends) && !chosen; i++)
        if (backends[i]->detect())
            chosen = backends[i];
    if (chosen == &boot_singleton) {
        int rc = refuse_unserved();
        if (rc)
            return rc;
    }
    return chosen->open(out);
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
    return rc ? rc : b->backend->put(b, b->rank, key, val, len);
}

int boot_put_shared(struct boot *b, const char *key, const void *val, size_t len)
{
    int rc = check_key(key);
    return rc ? rc : b->backend->put(b, BOOT_ANY, key, val, len);
}

int boot_fence(struct boot *b)
{
    return b->backend->fence(b);
}

int boot_get(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len)
{
    int rc = check_key(key);
    if (rc)
        return rc;
    if (rank >= b->size && rank != BOOT_ANY)
        return err_set(MPI_ERR_RANK, "Rank %u is not in this job of %u ranks.", rank, b->size);
    return b->backend->get(b, rank, key, val, len);
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

_Noreturn void boot_abort(struct boot *b, int code, const char *msg)
{
    if (!b || !b->backend->abort(b, code, msg)) {
        const char *host = b ? b->host : "this host";
        fprintf(stderr, "fishplate: Rank %u on %s ended the job with code %d%s%s\n", b ? b->rank : 0, host,
                code, msg ? ": " : ".", msg ? msg : "");
    }
    /* Output printed before MPI_Abort should be seen; a lock held by another thread must not stop the end. */
    if (ftrylockfile(stdout) == 0) {
        fflush(stdout);
        funlockfile(stdout);
    }
    _exit((code & 0xff) || code == 0 ? code & 0xff : 1);
}

static int fill_nodes(struct boot *b, const char *map)
{
    uint32_t *node_of = calloc(b->size, sizeof *node_of);
    b->node_of = node_of;
    if (!node_of)
        return err_set(MPI_ERR_NO_MEM, "No memory for the node map of %u ranks.", b->size);
    b->nnodes = 1;
    if (map && !nodemap_parse(map, b->size, node_of, &b->nnodes))
        return err_set(MPI_ERR_OTHER, "The launcher's node map \"%.200s\" cannot be understood.", map);
    b->node = node_of[b->rank];
    uint32_t *local = calloc(b->size, sizeof *local);
    b->local_ranks = local;
    if (!local)
        return err_set(MPI_ERR_NO_MEM, "No memory for the list of ranks on this node.");
    for (uint32_t r = 0; r < b->size; r++) {
        if (node_of[r] != b->node)
            continue;
        if (r == b->rank)
            b->local_rank = b->nlocal;
        local[b->nlocal++] = r;
    }
    return 0;
}

int boot_layout(struct boot *b, const char *map, const char *job)
{
    int rc = fill_nodes(b, map);
    if (rc)
        return rc;
    char host[300];
    if (gethostname(host, sizeof host - 20) != 0)
        strcpy(host, "unknown");
    host[sizeof host - 20] = '\0';
    if (b->vnode >= 0)
        snprintf(host + strlen(host), 20, "-v%d", b->vnode);
    b->host = strdup(host);
    b->job = strdup(job);
    return b->host && b->job ? 0 : err_set(MPI_ERR_NO_MEM, "No memory for the names of host and job.");
}

void boot_layout_free(struct boot *b)
{
    free((void *)b->node_of);
    free((void *)b->local_ranks);
    free((void *)b->host);
    free((void *)b->job);
}
