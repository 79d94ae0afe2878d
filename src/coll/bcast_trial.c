/* bcast_trial.c: each class of sizes is decided on its own: multicast may lose where processors are the bottleneck (short messages)
 * and win where links are (long ones), or the other way round where packets are lost. A sample is several
 * broadcasts, each from another root: a root must have received the one before, so the time until all have the data is
 * measured, not how fast a root can send.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/bcast_trial.h"

#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/counter.h"
#include "boot/boot.h"
#include "coll/multicast_part.h"
#include "coll/pick.h"
#include "coll/trial.h"

#define NODES        3         /* a multicast to one other node is a message */
#define WARM         2         /* broadcasts before a sample */
#define FEWEST       4         /* in a sample, ... */
#define MOST         256       /* ... and at most */
#define SAMPLE_NS    500000    /* one sample */
#define MOST_NS      200000000 /* the whole trial, unless more is allowed at once */
#define APART        32        /* broadcasts from one session to the next, at least */
#define AGGREGATE    10        /* packets for each acknowledgement: they cost more than packets */
#define MULTICAST    1         /* candidates: the rules' choice, then this */
#define PARTICIPANTS 2

static COUNTER(trials, "coll_bcast_trials",
               "Communicators that tried whether their broadcasts are faster by multicast.");
static COUNTER(won, "coll_bcast_trials_won", "Such trials after which broadcasts go by multicast.");
static COUNTER(spent_us, "coll_bcast_trial_us",
               "Microseconds spent on trying whether broadcasts are faster by multicast.");

struct bcast_trial {
    uint32_t calls, next; /* blocking broadcasts; the one in which the trial goes on */
    int step;             /* the class of sizes that is tried */
    bool over;
    struct pick pick;
    int batch[PARTICIPANTS]; /* broadcasts of a sample; 0: not warm yet */
    uint64_t spent_ns;
    struct coll_choice choice; /* multicast, without a limit */
    unsigned won;              /* bit i: multicast is faster for class i */
};

/* A short message, one packet, some packets, a window of them, more than windows and buffers hold. */
static const struct {
    uint64_t tried, limit;
} classes[] = {
    {64, 512}, {2048, 4096}, {8192, 16 * 1024}, {48 * 1024, 128 * 1024}, {512 * 1024, 2048 * 1024}};

uint64_t bcast_trial_size(int step)
{
    return step < (int)COUNT_OF(classes) ? classes[step].tried : 0;
}

int bcast_trial_class(uint64_t bytes)
{
    int i = 0;
    while (i < (int)COUNT_OF(classes) && bytes > classes[i].limit)
        i++;
    return bytes > 0 && i < (int)COUNT_OF(classes) ? i : -1;
}

static int nodes_of(const struct comm *c)
{
    const struct boot *boot = c->proc->boot;
    bool *seen = calloc(boot->nnodes, sizeof(*seen));
    int nodes = 0;
    CHECK_MEMORY(seen, "the nodes of a communicator");
    for (int r = 0; r < c->size; r++) {
        bool *here = &seen[boot->node_of[group_job_rank(c->group, r)]];
        nodes += !*here;
        *here = true;
    }
    free(seen);
    return nodes;
}

/* n broadcasts; *ns is the time of one, of the slowest rank. *went: all of them by the candidate. */
static int sample(const struct coll_args *args, struct coll_state *state, const struct bcast_means *means,
                  int candidate, char *buffer, int n, uint64_t *ns, bool *went)
{
    struct bcast_trial *t = state->bcast_trial;
    struct coll_args one = {.kind = COLL_BCAST, .name = args->name, .comm = args->comm};
    one.recv =
        (struct coll_side){.buf = buffer, .count = (MPI_Count)bcast_trial_size(t->step), .type = byte_type()};
    int rc = 0;
    const uint64_t start = clock_ns();
    *went = true;
    for (int i = 0; i < n && !rc && *went; i++) {
        one.root = i % args->comm->size;
        rc = means->bcast(&one, state, candidate == MULTICAST ? &t->choice : NULL, went);
    }
    *ns = (clock_ns() - start) / (unsigned)n;
    return rc || !*went ? rc : means->greatest(args, state, ns, 1);
}

/* One sample of whoever is next. Multicast that the network refuses has lost, at all ranks. */
static int try_next(const struct coll_args *args, struct coll_state *state, const struct bcast_means *means,
                    char *buffer)
{
    struct bcast_trial *t = state->bcast_trial;
    const int next = pick_next(&t->pick);
    int *batch = &t->batch[next];
    uint64_t ns = 0;
    bool went;
    int rc = sample(args, state, means, next, buffer, WARM * (*batch ? 1 : 2), &ns, &went);
    if (!rc && went && *batch == 0) {
        const uint64_t fit = SAMPLE_NS / MAX(ns, 1u);
        *batch = (int)MAX(FEWEST, MIN(fit, MOST));
    }
    if (!rc && went)
        rc = sample(args, state, means, next, buffer, *batch, &ns, &went);
    if (!rc)
        pick_record(&t->pick, went ? ns : UINT64_MAX / 2);
    t->over = t->over || !went;
    return rc;
}

static void begin_size(struct bcast_trial *t)
{
    static const double predicted[PARTICIPANTS] = {1, 1};
    pick_begin(&t->pick, predicted, PARTICIPANTS, PARTICIPANTS);
    t->batch[0] = t->batch[1] = 0;
}

/* A class is decided. */
static void end_size(struct bcast_trial *t)
{
    if (pick_best(&t->pick) == MULTICAST)
        t->won |= 1u << t->step;
    if (bcast_trial_size(++t->step) == 0)
        t->over = true;
    else
        begin_size(t);
}

static void end(struct coll_state *state)
{
    struct bcast_trial *t = state->bcast_trial;
    counter_add(&trials, 1);
    if (t->won)
        counter_add(&won, 1);
    else
        multicast_close(state);
}

/* As many samples as fit into what the poorest rank may spend. */
static int session(const struct coll_args *args, struct coll_state *state, const struct bcast_means *means)
{
    struct bcast_trial *t = state->bcast_trial;
    uint64_t left = UINT64_MAX - trial_allowance(state->comm->proc), spent = 0;
    int rc = means->greatest(args, state, &left, 1);
    left = UINT64_MAX - left;
    char *buffer = calloc(1, bcast_trial_size(t->step));
    CHECK_MEMORY(buffer, "a trial of broadcasts");
    while (!rc && !t->over && spent + 2 * SAMPLE_NS <= left) {
        const uint64_t begin = clock_ns();
        rc = try_next(args, state, means, buffer);
        uint64_t took = clock_ns() - begin;
        if (!rc)
            rc = means->greatest(args, state, &took, 1);
        spent += took;
        if (!rc && !t->over && t->spent_ns + spent + 2 * SAMPLE_NS > MAX(left, MOST_NS))
            t->over = true;
        if (!rc && !t->over && pick_next(&t->pick) < 0) {
            end_size(t);
            free(buffer);
            buffer = calloc(1, MAX(bcast_trial_size(t->step), 1u));
            CHECK_MEMORY(buffer, "a trial of broadcasts");
        }
    }
    free(buffer);
    t->spent_ns += spent;
    trial_spend(state->comm->proc, spent);
    counter_add(&spent_us, spent / 1000);
    if (t->over && !rc)
        end(state);
    t->over = t->over || rc != 0; /* not again */
    return rc;
}

int bcast_trial_step(const struct coll_args *args, struct coll_state *state, const struct bcast_means *means,
                     const struct coll_choice *choice)
{
    struct bcast_trial *t = state->bcast_trial;
    if (!t) {
        t = state->bcast_trial = calloc(1, sizeof(*t));
        CHECK_MEMORY(t, "a trial of broadcasts");
        t->next = BCAST_TRIAL_AT;
        t->choice = *choice;
        t->choice.parameter[PARAMETER_MAX] = INT_MAX;
        t->over = !trial_wanted() || args->comm->remote != NULL || nodes_of(args->comm) < NODES;
        trial_allowance(args->comm->proc); /* the clock runs from the first broadcast on */
        begin_size(t);
    }
    if (t->over || ++t->calls < t->next)
        return 0;
    t->next += MAX(APART, t->calls / 4);
    return session(args, state, means);
}

bool bcast_trial_wants(const struct coll_choice *choice)
{
    return choice->algorithm->kind == COLL_BCAST && (choice->algorithm->needs & NEED_NODES) &&
           choice->parameter[PARAMETER_TRY] != 0;
}

bool bcast_trial_won(const struct coll_state *state, uint64_t bytes, struct coll_choice *choice)
{
    const struct bcast_trial *t = state->bcast_trial;
    const int class = bcast_trial_class(bytes);
    if (!t || !t->over || class < 0 || !(t->won >> class & 1) || !state->multicast)
        return false;
    *choice = t->choice;
    return true;
}

void bcast_trial_close(struct coll_state *state)
{
    free(state->bcast_trial);
    state->bcast_trial = NULL;
}
