/* recover.c: see recover.h. A job can continue only when the rank that died had already left MPI_Init: before that, the
 * other ranks wait for it in MPI_Init and cannot finish their own start. A spawned job is then ended; the job that spawned
 * it goes on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "recover.h"

#include <stdlib.h>

#include "grow.h"

static uint32_t left(const struct job *j)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < j->layout->size; r++)
        n += j->ranks[r].state != RANK_ENDED || pmi_finalized(j->pmi, r);
    return n;
}

static uint32_t ready(const struct job *j)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < j->layout->size; r++)
        n += pmi_ready(j->pmi, r);
    return n;
}

/* The ranks of a spawned job meet their parents in MPI_Init, all of them, before the first is ready. */
static bool has_left_init(const struct job *j, uint32_t rank)
{
    return pmi_ready(j->pmi, rank) || (j->opt->grown_fd > 0 && ready(j) > 0);
}

/* The job that spawned this one, and those that this one spawned, go on even when nobody of this one is left. */
static bool can_go_on(const struct job *j, uint32_t rank)
{
    return j->opt->recovery && !j->ending && !j->failed && has_left_init(j, rank) &&
           (left(j) > 0 || j->opt->grown_fd > 0 || !grow_idle(j));
}

static void tell_hosts(struct job *j, uint32_t rank)
{
    for (uint32_t i = 0; i < j->nhosts; i++)
        if (j->hosts[i].ops && !j->hosts[i].done)
            j->hosts[i].ops->died(j->hosts[i].impl, j->id, rank);
}

void recover_left(struct job *j, uint32_t rank)
{
    /* Not where jobs were spawned: ranks of the others may still be at work with messages of this one. */
    if (j->opt->recovery && !j->ending && j->opt->grown_fd <= 0 && j->shoots_so_far == 0)
        tell_hosts(j, rank);
}

static void tell_all(struct job *j, uint32_t rank)
{
    tell_hosts(j, rank);
    pmi_finalized_too(j->pmi, rank);
    if (!j->dead.who)
        j->dead.who = xcalloc(j->layout->size, sizeof(*j->dead.who));
    j->dead.who[rank] = true;
    j->dead.n++;
}

/* A rank of a spawned job died before it met its parents: the others of that job cannot finish MPI_Init. They are ended,
 * those who wait for them hear of it, and MPI_Comm_spawn fails. */
static bool end_unborn(struct job *j, const char *how)
{
    if (j->dead.unborn)
        return true;
    if (!j->opt->recovery || j->ending || j->failed || j->opt->grown_fd <= 0 || ready(j) > 0)
        return false;
    for (uint32_t r = 0; r < j->layout->size; r++)
        tell_all(j, r);
    grow_tell_failed(j->opt, how);
    j->dead.unborn = true;
    return true;
}

bool recover_from(struct job *j, uint32_t rank, int code, const char *how)
{
    if (end_unborn(j, how))
        return true;
    if (!can_go_on(j, rank))
        return false;
    tell_all(j, rank);
    if (!j->dead.how)
        j->dead.how = xstrdup(how);
    if (j->opt->no_cleanup && !j->status)
        j->status = code;
    if (j->opt->verbose)
        say("%s The others were told and go on (-enable-recovery).", how);
    return true;
}

bool recover_from_lost(struct job *j, const struct job_host *h, const char *why)
{
    for (uint32_t r = 0; r < j->layout->size; r++)
        if (&j->hosts[j->layout->host_of[r]] == h && !pmi_finalized(j->pmi, r) && !can_go_on(j, r))
            return false;
    char *how =
        xstrf("Host %s, with %u rank%s, was lost: %s.", h->name, h->nranks, h->nranks == 1 ? "" : "s", why);
    bool any = false;
    for (uint32_t r = 0; r < j->layout->size; r++)
        if (&j->hosts[j->layout->host_of[r]] == h && !pmi_finalized(j->pmi, r))
            any |= recover_from(j, r, 1, how);
    free(how);
    return any;
}

void recover_accused(void *ctx, uint32_t rank, uint32_t by)
{
    struct job *j = ctx;
    struct job_host *h = &j->hosts[j->layout->host_of[rank]];
    if (!j->opt->recovery || j->ending || j->ranks[rank].state != RANK_RUNNING || !h->ops || h->done)
        return;
    say("Rank %u on host %s cannot be reached by rank %u any more and is ended (-enable-recovery).", rank,
        h->name, by);
    h->ops->kill(h->impl, rank);
}
