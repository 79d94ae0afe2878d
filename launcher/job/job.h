/* job.h: the job as a whole: what has happened to every rank, when the job has failed, how it is ended, and
 * its exit status. Hosts report here; nothing here knows whether a host is this machine or another one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_JOB_H
#define FP_LAUNCHER_JOB_H

#include "plan/hosts.h"
#include "job/input.h"
#include "core/loop.h"
#include "options/options.h"
#include "job/output.h"
#include "pmi/pmi.h"

/* What the job asks of a host; `impl` is whatever registered itself. */
struct host_ops {
    void (*pmi)(void *impl, uint32_t rank, const char *data, size_t len);
    void (*input)(void *impl, uint32_t rank, const char *data, size_t len);
    void (*signal)(void *impl, int sig);
    void (*pause)(void *impl, bool pause);
    void (*reap)(void *impl); /* look for ended ranks now; may be NULL */
    /* Requests the pages of the host's ranks; query_answered() returns the number `question`. NULL: the requester is on this host
     * and reads the pages itself. */
    void (*query)(void *impl, uint32_t question);
    /* That rank of that job (notice_world) died: tells its ranks, which go on. NULL: they see the notices of this host. */
    void (*died)(void *impl, uint64_t world, uint32_t rank);
    void (*kill)(void *impl, uint32_t rank); /* that rank alone */
};

struct job;
struct remote;
struct spawned_job;
struct query;

struct job_host {
    struct job *job;
    const char *name;
    const struct host_ops *ops;
    void *impl;
    uint32_t nranks;
    bool done;
};

enum rank_state { RANK_PENDING, RANK_RUNNING, RANK_ENDED };

struct job_rank {
    enum rank_state state;
    bool aborted; /* it asked for the end of the job, so its own is no news */
    bool ended;   /* alone, by mpiexec: it could not be reached (recover.c) */
    long pid;
    int code; /* once it has ended: its exit status, or 128 and the signal */
};

struct job {
    struct loop loop;
    const struct options *opt;
    const struct layout *layout;
    struct job_host *hosts; /* as in struct hosts */
    uint32_t nhosts;
    struct job_rank *ranks;
    struct output *output;
    struct pmi *pmi;
    struct input input;
    struct remote *remote; /* NULL: all hosts are this one */
    struct query *queries; /* NULL likewise */
    const char *id;
    uint32_t universe;
    struct spawned_job *spawned; /* jobs that were spawned by this one (spawned.c) */
    unsigned spawned_count;
    void (*on_first_spawn)(void *ctx); /* before the first of them can end: whose children they are */
    void *spawn_ctx;
    bool absent;     /* a rank has ended well without MPI_Init */
    bool failed;     /* status is decided */
    bool ending;     /* signals have been sent to end it */
    bool user_ended; /* by a signal to mpiexec */
    int status;
    int next_signal; /* of the way TERM, KILL, give up */
    uint64_t grace_ms;
    char *failure; /* why the job fails; NULL: it does not, or it was reported */
    struct timer escalate, deadline, fence, aborting, report;
    struct {
        bool pending;
        uint32_t rank;
        int code;
        char *msg;
    } abort;
    struct {
        bool *who; /* [size]; NULL: none */
        uint32_t n, first;
        int code;
    } late; /* ranks that failed after MPI_Finalize */
    struct {
        bool *who; /* [size]; NULL: none */
        uint32_t n;
        int code;     /* of the first one */
        char *how;    /* ... in a sentence */
        bool spawned; /* nobody was left of the last spawned job that ended */
        bool unborn;  /* a spawned job that can never start: its ranks are to be killed */
    } dead;           /* ranks that the others go on without (recover.c) */
    struct {
        struct accusation {
            uint32_t by, rank;
        } * v;
        uint32_t n, room;
        struct timer judge;
    } accused; /* who says that who does not answer (recover.c) */
    struct {
        int fd; /* -1: nowhere */
        struct notice_page *page;
        struct watch bell; /* rung by the mpiexecs of this host that write into the page */
        uint32_t passed;   /* so many were passed on to other hosts, whose ranks do not see it */
    } notices;             /* where deaths are told (recover.c) */
};

void job_init(struct job *j, const struct options *o, const struct layout *l, const struct hosts *h,
              const char *id, const char *node_map);

/* Runs until everything has ended; the exit status. Hosts were started before. */
int job_run(struct job *j, int front);

/* What hosts report; `ctx` is their struct job_host, as local_events has it. */
void job_on_output(void *ctx, uint32_t rank, int stream, const char *data, size_t len);
void job_on_pmi(void *ctx, uint32_t rank, const char *data, size_t len);
void job_on_started(void *ctx, uint32_t rank, pid_t pid);
void job_on_failed(void *ctx, uint32_t rank, int status, const char *why);
void job_on_exited(void *ctx, uint32_t rank, int status);
void job_on_stdin_empty(void *ctx, uint32_t rank);
void job_on_done(void *ctx);

/* The end, if everything has ended. */
void job_finish_if_done(struct job *j);

/* The host cannot be reached, or no longer. Its ranks are gone. */
void job_on_lost(struct job_host *h, const char *why);

/* The first failure decides the status and ends the job; later ones are consequences. */
void job_fail(struct job *j, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* "rank 3 on host a, ranks 4-7 on host b": those for which wanted[rank] == value. */
void job_describe(const struct job *j, const bool *wanted, bool value, char *out, size_t size);

/* What often causes that signal: a sentence with a blank before it, or nothing. */
const char *job_signal_hint(int sig);

/* What is known only at the end: ranks that failed after MPI_Finalize, exit statuses. */
void job_report_end(const struct job *j);

#endif
