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
    /* A rank's process is there; may be NULL. */
    void (*started)(void *ctx, uint32_t rank, pid_t pid);
    /* Could not be started: a sentence, and the exit status that fits. */
    void (*failed)(void *ctx, uint32_t rank, int status, const char *why);
    /* Ended, with waitpid's status; all its PMI bytes were reported before. */
    void (*exited)(void *ctx, uint32_t rank, int status);
    /* Everything written by local_stdin has reached the rank's pipe, or the rank does not read it any more. */
    void (*stdin_empty)(void *ctx, uint32_t rank);
    /* All ranks have ended, all output was reported, no process is left. */
    void (*done)(void *ctx);
};

struct local *local_new(struct loop *l, const struct plan *p, const struct local_events *ev, void *ctx);

/* Starts the ranks one after the other; stops at the first that fails. */
void local_start(struct local *h);

/* Operations that struct host_ops of job/job.h names, hence `void *`: a struct local. */
void local_send_pmi(void *local, uint32_t rank, const char *data, size_t len);

/* Passes bytes to a rank's standard input; no bytes: end of file. */
void local_stdin(void *local, uint32_t rank, const char *data, size_t len);

/* Sends a signal to every process group of the ranks; SIGKILL to all descendants. */
void local_signal(void *local, int sig);

/* True: leave output in the pipes, because its consumer is congested. */
void local_pause(void *local, bool pause);

/* Collects ended processes now; called by the loop as well. */
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
