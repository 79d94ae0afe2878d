/* why.c: `fishplate why`: takes two samples of a job and reports which rank waits for which.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../command.h"
#include "cli/options.h"

static const char usage[] =
    "Usage: fishplate why [options] [JOB]\n"
    "\n"
    "Explains why a running job makes no progress: which rank waits for which, in which call, for which "
    "message, since when and at which line. It finds deadlocks, collective calls that some ranks have not "
    "made or that do not match, ranks that are stopped or compute while others wait, and messages that "
    "nearly match.\n"
    "\n"
    "JOB is the process id of mpiexec or of a rank, or (part of) a job's name from `fishplate ps`; it may be "
    "left out when one job runs. The ranks need not help: they may hang, compute, or be stopped.\n"
    "\n"
    "Options:\n";

static const char after[] =
    "\n"
    "Examples:\n"
    "  fishplate why\n"
    "  fishplate why 12345                    the job whose mpiexec has this process id\n"
    "  fishplate why --html why.html 12345\n"
    "\n"
    "Exit status: 0 the job does not hang; 1 it hangs; 2 there is no answer (no such job, no memory); 3 with "
    "--hang-after: the job ended before it hung. mpiexec prints the same report on SIGQUIT, when its "
    "-timeout is over, and with -hang-after.\n";

struct why_options {
    const char *job, *html;
    bool json;
    bool if_any; /* print nothing if there is no such job: for mpiexec, whose programs may not use MPI */
    double apart, hang_after;
};

static const struct cli_option options[] = {
    CLI_FLAG_LINE("--json", struct why_options, json, "print the answer as JSON, for programs"),
    CLI_TEXT_LINE("--html", "FILE", struct why_options, html,
                  "write a page with a drawing of who waits for whom"),
    CLI_REAL_LINE("--apart", "SECONDS", struct why_options, apart, 0, 1e7,
                  "time between the two samples of the job (default 0.25); a wait counts when both have it"),
    CLI_REAL_LINE("--hang-after", "S", struct why_options, hang_after, 0, 1e7,
                  "wait until the job has made no progress for S seconds, then answer"),
    CLI_FLAG_LINE("--if-any", struct why_options, if_any, NULL),
    CLI_END};

static bool read_job(void *question, const char *word)
{
    ((struct why_options *)question)->job = word;
    return true;
}

static void sleep_seconds(double seconds)
{
    const struct timespec t = {.tv_sec = (time_t)seconds,
                               .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static struct snapshot *why_choose_job(struct snapshots *l, const char *job, const char **why)
{
    const int error = snapshots_take_all(l);
    if (error) {
        *why = strerror(error);
        return NULL;
    }
    return snapshots_choose(l, job, why);
}

/* True if the wait changed between the samples, or data arrived while an awaited message is in transit. */
static bool has_wait_progressed(const struct page_wait *before, const struct page_wait *now)
{
    for (uint32_t i = 0; i < now->nitems; i++)
        if (now->items[i].step == PAGE_MOVING && now->stirs != before->stirs)
            return true;
    return before->nitems != now->nitems ||
           memcmp(before->items, now->items, now->nitems * sizeof(now->items[0])) != 0;
}

/* True if any rank made progress between the samples. Ranks that compute count as making progress. */
static bool has_job_progressed(const struct snapshot *before, const struct snapshot *now)
{
    for (uint32_t r = 0; r < now->ranks; r++) {
        const struct sample *a = before->samples[r], *b = now->samples[r];
        if (!a != !b)
            return true;
        if (!b)
            continue;
        if (b->page.last_id != a->page.last_id || b->page.messages != a->page.messages ||
            b->page.waits[0].id == 0 || has_wait_progressed(&a->page.waits[0], &b->page.waits[0]))
            return true;
    }
    return false;
}

/* Waits until the job makes no progress for `hang_after` seconds. Returns 0; 3: the job ended. */
static int wait_for_hang(const struct why_options *q)
{
    const double step = q->hang_after / 4;
    int quiet = 0;
    bool seen = false;
    while (quiet < 4) {
        struct snapshots a, b;
        const char *why;
        struct snapshot *before = why_choose_job(&a, q->job, &why);
        sleep_seconds(step);
        if (!before && !seen) { /* the job has not started yet */
            snapshots_free(&a);
            continue;
        }
        if (!before) {
            snapshots_free(&a);
            return 3;
        }
        seen = true;
        struct snapshot *now = why_choose_job(&b, before->job, &why);
        const bool gone = now == NULL;
        quiet = gone || now->ranks != before->ranks || has_job_progressed(before, now) ? 0 : quiet + 1;
        snapshots_free(&a);
        snapshots_free(&b);
        if (gone)
            return 3;
    }
    return 0;
}

static int why_print_diagnosis(const struct why_options *q, const struct snapshot *before,
                               const struct snapshot *now)
{
    struct diagnosis a;
    int status = 2;
    if (diagnosis_make(before, now, q->apart, &a)) {
        status = diagnosis_hangs(&a);
        if (q->json)
            diagnosis_json(stdout, &a);
        else
            diagnosis_text(stdout, &a);
        if (q->html && !command_write_file("fishplate why", q->html, diagnosis_html, &a))
            status = 2;
    } else {
        fprintf(stderr, "fishplate why: out of memory.\n");
    }
    diagnosis_free(&a);
    return status;
}

static int why_diagnose(const struct why_options *q)
{
    struct snapshots first = {0}, second = {0};
    const char *why = "";
    int status = 2;
    struct snapshot *before = why_choose_job(&first, q->job, &why), *now = NULL;
    if (before) {
        sleep_seconds(q->apart);
        now = why_choose_job(&second, before->job, &why);
    }
    if (!now && !q->if_any)
        fprintf(stderr, "fishplate why: %s.\n", why);
    else if (!now)
        status = 0;
    else if (now->ranks != before->ranks)
        fprintf(stderr, "fishplate why: two samples of this job disagree about its number of ranks; run the "
                        "command again.\n");
    else
        status = why_print_diagnosis(q, before, now);
    snapshots_free(&first);
    snapshots_free(&second);
    return status;
}

int command_why(int argc, char **argv)
{
    struct why_options q = {.apart = 0.25};
    const struct cli c = {
        .program = "fishplate why", .options = options, .operand = read_job, .operands = "a job"};
    const int next = cli_parse(&c, argc, argv, &q);
    if (next < 0)
        return command_usage(next, usage, options, after);
    const int ended = q.hang_after > 0 ? wait_for_hang(&q) : 0;
    return ended ? ended : why_diagnose(&q);
}
