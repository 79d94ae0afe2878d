/* boot.h: the interface to the launcher of the job (Fishplate's mpiexec, Hydra, srun, orterun, or none):
 * rank, size, nodes, and the exchange of values between ranks. A back end sets the members of `struct
 * boot` and implements put, fence and get; boot.c contains what does not depend on the launcher.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_H
#define FP_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct boot_backend;
struct notice_page;

/* Set by boot_open, and constant until boot_close. */
struct boot {
    uint32_t rank;               /* in the initial world */
    uint32_t size;               /* ranks in the initial world */
    int appnum;                  /* number of the program in `prog1 : prog2`; -1: not reported */
    int universe_size;           /* -1: not reported */
    uint32_t node;               /* index of my node, 0..nnodes-1 */
    uint32_t nnodes;             /* (virtual) nodes in the job */
    const uint32_t *node_of;     /* [size] node index of every rank */
    uint32_t nlocal;             /* ranks on my node, at least 1 */
    uint32_t local_rank;         /* index of my rank in local_ranks */
    const uint32_t *local_ranks; /* [nlocal] world ranks on my node, ascending */
    int vnode;                   /* virtual node number under `mpiexec -vnodes`, else -1 */
    const char *host;            /* host name the library reports; differs between virtual nodes */
    bool several; /* jobs connected with this one may be on other nodes, although this job is on one node */
    bool one_machine;   /* default host of jobs that this one spawns: this machine */
    const char *parent; /* port of the processes that spawned this job (MPI_Comm_spawn); NULL: not spawned */
    const char *job;    /* job id, the same on every rank, unique among running jobs on these hosts */
    const char *launcher; /* "mpiexec", "pmix", "pmi1", "singleton": for messages */
    /* A memfd that the ranks of my node share, of size 0 at the start of the job. -1: another launcher or
     * none; the shared-memory transport then exchanges the name of a memory file through put and get. */
    int node_fd;
    struct notice_page *notices; /* notices of deaths of ranks (notice.h); NULL: a death ends the job */
    const struct boot_backend *backend; /* for src/boot only */
};

/* All functions return 0 or an MPI error class, with a sentence in err_detail() (src/base/err.h). */

/* Detects the launcher and connects to it. *out is set only on success. */
int boot_open(struct boot **out);

/* Publishes `len` bytes under `key` (at most 40 characters of [A-Za-z0-9_.-]) for my rank. Other ranks can
 * read the value after the next fence. Any length and any bytes are allowed. */
int boot_put(struct boot *b, const char *key, const void *val, size_t len);

/* Collective over all ranks of the world. After FISHPLATE_INIT_TIMEOUT seconds, returns an error that
 * names the missing ranks and hosts if the launcher can report them. */
int boot_fence(struct boot *b);

/* Reads what `rank` published under `key` before a fence. Most launchers transfer the value now, not in
 * the fence: read only what is needed. The caller frees *val, which is followed by a zero byte that *len
 * does not count. A missing key is MPI_ERR_OTHER with the key's name in the text. */
int boot_get(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len);

/* Notifies the launcher that this rank has finished, so that its exit is no failure. Does not wait for
 * other ranks. Called last in MPI_Finalize, before boot_close. */
int boot_finalize(struct boot *b);

/* Notifies the launcher that MPI_Init has returned. From here on, a launcher with recovery continues the
 * job when ranks die. */
int boot_report_initialized(struct boot *b);

/* Reports that the rank is unreachable. The launcher ends the rank if it still runs and notifies all ranks
 * of its death. An error if the launcher does not support recovery. */
int boot_report_suspect(struct boot *b, uint32_t rank);

/* One program of MPI_Comm_spawn_multiple, with the keys and values of its info object. */
struct boot_program {
    const char *command;
    char *const *argv; /* without the command, ended by NULL; may be NULL */
    int count;
    const char *const *keys, *const *values;
    int nkeys;
};

#define BOOT_SPAWN_ID 64

/* Requests that the launcher start these programs as a new job, whose boot->parent will be `port`. id: the
 * name for boot_spawn_poll. MPI_ERR_SPAWN if the launcher cannot start processes. Returns before the new
 * processes run. */
int boot_spawn(struct boot *b, const struct boot_program *programs, int n, const char *port,
               char id[BOOT_SPAWN_ID]);

/* Returns 0 while the spawn may still succeed, MPI_ERR_SPAWN with the reason when it has failed. If the
 * launcher cannot be queried, the spawn fails FISHPLATE_INIT_TIMEOUT seconds after `since` (clock_ns). */
int boot_spawn_poll(struct boot *b, const char *id, uint64_t since);

/* The processes of the spawned job `id` have connected to their parents. */
void boot_spawn_connected(struct boot *b, const char *id);

/* Frees b and everything it owns, but does not unmap memory of node_fd. */
void boot_close(struct boot *b);

/* True if all tasks of srun fail in boot_open with this text and this task is not the first: only the first
 * task prints the text. */
bool boot_is_reported_elsewhere(const char *detail);

/* MPI_Abort: reports the exit code and the reason (one sentence, may be NULL) to the launcher, then exits. */
_Noreturn void boot_abort(struct boot *b, int code, const char *msg);

#endif
