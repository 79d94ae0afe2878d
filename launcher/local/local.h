/* local.h: runs the plan of one host: node segments, pipes, processes and their end. mpiexec uses it for its
 * own host, an agent for another one; both receive the same events.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_LOCAL_H
#define FP_LAUNCHER_LOCAL_H

#include "core/loop.h"
#include "plan/plan.h"

struct local;

struct local_events {
    /* Bytes of a rank's standard output (1) or error (2); no bytes: the stream has ended. */
    void (*output)(void *ctx, uint32_t rank, int stream, const char *data, size_t len);
    void (*pmi)(void *ctx, uint32_t rank, const char *data, size_t len);
    /* The process of a rank was created; may be NULL. */
    void (*started)(void *ctx, uint32_t rank, pid_t pid);
    /* A rank could not be started: `why` is a sentence, `status` the exit status of mpiexec. */
    void (*failed)(void *ctx, uint32_t rank, int status, const char *why);
    /* A rank has ended with waitpid's status; all its PMI bytes were reported before. */
    void (*exited)(void *ctx, uint32_t rank, int status);
    /* All bytes passed to local_write_stdin are in the rank's pipe, or the rank has closed it. */
    void (*stdin_empty)(void *ctx, uint32_t rank);
    /* All ranks have ended, all output was reported, no process is left. */
    void (*done)(void *ctx);
};

struct local *local_new(struct loop *l, const struct plan *p, const struct local_events *ev, void *ctx);

/* Starts the ranks one after the other; stops at the first that fails. */
void local_start(struct local *h);

/* Members of struct host_ops (job/job.h); `local` is a struct local. */
void local_send_pmi(void *local, uint32_t rank, const char *data, size_t len);

/* Passes bytes to a rank's standard input; no bytes: end of file. */
void local_write_stdin(void *local, uint32_t rank, const char *data, size_t len);

/* Sends a signal to every process group of the ranks; SIGKILL to all descendants. */
void local_signal(void *local, int sig);

/* True: stop reading the output of ranks, because its consumer is congested. */
void local_pause(void *local, bool pause);

/* Reaps ended processes now; the event loop calls it too. */
void local_reap(void *local);

/* The rank of the job with identifier `world` died, on any host: notifies our ranks if recovery is enabled
 * (plan->recovery). */
void local_record_death(struct local *h, uint64_t world, uint32_t rank);

/* Ends one rank by KILL. */
void local_kill(void *local, uint32_t rank);

/* Descriptor of the notices file; -1: none. */
int local_notices_fd(const struct local *h);

/* A process that is not a rank (the remote shell of an agent) ended. */
void local_set_other_child_handler(struct local *h, void (*fn)(void *ctx, pid_t pid, int status));

#endif
