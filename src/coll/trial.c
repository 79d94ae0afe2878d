/* trial.c: runs the trials of pick.c. The ranks agree without extra rounds: the barrier in which a trial begins, and the
 * last barrier of each candidate, are carried out as an allreduce of what the ranks know and have measured. An allreduce
 * is a barrier too, since no rank has the result before all have contributed, and it has as many rounds as the
 * dissemination barrier.
 *
 * Each candidate runs several times back to back, so that the time of the barrier is measured and not the lateness of a
 * rank. Each rank reports the fastest of a few batches; the slowest rank decides.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "coll/written.h"

#define WARM    6 /* the first one opens what the candidate needs */
#define BATCHES 4
#define BATCH   6 /* barriers */
#define SHAPES  16

static TUNABLE_INT(
    budget, "COLL_TRY", 0, 0, 10000000,
    "Microseconds that a communicator on several nodes may spend, in its 24th barrier, on trying which "
    "barrier algorithm is fastest; no further one is tried when they are over. What is found serves all "
    "communicators of that shape (nodes, ranks). 0: never try; the built-in rules decide.");

static COUNTER(trials, "coll_trials", "Communicators that tried which barrier is fastest.");
static COUNTER(trials_saved, "coll_trials_saved",
               "Communicators that used what another one of their shape had found.");

struct found {
    struct trial_shape shape;
    int best, count;
    struct trial_candidate candidate[PICK_CANDIDATES];
    uint64_t ns[PICK_CANDIDATES];
};
struct trials {
    int count;
    struct found found[SHAPES];
};

/* ---- shapes ---- */

static struct trial_shape shape_of(const struct comm *c)
{
    const struct boot *boot = c->proc->boot;
    struct trial_shape s = {.ranks = c->size};
    int *on = calloc(boot->nnodes, sizeof(*on));
    CHECK_MEMORY(on, "the nodes of a communicator");
    for (int r = 0; r < c->size; r++) {
        int *here = &on[boot->node_of[group_job_rank(c->group, r)]];
        s.nodes += *here == 0;
        s.most = MAX(s.most, ++*here);
    }
    free(on);
    return s;
}

static bool same_shape(const struct trial_shape *a, const struct trial_shape *b)
{
    return a->ranks == b->ranks && a->nodes == b->nodes && a->most == b->most;
}

static const struct found *find(const struct proc *p, const struct trial_shape *s)
{
    const struct trials *t = p->coll_trials;
    for (int i = 0; t && i < t->count; i++)
        if (same_shape(&t->found[i].shape, s))
            return &t->found[i];
    return NULL;
}

/* Forgets the oldest when there are too many. Without memory nothing is kept, and the next communicator tries again. */
static void keep(struct proc *p, const struct found *f)
{
    if (!p->coll_trials)
        p->coll_trials = calloc(1, sizeof(struct trials));
    struct trials *t = p->coll_trials;
    if (!t)
        return;
    if (t->count == SHAPES)
        memmove(&t->found[0], &t->found[1], sizeof(t->found[0]) * (size_t)--t->count);
    t->found[t->count++] = *f;
}

/* ---- a trial ---- */

/* Does the network have a barrier unit, seen from here? */
static bool has_switch(struct comm *c)
{
    const struct boot *boot = c->proc->boot;
    for (int r = 0; r < c->size; r++) {
        struct peer *peer;
        if (boot->node_of[group_job_rank(c->group, r)] != boot->node)
            return comm_peer(c, r, &peer) == 0 && peer->transport->barrier;
    }
    return false;
}

static int try_one(const struct coll_args *args, struct coll_state *state, const struct trial_means *means,
                   const struct coll_choice *choice, struct pick *pick)
{
    const uint64_t begin = clock_ns();
    uint64_t word[2] = {UINT64_MAX, 0};
    int rc = 0;
    for (int i = 0; i < WARM && !rc; i++)
        rc = means->barrier(args, state, choice);
    for (int b = 0; b < BATCHES && !rc; b++) {
        const uint64_t start = clock_ns();
        for (int i = 0; i < BATCH && !rc; i++)
            rc = means->barrier(args, state, choice);
        word[0] = MIN(word[0], (clock_ns() - start) / BATCH);
    }
    word[1] = clock_ns() - begin;
    if (!rc)
        rc = means->greatest(args, state, word, 2);
    if (!rc)
        pick_record(pick, word[0], word[1]);
    return rc;
}

static int try_all(const struct coll_args *args, struct coll_state *state, const struct trial_means *means,
                   struct found *f)
{
    struct pick pick;
    double predicted[PICK_CANDIDATES];
    int rc = 0, next;
    f->count = trial_candidates(&f->shape, f->candidate);
    for (int i = 0; i < f->count; i++)
        predicted[i] = f->candidate[i].predicted;
    pick_begin(&pick, predicted, f->count, TRIAL_MOST, (uint64_t)budget.value * 1000);
    while (!rc && (next = pick_next(&pick)) >= 0)
        rc = try_one(args, state, means, &f->candidate[next].choice, &pick);
    f->best = pick_best(&pick);
    memcpy(f->ns, pick.ns, sizeof(f->ns));
    counter_add(&trials, 1);
    return rc;
}

/* A choice as a number that means the same to every rank, which a place in a list of candidates need not. */
static uint32_t code_of(const struct coll_choice *choice)
{
    uint32_t index = 0;
    while (index < algorithms_count() && algorithms_get(index) != choice->algorithm)
        index++;
    return index << 16 | (uint32_t)choice->parameter[0] << 2 | (uint32_t)choice->by_node << 1 | choice->named;
}

/* All ranks know the same, or all try. */
static int decide(const struct coll_args *args, struct coll_state *state, const struct trial_means *means)
{
    struct comm *c = state->comm;
    struct found f = {.shape = shape_of(c)};
    const struct found *known = find(c->proc, &f.shape);
    const uint64_t mine = known ? code_of(&known->candidate[known->best].choice) : 0;
    uint64_t word[5] = {!known, mine, UINT32_MAX - mine, c->proc->net->oversubscribed, !has_switch(c)};
    int rc = means->greatest(args, state, word, (int)COUNT_OF(word));
    if (rc)
        return rc;
    f.shape.turns = word[3] != 0;
    f.shape.can_switch = word[4] == 0;
    if (word[0] == 0 && word[1] == UINT32_MAX - word[2]) {
        state->picked = known->candidate[known->best].choice;
        counter_add(&trials_saved, 1);
        return 0;
    }
    rc = try_all(args, state, means, &f);
    if (rc)
        return rc;
    state->picked = f.candidate[f.best].choice;
    if (!known)
        keep(c->proc, &f);
    return 0;
}

void trial_choose(const struct coll_state *state, struct coll_choice *choice)
{
    if (state->picked.algorithm && !coll_is_forced(COLL_BARRIER))
        *choice = state->picked;
}

bool trial_barrier(const struct coll_args *args, struct coll_state *state, const struct trial_means *means,
                   struct coll_choice *choice, int *rc)
{
    if (state->picked.algorithm || coll_is_forced(COLL_BARRIER)) {
        trial_choose(state, choice);
        return false;
    }
    if (budget.value == 0 || ++state->barriers < TRIAL_AT)
        return false;
    *rc = decide(args, state, means);
    if (*rc)
        state->picked = *choice; /* not again */
    return true;
}

void trial_describe(const struct proc *p, char *out, size_t size)
{
    const struct trials *t = p->coll_trials;
    FILE *f = fmemopen(out, size, "w");
    if (!f)
        return;
    fputs(!t || t->count == 0 ? "no communicator on several nodes has had 24 barriers" : "", f);
    for (int i = 0; t && i < t->count; i++) {
        const struct found *found = &t->found[i];
        char name[64];
        trial_name(&found->candidate[found->best].choice, name, sizeof(name));
        fprintf(f, "%s%d ranks on %d nodes: %s, %.2f us; tried", i ? "\n" : "", found->shape.ranks,
                found->shape.nodes, name, (double)found->ns[found->best] * 1e-3);
        for (int k = 0; k < found->count; k++) {
            if (found->ns[k] == 0)
                continue;
            trial_name(&found->candidate[k].choice, name, sizeof(name));
            fprintf(f, " %s%s %.2f (predicted %.2f)", k == 0 ? "rule:" : "", name,
                    (double)found->ns[k] * 1e-3, found->candidate[k].predicted);
        }
    }
    fclose(f);
}
