/* recover.c: implements recover.h. A job can continue only if the dead rank had already left MPI_Init: other
 * ranks in MPI_Init wait for it and could never finish. A spawned job whose rank dies in MPI_Init is ended;
 * its parent job continues.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "job/recover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "boot/notice.h"
#include "job/spawned.h"

#define JUDGE_MS 500 /* time from the first report to the decision: more reports may arrive */

static uint32_t recover_count_unfinished(const struct job *j)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < j->layout->size; r++)
        n += j->ranks[r].state != RANK_ENDED || pmi_finalized(j->pmi, r);
    return n;
}

static uint32_t recover_count_ready(const struct job *j)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < j->layout->size; r++)
        n += pmi_ready(j->pmi, r);
    return n;
}

/* True if `rank` has left MPI_Init. In a spawned job one such rank suffices: all ranks connect to their
 * parents before any of them leaves MPI_Init. */
static bool has_completed_init(const struct job *j, uint32_t rank)
{
    return pmi_ready(j->pmi, rank) || (j->opt->report_fd > 0 && recover_count_ready(j) > 0);
}

/* True if the job can continue without `rank`. It continues even without any rank of its own while its
 * parent job or a job that it spawned runs. */
static bool recover_is_possible(const struct job *j, uint32_t rank)
{
    return j->opt->recovery && !j->ending && !j->failed && has_completed_init(j, rank) &&
           (recover_count_unfinished(j) > 0 || j->opt->report_fd > 0 || !spawned_are_idle(j));
}

static void recover_forward_deaths(struct job *j)
{
    const struct notice *n;
    while ((n = notice_get(j->notices.page, j->notices.passed)) != NULL) {
        for (uint32_t i = 0; i < j->nhosts; i++) {
            struct job_host *h = &j->hosts[i];
            if (h->ops && h->ops->died && !h->done)
                h->ops->died(h->impl, n->world, n->rank);
        }
        j->notices.passed++;
    }
}

/* Called when another mpiexec of this host (of a parent job or of a spawned one) has added a notice. */
static void recover_on_notification(void *ctx, uint32_t events)
{
    (void)events;
    recover_forward_deaths(ctx);
}

/* The eventfd is never read: with EPOLLET every write wakes each mpiexec that watches it. */
void recover_open(struct job *j, int notices)
{
    j->notices.fd = notices;
    if (notices < 0)
        return;
    j->notices.page = notice_map(notices);
    const int bell = j->opt->bell_fd > 0 ? (int)j->opt->bell_fd : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    j->notices.bell = (struct watch){.fd = -1, .fn = recover_on_notification, .ctx = j};
    if (!j->notices.page || bell < 0 || !loop_add(&j->loop, &j->notices.bell, bell, EPOLLIN | EPOLLET))
        launcher_die(1, "mpiexec cannot notify other hosts of failed ranks (-enable-recovery): %s.",
                     strerror(errno));
}

/* job: notice_hash_job() if the rank died, notice_hash_departures() if it ended after MPI_Finalize. */
static void recover_notify_hosts(struct job *j, uint64_t job, uint32_t rank)
{
    const uint64_t ring = 1;
    if (!notice_add(j->notices.page, j->notices.fd, job, rank))
        launcher_die(
            1,
            "mpiexec cannot tell the ranks that rank %u has died (%u deaths at most, and memory for them): "
            "%s.",
            rank, NOTICES_MAX, strerror(errno));
    recover_forward_deaths(j);
    if (write(j->notices.bell.fd, &ring, sizeof(ring)) < 0)
        message_print("mpiexec could not notify the launchers of spawned jobs of a death: %s.",
                      strerror(errno));
}

void recover_rank_departed(struct job *j, uint32_t rank)
{
    if (j->opt->recovery && !j->ending)
        recover_notify_hosts(j, notice_hash_departures(j->id), rank);
}

static void recover_notify_all(struct job *j, uint32_t rank)
{
    recover_notify_hosts(j, notice_hash_job(j->id), rank);
    pmi_count_as_finalized(j->pmi, rank);
    if (!j->dead.who)
        j->dead.who = xcalloc(j->layout->size, sizeof(*j->dead.who));
    j->dead.who[rank] = true;
    j->dead.n++;
}

/* Handles the death of a rank of a spawned job in MPI_Init: the other ranks cannot finish MPI_Init and are
 * ended, the waiting parents are notified, and MPI_Comm_spawn fails. */
static bool fail_unfinished_spawn(struct job *j, const char *how)
{
    if (j->dead.init_failed)
        return true;
    if (!j->opt->recovery || j->ending || j->failed || j->opt->report_fd <= 0 || recover_count_ready(j) > 0)
        return false;
    for (uint32_t r = 0; r < j->layout->size; r++)
        recover_notify_all(j, r);
    spawned_report_failed(j->opt, how);
    j->dead.init_failed = true;
    return true;
}

bool recover_rank_death(struct job *j, uint32_t rank, int code, const char *how)
{
    if (fail_unfinished_spawn(j, how))
        return true;
    if (!recover_is_possible(j, rank))
        return false;
    recover_notify_all(j, rank);
    if (!j->dead.how) {
        j->dead.how = xstrdup(how);
        j->dead.code = code;
    }
    if (j->opt->no_cleanup && !j->status)
        j->status = code;
    if (j->opt->verbose)
        message_print("%s The other ranks were notified and continue (-enable-recovery).", how);
    return true;
}

/* Fails the job if all its ranks died, and all ranks of the last job that it spawned. A spawned job
 * reports this to its parent's mpiexec, which applies the same rule. */
void recover_end_job(struct job *j)
{
    if (j->failed || j->ending || j->dead.n < j->layout->size || (j->spawned_count > 0 && !j->dead.spawned))
        return;
    j->failed = true;
    j->status = j->status ? j->status : j->dead.code;
    if (!spawned_report_nobody_left(j->opt))
        message_print("All ranks died, and nobody was left to go on (-enable-recovery). The first: %s",
                      j->dead.how);
}

bool recover_from_lost(struct job *j, const struct job_host *h, const char *why)
{
    for (uint32_t r = 0; r < j->layout->size; r++)
        if (&j->hosts[j->layout->host_of[r]] == h && !pmi_finalized(j->pmi, r) && !recover_is_possible(j, r))
            return false;
    char *how =
        xstrf("Host %s, with %u rank%s, was lost: %s.", h->name, h->nranks, h->nranks == 1 ? "" : "s", why);
    bool any = false;
    for (uint32_t r = 0; r < j->layout->size; r++)
        if (&j->hosts[j->layout->host_of[r]] == h && !pmi_finalized(j->pmi, r))
            any |= recover_rank_death(j, r, 1, how);
    free(how);
    return any;
}

/* True if the reporter and the reported rank still run and neither is being killed. */
static bool recover_is_report_valid(const struct job *j, const struct unreachable_report *a)
{
    const struct job_rank *by = &j->ranks[a->by], *rank = &j->ranks[a->rank];
    return by->state == RANK_RUNNING && rank->state == RANK_RUNNING && !by->ended && !rank->ended;
}

static void kill_suspected_rank(struct job *j, uint32_t rank, uint32_t by)
{
    struct job_host *h = &j->hosts[j->layout->host_of[rank]];
    j->ranks[rank].ended = true;
    if (!h->ops || h->done)
        return;
    message_print("Rank %u on host %s cannot be reached by rank %u any more and is ended (-enable-recovery).",
                  rank, h->name, by);
    h->ops->kill(h->impl, rank);
}

/* Kills one rank on the node that most reports concern (as reporter or reported); of nodes with equally
 * many reports, on the one reported first. Returns false if no valid report is left. */
static bool kill_most_reported_rank(struct job *j, uint32_t *count)
{
    const struct layout *l = j->layout;
    uint32_t best = 0, rank = 0, by = 0;
    memset(count, 0, l->nnodes * sizeof(*count));
    for (uint32_t i = 0; i < j->unreachable.n; i++)
        if (recover_is_report_valid(j, &j->unreachable.v[i])) {
            count[l->node_of[j->unreachable.v[i].rank]]++;
            count[l->node_of[j->unreachable.v[i].by]]++;
        }
    for (uint32_t i = 0; i < j->unreachable.n; i++) {
        struct unreachable_report ends[] = {j->unreachable.v[i],
                                            {j->unreachable.v[i].rank, j->unreachable.v[i].by}};
        for (int k = 0; k < 2 && recover_is_report_valid(j, &ends[k]); k++)
            if (count[l->node_of[ends[k].rank]] > best) {
                best = count[l->node_of[ends[k].rank]];
                rank = ends[k].rank;
                by = ends[k].by;
            }
    }
    if (best > 0)
        kill_suspected_rank(j, rank, by);
    return best > 0;
}

static void recover_resolve_reports(void *ctx)
{
    struct job *j = ctx;
    uint32_t *count = xcalloc(j->layout->nnodes, sizeof(*count));
    while (!j->ending && kill_most_reported_rank(j, count))
        ;
    j->unreachable.n = 0;
    free(count);
}

/* A rank whose network failed reports every other rank, so the first report alone must not decide. */
void recover_on_unreachable(void *ctx, uint32_t rank, uint32_t by)
{
    struct job *j = ctx;
    struct unreachable_report a = {by, rank};
    if (!j->opt->recovery || j->ending || !recover_is_report_valid(j, &a))
        return;
    if (j->unreachable.n == j->unreachable.room) {
        j->unreachable.room = 2 * j->unreachable.room + 16;
        j->unreachable.v = xrealloc(j->unreachable.v, j->unreachable.room * sizeof(*j->unreachable.v));
    }
    j->unreachable.v[j->unreachable.n++] = a;
    if (j->unreachable.judge.at == 0) {
        j->unreachable.judge = (struct timer){.fn = recover_resolve_reports, .ctx = j};
        loop_set_timer(&j->loop, &j->unreachable.judge, JUDGE_MS);
    }
}
