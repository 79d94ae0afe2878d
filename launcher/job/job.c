/* job.c: job policy: decides how the end of a rank affects the job, ends the other ranks, and enforces time
 * limits. All input arrives as events; nothing here blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "job/job.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "job/spawned.h"
#include "local/guard.h"
#include "job/recover.h"
#include "job/diagnose.h"

/* Delay between TERM and KILL after a failure, so that the job ends within a second. */
#define FAIL_GRACE_MS 400
/* Delay before the next signal if the user ended the job: ranks may write a checkpoint. */
#define USER_GRACE_MS 3000
/* Upper limit of the delay by which the message about a failure waits for output of ranks on other hosts. */
#define REPORT_MS 1000
#define OUTPUT_MS 500 /* time limit for writing queued output to a slow reader */
/* Time limit after KILL: a host that does not respond must not block mpiexec. */
#define GIVE_UP_MS 5000

static uint32_t job_count_running(const struct job *j)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < j->layout->size; r++)
        n += j->ranks[r].state == RANK_RUNNING;
    return n;
}

/* The number of running ranks that called MPI_Abort. */
static uint32_t job_count_aborting(const struct job *j)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < j->layout->size; r++)
        n += j->ranks[r].state == RANK_RUNNING && j->ranks[r].aborted;
    return n;
}

static const char *host_name(const struct job *j, uint32_t rank)
{
    return j->hosts[j->layout->host_of[rank]].name;
}

static void job_signal_hosts(struct job *j, int sig)
{
    for (uint32_t i = 0; i < j->nhosts; i++)
        if (j->hosts[i].ops && !j->hosts[i].done)
            j->hosts[i].ops->signal(j->hosts[i].impl, sig);
    spawned_signal(j, sig);
}

void job_finish_if_done(void *job)
{
    struct job *j = job;
    for (uint32_t i = 0; i < j->nhosts; i++)
        if (!j->hosts[i].done)
            return;
    if (output_idle(j->output) && spawned_are_idle(j))
        j->loop.stop = true;
}

/* Sends the next signal of the sequence TERM, KILL; after KILL stops waiting for hosts. */
static void job_on_escalate(void *ctx)
{
    struct job *j = ctx;
    int sig = j->next_signal;
    if (sig == 0) {
        j->loop.stop = true;
        return;
    }
    j->next_signal = sig == SIGTERM ? SIGKILL : 0;
    loop_set_timer(&j->loop, &j->escalate, sig == SIGTERM ? j->grace_ms : GIVE_UP_MS);
    job_signal_hosts(j, sig);
}

static void end_job(struct job *j, int first, uint64_t grace_ms)
{
    /* gdb prints a traceback of its own Python code when SIGTERM interrupts it. */
    if (first == SIGTERM && j->opt->debug == DEBUG_GDB)
        first = SIGKILL;
    j->ending = true;
    j->grace_ms = grace_ms;
    j->next_signal = first == SIGKILL ? 0 : first == SIGTERM ? SIGKILL : SIGTERM;
    loop_set_timer(&j->loop, &j->escalate, first == SIGKILL ? GIVE_UP_MS : grace_ms);
    job_signal_hosts(j, first);
    /* A host that never started has no ranks to wait for. */
    for (uint32_t i = 0; i < j->nhosts; i++)
        if (!j->hosts[i].ops)
            j->hosts[i].done = true;
    job_finish_if_done(j);
}

static void report_failure(void *ctx)
{
    struct job *j = ctx;
    if (!j->failure)
        return;
    output_sync(j->output, OUTPUT_MS);
    message_print("%s", j->failure);
    free(j->failure);
    j->failure = NULL;
}

/* Prints `text` after the output of the ranks, and frees it. */
static void schedule_failure_report(struct job *j, char *text)
{
    j->failure = text;
    loop_set_timer(&j->loop, &j->report, REPORT_MS);
}

void job_fail(struct job *j, int status, const char *fmt, ...)
{
    char text[6000];
    if (j->failed)
        return;
    j->failed = true;
    j->status = j->status ? j->status : status;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    uint32_t others = job_count_running(j) - job_count_aborting(j);
    if (j->opt->report_fd > 0 && pmi_inited_count(j->pmi) == 0 && spawned_report_failed(j->opt, text))
        ; /* the parent job reports the failure or continues */
    else if (others && !j->ending)
        schedule_failure_report(j, xstrf("%s The other %s ended.", text,
                                         others == 1 ? "running rank was" : "running ranks were"));
    else
        schedule_failure_report(j, xstrdup(text));
    if (!j->ending)
        end_job(j, SIGTERM, FAIL_GRACE_MS);
}

void job_on_output(void *ctx, uint32_t rank, int stream, const char *data, size_t len)
{
    struct job_host *h = ctx;
    output_write(h->job->output, rank, stream, data, len);
}

void job_on_pmi(void *ctx, uint32_t rank, const char *data, size_t len)
{
    struct job_host *h = ctx;
    pmi_input(h->job->pmi, rank, data, len);
}

void job_on_started(void *ctx, uint32_t rank, pid_t pid)
{
    struct job_host *h = ctx;
    h->job->ranks[rank].state = RANK_RUNNING;
    h->job->ranks[rank].pid = pid;
}

void job_on_failed(void *ctx, uint32_t rank, int status, const char *why)
{
    struct job_host *h = ctx;
    job_fail(h->job, status, "Rank %u could not be started on host %s: %s.", rank, h->name, why);
}

/* Fails the job if a rank that ended is missing in an open PMI barrier, which would never complete. */
static void check_barrier(struct job *j, uint32_t rank)
{
    const bool *arrived = pmi_get_waiting(j->pmi);
    if (arrived && !arrived[rank])
        job_fail(j, 1,
                 "Rank %u on host %s ended without taking part in MPI_Init, where other ranks wait for it.",
                 rank, host_name(j, rank));
}

/* Fails the job if a rank ended without MPI_Init while others are in MPI. On one node the ranks
 * synchronise in shared memory without a PMI barrier, and would wait for it. */
static void check_ended_without_init(struct job *j, uint32_t rank)
{
    if (!pmi_inited(j->pmi, rank) && pmi_active_count(j->pmi) > 0)
        job_fail(j, 1, "Rank %u on host %s ended without calling MPI_Init, where other ranks wait for it.",
                 rank, host_name(j, rank));
}

/* Returns `recovered`, the decision of recover.c. Ends a spawned job that can never finish MPI_Init,
 * without a message. */
static bool job_can_continue(struct job *j, bool recovered)
{
    if (j->dead.init_failed && !j->ending)
        end_job(j, SIGKILL, 0);
    return recovered;
}

/* A rank failed: ends the job unless recovery is enabled. Frees the text. */
static void job_handle_rank_failure(struct job *j, uint32_t rank, int status, char *text)
{
    if (job_can_continue(j, recover_rank_death(j, rank, status, text))) {
        free(text);
        return;
    }
    if (j->opt->no_cleanup && job_count_running(j) > 0) {
        message_print("%s The others go on (-disable-auto-cleanup).", text);
        j->status = j->status ? j->status : status;
    } else {
        job_fail(j, status, "%s", text);
    }
    free(text);
}

static void job_handle_signal_death(struct job *j, uint32_t rank, int sig)
{
    const char *name = sigabbrev_np(sig);
    char *text = xstrf("Rank %u on host %s (process %ld) was killed by signal %d (SIG%s, %s).%s", rank,
                       host_name(j, rank), j->ranks[rank].pid, sig, name ? name : "?", strsignal(sig),
                       j->ranks[rank].ended ? " mpiexec sent the signal: others could not reach it."
                                            : job_signal_hint(sig));
    if (!job_can_continue(j, recover_rank_death(j, rank, 128 + sig, text)))
        job_fail(j, 128 + sig, "%s", text);
    free(text);
}

static void report_abort(struct job *j)
{
    int code = j->abort.code;
    uint32_t rank = j->abort.rank;
    const char *msg = j->abort.msg;
    int status = (code & 0xff) || code == 0 ? code & 0xff : 1;
    j->abort.pending = false;
    loop_cancel_timer(&j->loop, &j->aborting);
    if (*msg)
        job_fail(j, status, "Rank %u on host %s ended the job with code %d: %s%s", rank, host_name(j, rank),
                 code, msg, strchr(".!?\n", msg[strlen(msg) - 1]) ? "" : ".");
    else
        job_fail(j, status, "Rank %u on host %s called MPI_Abort with code %d.", rank, host_name(j, rank),
                 code);
}

/* Records a failure after MPI_Finalize for one message at the end: often all ranks fail this way. */
static void record_failure_after_finalize(struct job *j, uint32_t rank, int code)
{
    if (!j->late.who)
        j->late.who = xcalloc(j->layout->size, sizeof(*j->late.who));
    if (j->late.n++ == 0) {
        j->late.first = rank;
        j->late.code = code;
    }
    j->late.who[rank] = true;
}

void job_on_exited(void *ctx, uint32_t rank, int status)
{
    struct job_host *h = ctx;
    struct job *j = h->job;
    bool inited = pmi_inited(j->pmi, rank), finalized = pmi_finalized(j->pmi, rank);
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    j->ranks[rank].state = RANK_ENDED;
    j->ranks[rank].code = code;
    if (j->abort.pending && j->ranks[rank].aborted) {
        report_abort(j);
    } else if (j->ending) {
        /* Exit statuses after a forced end carry no information, unless the user ended the job. */
        if (j->user_ended && code && !j->status)
            j->status = code;
    } else if (finalized) {
        recover_rank_departed(j, rank);
        if (code && !j->status)
            j->status = code;
        if (WIFSIGNALED(status))
            message_print("Rank %u on host %s was killed by signal %d (%s) after MPI_Finalize.", rank,
                          h->name, WTERMSIG(status), strsignal(WTERMSIG(status)));
        else if (code)
            record_failure_after_finalize(j, rank, code);
    } else if (WIFSIGNALED(status)) {
        job_handle_signal_death(j, rank, WTERMSIG(status));
    } else if (code) {
        job_handle_rank_failure(j, rank, code,
                                xstrf("Rank %u on host %s (process %ld) exited with status %d%s.", rank,
                                      h->name, j->ranks[rank].pid, code,
                                      inited ? " before calling MPI_Finalize" : ""));
    } else if (inited) {
        job_handle_rank_failure(j, rank, 1,
                                xstrf("Rank %u on host %s (process %ld) exited without calling MPI_Finalize.",
                                      rank, h->name, j->ranks[rank].pid));
    } else {
        j->absent = true;
        check_barrier(j, rank);
        check_ended_without_init(j, rank);
    }
}

/* A rank that closes its standard input or ends without a piece reports too. */
void job_on_stdin_empty(void *ctx, uint32_t rank)
{
    struct job_host *h = ctx;
    if (!h->job->ranks[rank].has_input)
        return;
    h->job->ranks[rank].has_input = false;
    input_confirm_piece(&h->job->input);
}

/* Counts pieces of standard input on their way to the host's ranks as confirmed: nobody will confirm them,
 * and ranks of other hosts wait for the next piece. */
static void job_end_host(struct job_host *h)
{
    struct job *j = h->job;
    h->done = true;
    for (uint32_t r = 0; r < j->layout->size; r++)
        if (&j->hosts[j->layout->host_of[r]] == h)
            job_on_stdin_empty(h, r);
}

void job_on_host_done(void *ctx)
{
    struct job_host *h = ctx;
    job_end_host(h);
    job_finish_if_done(h->job);
}

void job_on_host_lost(struct job_host *h, const char *why)
{
    struct job *j = h->job;
    for (uint32_t r = 0; r < j->layout->size; r++)
        if (&j->hosts[j->layout->host_of[r]] == h)
            j->ranks[r].state = RANK_ENDED;
    job_end_host(h);
    if (job_can_continue(j, recover_from_lost(j, h, why))) {
        job_finish_if_done(j);
        return;
    }
    job_fail(j, 1, "Host %s, with %u rank%s, was lost: %s.", h->name, h->nranks, h->nranks == 1 ? "" : "s",
             why);
    job_finish_if_done(j);
}

/* Handlers of PMI events. */

static void job_on_pmi_reply(void *ctx, uint32_t rank, const char *data, size_t len)
{
    struct job *j = ctx;
    struct job_host *h = &j->hosts[j->layout->host_of[rank]];
    if (h->ops && !h->done)
        h->ops->pmi(h->impl, rank, data, len);
}

static void job_on_rank_initialized(void *ctx, uint32_t rank)
{
    struct job *j = ctx;
    (void)rank;
    if (pmi_inited_count(j->pmi) == 1)
        spawned_report_inited(j->opt);
    if (j->absent && !j->failed)
        for (uint32_t r = 0; r < j->layout->size; r++)
            if (j->ranks[r].state == RANK_ENDED)
                check_ended_without_init(j, r);
}

/* Defers the report of an MPI_Abort until ended ranks are reaped: if another rank was killed, its death is
 * the cause. */
static void job_on_aborted(void *ctx, uint32_t rank, int code, const char *msg)
{
    struct job *j = ctx;
    j->ranks[rank].aborted = true;
    if (j->failed || j->abort.pending)
        return;
    j->abort.pending = true;
    j->abort.rank = rank;
    j->abort.code = code;
    j->abort.msg = xstrdup(msg);
    loop_set_timer(&j->loop, &j->aborting, 0);
}

static void job_on_abort_timer(void *ctx)
{
    struct job *j = ctx;
    for (uint32_t i = 0; i < j->nhosts; i++)
        if (j->hosts[i].ops && j->hosts[i].ops->reap && !j->hosts[i].done)
            j->hosts[i].ops->reap(j->hosts[i].impl);
    if (j->abort.pending)
        report_abort(j);
}

static void job_on_bad_request(void *ctx, uint32_t rank, const char *why)
{
    struct job *j = ctx;
    job_fail(j, 1, "Rank %u on host %s sent mpiexec %s.", rank, host_name(j, rank), why);
}

static void job_on_fence_late(void *ctx)
{
    struct job *j = ctx;
    char who[2048];
    const bool *arrived = pmi_get_waiting(j->pmi);
    if (!arrived)
        return;
    job_describe(j, arrived, false, who, sizeof(who));
    message_print("Start-up has waited %ld second%s (FISHPLATE_INIT_TIMEOUT) for %s.", j->opt->init_timeout,
                  j->opt->init_timeout == 1 ? "" : "s", who);
}

static void job_on_barrier(void *ctx, bool open)
{
    struct job *j = ctx;
    if (!open) {
        loop_cancel_timer(&j->loop, &j->fence);
        return;
    }
    loop_set_timer(&j->loop, &j->fence, (uint64_t)j->opt->init_timeout * 1000);
    for (uint32_t r = 0; r < j->layout->size; r++)
        if (j->ranks[r].state == RANK_ENDED)
            check_barrier(j, r);
}

static void job_on_describe(void *ctx, const bool *arrived, char *out, size_t size)
{
    job_describe(ctx, arrived, false, out, size);
}

/* Signals that the user sends to mpiexec. */

static void job_on_signal(void *ctx, int sig)
{
    struct job *j = ctx;
    switch (sig) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
        if (j->user_ended) {
            end_job(j, SIGKILL, 0); /* second request: kill at once */
            break;
        }
        if (j->ending)
            break;
        j->user_ended = true;
        if (j->opt->report_fd <= 0) /* otherwise the parent mpiexec has already printed it */
            message_print("Received SIG%s; %u running rank%s will be ended.", sigabbrev_np(sig),
                          job_count_running(j), job_count_running(j) == 1 ? "" : "s");
        end_job(j, sig, USER_GRACE_MS);
        break;
    case SIGQUIT: /* print what the ranks wait for; the job continues */
        if (!j->ending)
            why_print(j, NULL);
        break;
    case SIGTSTP:
        input_set_allowed(&j->input, false);
        job_signal_hosts(j, SIGSTOP); /* TSTP has no effect on a session without a terminal */
        break;
    default:
        job_signal_hosts(j, sig);
    }
}

static void job_on_foreground(void *ctx, bool yes)
{
    struct job *j = ctx;
    input_set_allowed(&j->input, yes);
}

/* Ends everything at once because the front process was killed; the worker ends all descendants at its
 * exit. */
static void job_on_front_died(void *ctx)
{
    struct job *j = ctx;
    if (j->opt->report_fd <= 0) /* else another mpiexec ended it */
        message_print(
            "The first process of mpiexec was killed (by kill -9, or by the kernel when memory ran out). All "
            "ranks "
            "were ended.");
    j->loop.stop = true;
}

static void end_job_after_report(struct job *j)
{
    if (!j->ending)
        end_job(j, SIGTERM, FAIL_GRACE_MS);
}

static void job_on_deadline(void *ctx)
{
    struct job *j = ctx;
    bool *alive = xcalloc(j->layout->size, sizeof(*alive));
    char who[2048];
    uint32_t n = 0;
    for (uint32_t r = 0; r < j->layout->size; r++)
        n += alive[r] = j->ranks[r].state != RANK_ENDED;
    job_describe(j, alive, true, who, sizeof(who));
    free(alive);
    if (j->failed)
        return;
    message_print("The job did not end within %ld second%s (-timeout). Still running: %s. %s ended.",
                  j->opt->timeout, j->opt->timeout == 1 ? "" : "s", who, n == 1 ? "It was" : "They were");
    j->failed = true;
    j->status = STATUS_TIMEOUT;
    why_print(j, end_job_after_report);
}

/* Output of the ranks. */

static const char *output_host_name(void *ctx, uint32_t rank)
{
    return host_name(ctx, rank);
}

static void job_on_pause(void *ctx, bool pause)
{
    struct job *j = ctx;
    for (uint32_t i = 0; i < j->nhosts; i++)
        if (j->hosts[i].ops && !j->hosts[i].done)
            j->hosts[i].ops->pause(j->hosts[i].impl, pause);
}

/* Ends the job with the status of SIGPIPE and no message, because the reader of standard output is gone. */
static void job_on_output_closed(void *ctx)
{
    struct job *j = ctx;
    if (j->opt->keep_running || j->failed)
        return;
    j->failed = true;
    j->status = j->status ? j->status : 128 + SIGPIPE;
    if (!j->ending)
        end_job(j, SIGTERM, FAIL_GRACE_MS);
}

static void job_on_output_failed(void *ctx, const char *name, int error)
{
    struct job *j = ctx;
    message_print("Output of the ranks is lost: %s cannot be written (%s).%s", name, strerror(error),
                  j->ending ? "" : " The job goes on; it will not end with status 0.");
    j->status = j->status ? j->status : 1;
}

void job_init(struct job *j, const struct options *o, const struct layout *l, const struct hosts *h,
              const char *id, const char *node_map)
{
    static const struct pmi_events pmi_events = {
        job_on_pmi_reply, job_on_rank_initialized, job_on_aborted,  job_on_bad_request,    job_on_barrier,
        job_on_describe,  spawned_start,           spawned_failure, recover_on_unreachable};
    *j = (struct job){.opt = o, .layout = l, .nhosts = h->n, .id = id};
    loop_init(&j->loop);
    j->hosts = xcalloc(h->n, sizeof(*j->hosts));
    for (uint32_t i = 0; i < h->n; i++) {
        j->hosts[i] = (struct job_host){.job = j, .name = h->v[i].name, .done = true};
    }
    for (uint32_t r = 0; r < l->size; r++) {
        j->hosts[l->host_of[r]].nranks++;
        j->hosts[l->host_of[r]].done = false;
    }
    j->ranks = xcalloc(l->size, sizeof(*j->ranks));
    struct output_options out = {o->prefix,
                                 o->out_pattern,
                                 o->err_pattern,
                                 l->size,
                                 output_host_name,
                                 job_on_pause,
                                 job_finish_if_done,
                                 job_on_output_closed,
                                 job_on_output_failed,
                                 j};
    j->output = output_new(&j->loop, &out);
    j->universe = hosts_universe(o, h, l->size);
    j->pmi = pmi_new(l->size, j->universe, id, node_map, l->app_of, &pmi_events, j);
    for (unsigned i = 0; i < o->preputs.n; i++)
        pmi_put_initial(j->pmi, o->preputs.v[i]);
    j->escalate = (struct timer){.fn = job_on_escalate, .ctx = j};
    j->deadline = (struct timer){.fn = job_on_deadline, .ctx = j};
    j->fence = (struct timer){.fn = job_on_fence_late, .ctx = j};
    j->aborting = (struct timer){.fn = job_on_abort_timer, .ctx = j};
    j->report = (struct timer){.fn = report_failure, .ctx = j};
}

int job_run(struct job *j, int front)
{
    static const struct guard_events guard_events = {job_on_signal, job_on_foreground, job_on_front_died};
    guard_watch_signals(&j->loop, front, &guard_events, j);
    if (j->opt->timeout)
        loop_set_timer(&j->loop, &j->deadline, (uint64_t)j->opt->timeout * 1000);
    if (j->opt->hang_after)
        why_watch_for_hang(j, j->opt->hang_after);
    loop_run(&j->loop);
    output_close(j->output, j->ending ? OUTPUT_MS : 60000);
    report_failure(j);
    recover_end_job(j);
    job_report_end(j);
    return j->status;
}
