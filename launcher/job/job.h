/* job.h: state of the job: every rank's status, when the job has failed, how it is ended, and its exit
 * status. Hosts report events here; the code does not know whether a host is local or remote.
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

/* Operations of a host that the job calls; `impl` is the local or remote implementation. */
struct host_ops {
    void (*pmi)(void *impl, uint32_t rank, const char *data, size_t len);
    void (*input)(void *impl, uint32_t rank, const char *data, size_t len);
    void (*signal)(void *impl, int sig);
    void (*pause)(void *impl, bool pause);
    void (*reap)(void *impl); /* reap ended ranks now; may be NULL */
    /* Requests the status pages of the host's ranks; the reply arrives in query_handle_answer() with this
     * number. NULL: the requester is on this host and reads the pages itself. */
    void (*query)(void *impl, uint32_t number);
    /* The rank of the job with identifier `world` died: notifies the ranks of this host. NULL: its ranks read
     * the notices of this host directly. */
    void (*died)(void *impl, uint64_t world, uint32_t rank);
    void (*kill)(void *impl, uint32_t rank); /* ends one rank by SIGKILL */
};

struct job;
struct remote;
struct spawned_job;
struct query_server;

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
    bool aborted;   /* it called MPI_Abort: its own exit is not reported again */
    bool ended;     /* mpiexec killed this rank alone, because others could not reach it (recover.c) */
    bool has_input; /* a piece of standard input was sent and not confirmed */
    long pid;
    int code; /* of an ended rank: the exit status, or 128 plus the signal */
};

struct job {
    struct loop loop;
    const struct options *opt;
    const struct layout *layout;
    struct job_host *hosts; /* [nhosts] in the order of struct hosts */
    uint32_t nhosts;
    struct job_rank *ranks;
    struct output *output;
    struct pmi *pmi;
    struct input input;
    struct remote *remote;        /* NULL: no ranks on other hosts */
    struct query_server *queries; /* NULL: queries are not accepted */
    const char *id;
    uint32_t universe;
    struct spawned_job *spawned; /* jobs that were spawned by this one (spawned.c) */
    unsigned spawned_count;
    void (*on_first_spawn)(
        /* called after a job was spawned: its mpiexec is a child of this process that is not a rank */
        void *ctx);
    void *spawn_ctx;
    bool absent;     /* a rank has ended with status 0 without calling MPI_Init */
    bool failed;     /* the job has failed; `status` is final */
    bool ending;     /* signals have been sent to end it */
    bool user_ended; /* the user ended the job by a signal to mpiexec */
    int status;
    int next_signal; /* next signal of the sequence TERM, KILL; 0: stop waiting */
    uint64_t grace_ms;
    char *failure; /* message about the failure that is still to be printed; NULL: none */
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
        int code;         /* exit status of the first one */
        char *how;        /* sentence on the death of the first one */
        bool spawned;     /* all ranks of the last spawned job that ended had died */
        bool init_failed; /* this is a spawned job that can never finish MPI_Init: its ranks are killed */
    } dead;               /* dead ranks that the job continues without (recover.c) */
    struct {
        struct unreachable_report {
            uint32_t by, rank;
        } * v;
        uint32_t n, room;
        struct timer judge;
    } unreachable; /* reports of ranks that do not answer, with their reporters (recover.c) */
    struct {
        int fd; /* -1: deaths are not recorded */
        struct notice_page *page;
        struct watch
            bell;        /* eventfd that the mpiexecs of this host write to after they have added a notice */
        uint32_t passed; /* notices forwarded so far to other hosts, whose ranks cannot read the file */
    } notices;           /* the file in which deaths are recorded (recover.c) */
};

void job_init(struct job *j, const struct options *o, const struct layout *l, const struct hosts *h,
              const char *id, const char *node_map);

/* Runs until everything has ended and returns the exit status. The hosts must have been started. */
int job_run(struct job *j, int front);

/* Events that hosts report; `ctx` is their struct job_host, as in local_events. */
void job_on_output(void *ctx, uint32_t rank, int stream, const char *data, size_t len);
void job_on_pmi(void *ctx, uint32_t rank, const char *data, size_t len);
void job_on_started(void *ctx, uint32_t rank, pid_t pid);
void job_on_failed(void *ctx, uint32_t rank, int status, const char *why);
void job_on_exited(void *ctx, uint32_t rank, int status);
void job_on_stdin_empty(void *ctx, uint32_t rank);
void job_on_host_done(void *ctx);

/* Finishes the job (a struct job: also called as an event of output.h) if everything has ended. */
void job_finish_if_done(void *job);

/* The host is unreachable, or its connection broke. Its ranks count as dead. */
void job_on_host_lost(struct job_host *h, const char *why);

/* The first failure decides the status and ends the job; later ones are consequences. */
void job_fail(struct job *j, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Appends the ranks with wanted[rank] == value as "rank 3 on host a, ranks 4-7 on host b". */
void job_describe(const struct job *j, const bool *wanted, bool value, char *out, size_t size);

/* The usual cause of this signal: a sentence with a leading blank, or "". */
const char *job_signal_hint(int sig);

/* Prints findings that are known only at the end: ranks that failed after MPI_Finalize, exit statuses. */
void job_report_end(const struct job *j);

#endif
