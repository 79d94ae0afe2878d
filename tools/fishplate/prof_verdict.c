/* prof_verdict.c: derives findings as sentences, the most expensive first. A finding must cost at least a
 * twentieth of the recorded time, so that a healthy program has none.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "prof.h"

static const double relevant_share = 0.05; /* smallest cost of a finding, as a share of the recorded time */
/* smallest share of the waiting for which one late rank is named */
static const double mostly_one_rank = 0.5;
static const double shortest = 1e-3; /* seconds; shorter waits belong to the start of the job */

static bool verdict_is_relevant(double seconds, double recorded)
{
    return seconds >= shortest && seconds >= relevant_share * recorded;
}

static void verdict_add(struct prof_verdict *v, double seconds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void verdict_add(struct prof_verdict *v, double seconds, const char *format, ...)
{
    va_list args;
    if (v->n == PROF_FINDINGS)
        return;
    struct prof_finding *f = &v->list[v->n++];
    f->seconds = seconds;
    va_start(args, format);
    vsnprintf(f->text, sizeof(f->text), format, args);
    va_end(args);
}

/* Returns the collective function in which ranks wait longest for others. */
static const struct prof_function *find_longest_wait(const struct prof_job *job)
{
    const struct prof_function *worst = NULL;
    for (size_t i = 0; i < job->nfunctions; i++)
        if (job->functions[i].split && (!worst || job->functions[i].waiting > worst->waiting))
            worst = &job->functions[i];
    return worst;
}

/* Reports ranks that share processors: their times include the turns of other ranks. */
static void judge_shared_processors(const struct prof_job *job, double recorded, struct prof_verdict *v)
{
    for (size_t i = 0; i < job->nmachines; i++) {
        const struct prof_machine *m = &job->machines[i];
        if (m->ranks <= m->processors || !verdict_is_relevant(job->mpi / job->nrecords, recorded))
            continue;
        verdict_add(v, job->mpi / job->nrecords,
                    "%d ranks share the %d processor%s of %s and take turns: a rank that waits may only wait "
                    "for its turn. Start at "
                    "most %d rank%s there, or use more hosts, before you judge the findings below.",
                    m->ranks, m->processors, m->processors == 1 ? "" : "s", m->host, m->processors,
                    m->processors == 1 ? "" : "s");
        return;
    }
}

static void judge_late_rank(const struct prof_job *job, double recorded, struct prof_verdict *v)
{
    const struct prof_function *f = find_longest_wait(job);
    char wait[PROF_TEXT], site[192];
    if (!f || !verdict_is_relevant(job->waiting, recorded))
        return;
    prof_format_seconds(f->waiting * job->nrecords / (job->nrecords - 1), wait);
    if (f->late_share >= mostly_one_rank)
        verdict_add(v, job->waiting,
                    "Rank %d is late: %d rank%s wait%s %s for it in %s%s. Look at what it does between its "
                    "calls: more "
                    "work, a slower "
                    "core, or file access.",
                    f->late, job->nrecords - 1, job->nrecords == 2 ? "" : "s", job->nrecords == 2 ? "s" : "",
                    wait, f->name, prof_find_function_site(job, f, site));
    else
        verdict_add(
            v, job->waiting,
            "Ranks wait for each other, %s a rank in %s%s, and it is not always the same one that is late: "
            "work is spread "
            "unevenly from step to step.",
            wait, f->name, prof_find_function_site(job, f, site));
}

/* Reports time in calls that wait for messages. */
static void judge_message_waits(const struct prof_job *job, double recorded, struct prof_verdict *v)
{
    const struct prof_function *worst = NULL;
    double all = 0;
    char mean[PROF_TEXT], most[PROF_TEXT], site[192];
    for (size_t i = 0; i < job->nfunctions; i++) {
        const struct prof_function *f = &job->functions[i];
        if (f->kind != PROF_WAIT && strcmp(f->name, "MPI_Recv") != 0 && strcmp(f->name, "MPI_Sendrecv") != 0)
            continue;
        all += f->mean;
        if (!worst || f->mean > worst->mean)
            worst = f;
    }
    if (!worst || !verdict_is_relevant(all, recorded))
        return;
    verdict_add(v, all,
                "Ranks wait for messages: %s a rank in %s%s, most on rank %d (%s). Post receives and sends "
                "earlier, or "
                "give the "
                "rank they wait for less to do.",
                prof_format_seconds(worst->mean, mean), worst->name,
                prof_find_function_site(job, worst, site), worst->slowest,
                prof_format_seconds(worst->max, most));
}

static void judge_data_movement(const struct prof_job *job, double recorded, struct prof_verdict *v)
{
    const struct prof_function *most = NULL;
    char text[PROF_TEXT], site[192];
    for (size_t i = 0; i < job->nfunctions; i++)
        if (job->functions[i].split && (!most || job->functions[i].moving > most->moving))
            most = &job->functions[i];
    if (!most || !verdict_is_relevant(most->moving, recorded))
        return;
    verdict_add(
        v, most->moving,
        "%s%s itself takes %s (%.0f %% of the time) even when no rank is late: fewer or larger calls, or "
        "another algorithm "
        "(FISHPLATE_COLL).",
        most->name, prof_find_function_site(job, most, site), prof_format_seconds(most->moving, text),
        prof_compute_percent(most->moving, recorded));
}

static void judge_small_messages(const struct prof_job *job, double recorded, struct prof_verdict *v)
{
    const struct prof_classes *p = &job->p2p_classes;
    const double seconds = job->kinds[PROF_P2P] / job->nrecords;
    if (!verdict_is_relevant(seconds, recorded) || p->all < 10000 || p->count[0] * 10 < p->all * 9)
        return;
    verdict_add(v, seconds,
                "%" PRIu64 " of %" PRIu64
                " messages are shorter than 2 KiB: sending several in one saves most of their time.",
                p->count[0], p->all);
}

static void judge_slow_links(const struct prof_job *job, double recorded, struct prof_verdict *v)
{
    const double seconds = prof_links_cost(job);
    char text[sizeof(v->list[0].text)];
    if (job->slow_links == 0 || !verdict_is_relevant(seconds, recorded))
        return;
    prof_links_sentence(job, text, sizeof(text));
    verdict_add(v, seconds, "%s", text);
}

static int most_expensive_first(const void *a, const void *b)
{
    const struct prof_finding *f = a, *g = b;
    return f->seconds != g->seconds ? (f->seconds < g->seconds ? 1 : -1) : 0;
}

void prof_judge(const struct prof_job *job, struct prof_verdict *v)
{
    const double recorded = job->nrecords ? job->on / job->nrecords : 0;
    v->n = 0;
    judge_late_rank(job, recorded, v);
    judge_message_waits(job, recorded, v);
    judge_data_movement(job, recorded, v);
    judge_small_messages(job, recorded, v);
    judge_slow_links(job, recorded, v);
    judge_shared_processors(job, recorded, v);
    qsort(v->list, (size_t)v->n, sizeof(v->list[0]), most_expensive_first);
    if (v->n == 0)
        verdict_add(
            v, 0,
            "Nothing stands out: %.1f %% of the time is spent in MPI, and no wait costs a twentieth of it.",
            prof_compute_percent(job->mpi, job->on));
}
