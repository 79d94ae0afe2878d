/* trial.c: runs the trials of pick.c. The ranks agree without extra rounds: a barrier in which a trial begins or goes on, and
 * the last barrier of each sample, are carried out as an allreduce of what the ranks know and have measured. An allreduce
 * is a barrier too, since no rank has the result before all have contributed, and it has as many rounds as the
 * dissemination barrier.
 *
 * A sample is many barriers back to back, so that the time of the barrier is measured and not the lateness of a rank nor the
 * cold caches of the first one; the slowest rank decides. A trial must never cost more than it can gain: it spends a few
 * percent of the time since the first barrier, so it is spread over several sessions, each within a barrier of the program,
 * further and further apart.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "coll/found.h"
#include "coll/written.h"

#define WARM         6       /* the first one opens what the candidate needs */
#define AGAIN        2       /* barriers before a sample: the candidate before had the caches */
#define SAMPLE_NS    250000  /* of barriers in one sample, ... */
#define SAMPLE_TURNS 1000000 /* ... where ranks take turns on processors */
#define BARRIERS     4       /* in one sample at least, ... */
#define BARRIERS_MAX 512
#define MOST_NS      200000000 /* a trial that has taken so long ends with what it has */
#define APART        32        /* barriers from one session to the next, at least */

static TUNABLE_INT(budget, "COLL_TRY", 2, 0, 100,
                   "Percent of the time since the first collective that communicators on several nodes may "
                   "spend on trying which barrier is fastest, which algorithm and segment size of bcast, "
                   "gather, scatter, allgather, alltoall, reduce and allreduce for each class of sizes (each "
                   "power of two, and the sizes between two of them), and for which sizes broadcasts and "
                   "allgathers between three nodes and "
                   "more are faster by multicast. A trial begins with the 24th blocking call, of one "
                   "operation and size, and takes at most 0.2 seconds. What is found serves all "
                   "communicators of that shape (nodes, ranks). When a reduction changes its algorithm, the "
                   "last bits of floating-point sums may change; FISHPLATE_COLL=deterministic keeps them. "
                   "0: never try; the built-in rules decide. 100: try all at once.");

static COUNTER(trials, "coll_trials", "Communicators that tried which barrier is fastest.");
static COUNTER(trials_saved, "coll_trials_saved",
               "Communicators that used what another one of their shape had found.");
static COUNTER(trial_us, "coll_trial_us", "Microseconds spent on trying which barrier is fastest.");

struct trials {
    uint64_t begin_ns; /* of the first barrier that counts */
    uint64_t spent_ns;
};
/* A trial of one communicator that is not over. */
struct trial {
    struct found found;
    struct pick pick;
    struct trial_candidate candidate[PICK_CANDIDATES];
    uint64_t spent_ns;
    int batch[PICK_CANDIDATES]; /* barriers of a sample; 0: not warm yet */
    struct written
        *written[PICK_CANDIDATES]; /* what they have opened; the rules' is in the state between samples */
};

/* ---- shapes ---- */

struct trial_shape trial_shape_of(const struct comm *c)
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

bool trial_same_shape(const struct trial_shape *a, const struct trial_shape *b)
{
    return a->ranks == b->ranks && a->nodes == b->nodes && a->most == b->most && a->can_wire == b->can_wire;
}

static struct trials *trials_of(struct proc *p)
{
    if (!p->coll_trials) {
        struct trials *t = p->coll_trials = calloc(1, sizeof(*t));
        CHECK_MEMORY(t, "the barriers that were tried");
        t->begin_ns = clock_ns();
    }
    return p->coll_trials;
}

/* ---- a trial ---- */

/* What leads to another node, seen from here. */
static const struct transport *way_out(struct comm *c)
{
    const struct boot *boot = c->proc->boot;
    for (int r = 0; r < c->size; r++) {
        struct peer *peer;
        if (boot->node_of[group_job_rank(c->group, r)] != boot->node)
            return comm_peer(c, r, &peer) == 0 ? peer->transport : NULL;
    }
    return NULL;
}

bool trial_wanted(void)
{
    return budget.value != 0 && coll_takes_trials();
}

void trial_spend(struct proc *p, uint64_t ns)
{
    trials_of(p)->spent_ns += ns;
}

uint64_t trial_allowance(struct proc *p)
{
    const struct trials *t = trials_of(p);
    const uint64_t all = (clock_ns() - t->begin_ns) / 100 * (uint64_t)budget.value;
    return budget.value == 100 ? 2 * MOST_NS : all > t->spent_ns ? all - t->spent_ns : 0;
}

/* n barriers; *ns is the time of one, of the slowest rank. */
static int sample(const struct coll_args *args, struct coll_state *state, const struct trial_means *means,
                  const struct coll_choice *choice, int n, uint64_t *ns)
{
    int rc = 0;
    const uint64_t start = clock_ns();
    for (int i = 0; i < n && !rc; i++)
        rc = means->barrier(args, state, choice);
    *ns = (clock_ns() - start) / (unsigned)n;
    return rc ? rc : means->greatest(args, state, ns, 1);
}

/* Barriers that fill a sample, when one takes ns. */
static int batch_of(const struct trial *t, uint64_t ns)
{
    const uint64_t fit = (t->found.shape.turns ? SAMPLE_TURNS : SAMPLE_NS) / MAX(ns, 1u);
    return (int)MAX(BARRIERS, MIN(fit, BARRIERS_MAX));
}

/* The first time, how many barriers a sample needs is found out too. */
static int try_one(const struct coll_args *args, struct coll_state *state, const struct trial_means *means,
                   int candidate)
{
    struct trial *t = state->trial;
    const struct coll_choice *choice = &t->candidate[candidate].choice;
    int *batch = &t->batch[candidate], rc = 0;
    uint64_t ns = 0;
    for (int i = 0; i < (*batch ? AGAIN : WARM) && !rc; i++)
        rc = means->barrier(args, state, choice);
    if (!rc && *batch == 0) {
        rc = sample(args, state, means, choice, BARRIERS, &ns);
        *batch = batch_of(t, ns);
    }
    if (!rc)
        rc = sample(args, state, means, choice, *batch, &ns);
    if (rc)
        return rc;
    *batch = MAX(*batch, batch_of(t, ns)); /* the first few may have met another program */
    pick_record(&t->pick, ns);
    return 0;
}

/* Candidates keep what they have opened until the trial is over. */
static int try_next(const struct coll_args *args, struct coll_state *state, const struct trial_means *means)
{
    struct trial *t = state->trial;
    const int next = pick_next(&t->pick);
    struct written *rules = state->written;
    if (next > 0)
        state->written = t->written[next];
    int rc = try_one(args, state, means, next);
    if (next > 0) {
        t->written[next] = state->written;
        state->written = rules;
    }
    return rc;
}

/* As many samples as fit into what the poorest rank may spend. */
static int session(const struct coll_args *args, struct coll_state *state, const struct trial_means *means,
                   uint64_t may_ns)
{
    struct trial *t = state->trial;
    struct trials *all = trials_of(state->comm->proc);
    const uint64_t one = 2 * (t->found.shape.turns ? SAMPLE_TURNS : SAMPLE_NS);
    uint64_t spent = 0;
    int rc = 0;
    while (!rc && pick_next(&t->pick) >= 0 && t->spent_ns + spent < MOST_NS && spent + one <= may_ns) {
        const uint64_t begin = clock_ns();
        rc = try_next(args, state, means);
        uint64_t took = clock_ns() - begin;
        if (!rc)
            rc = means->greatest(args, state, &took, 1);
        spent += took;
    }
    t->spent_ns += spent;
    all->spent_ns += spent;
    counter_add(&trial_us, spent / 1000);
    return rc;
}

static void begin(struct coll_state *state, const struct trial_shape *shape)
{
    struct trial *t = state->trial = calloc(1, sizeof(*t));
    double predicted[PICK_CANDIDATES];
    CHECK_MEMORY(t, "a trial of barriers");
    t->found = (struct found){.shape = *shape, .kind = COLL_BARRIER};
    const int n = trial_candidates(shape, t->candidate);
    for (int i = 0; i < n; i++)
        predicted[i] = t->candidate[i].predicted;
    pick_begin(&t->pick, predicted, n, TRIAL_MOST);
}

/* Drops all that was opened but what the winner has. */
static void end(struct coll_state *state)
{
    struct trial *t = state->trial;
    const int best = pick_best(&t->pick);
    found_fill(&t->found, &t->pick, t->candidate);
    state->picked = t->candidate[best].choice;
    if (best > 0) {
        written_close(state);
        state->written = t->written[best];
        t->written[best] = NULL;
    }
    found_keep(state->comm->proc, &t->found);
    counter_add(&trials, 1);
    trial_close(state);
}

void trial_close(struct coll_state *state)
{
    struct trial *t = state->trial;
    if (!t)
        return;
    for (int i = 0; i < PICK_CANDIDATES; i++)
        written_give_up(t->written[i]);
    free(t);
    state->trial = NULL;
}

/* The first session: all ranks know the same, or all try. */
static int decide(const struct coll_args *args, struct coll_state *state, const struct trial_means *means,
                  uint64_t *may_ns)
{
    struct comm *c = state->comm;
    struct trial_shape shape = trial_shape_of(c);
    const struct transport *out = way_out(c);
    shape.can_wire = c == c->proc->world && out && out->wires;
    const struct found *known = found_find(c->proc, &shape, COLL_BARRIER, 0);
    const uint64_t mine = found_code(known);
    uint64_t word[7] = {!known,
                        mine,
                        UINT64_MAX - mine,
                        c->proc->net->oversubscribed,
                        !(out && out->barrier),
                        UINT64_MAX - *may_ns,
                        !shape.can_wire};
    int rc = means->greatest(args, state, word, (int)COUNT_OF(word));
    if (rc)
        return rc;
    shape.turns = word[3] != 0;
    shape.can_switch = word[4] == 0;
    shape.can_wire = word[6] == 0;
    *may_ns = UINT64_MAX - word[5];
    if (word[0] == 0 && word[1] == UINT64_MAX - word[2]) {
        state->picked = known->candidate[known->best].choice;
        counter_add(&trials_saved, 1);
    } else {
        begin(state, &shape);
    }
    return 0;
}

static int go_on(const struct coll_args *args, struct coll_state *state, const struct trial_means *means)
{
    uint64_t may_ns = trial_allowance(state->comm->proc);
    int rc;
    if (!state->trial) {
        rc = decide(args, state, means, &may_ns);
    } else {
        may_ns = UINT64_MAX - may_ns;
        rc = means->greatest(args, state, &may_ns, 1);
        may_ns = UINT64_MAX - may_ns;
    }
    if (!rc && state->trial)
        rc = session(args, state, means, may_ns);
    if (!rc && state->trial && (pick_next(&state->trial->pick) < 0 || state->trial->spent_ns >= MOST_NS))
        end(state);
    return rc;
}

void trial_choose(const struct coll_state *state, struct coll_choice *choice)
{
    if (state->picked.algorithm && !choice->named && coll_takes_trials())
        *choice = state->picked;
}

bool trial_barrier(const struct coll_args *args, struct coll_state *state, const struct trial_means *means,
                   struct coll_choice *choice, int *rc)
{
    if (state->picked.algorithm || choice->named) {
        trial_choose(state, choice);
        return false;
    }
    if (!trial_wanted())
        return false;
    if (state->barriers++ == 0) {
        trials_of(state->comm->proc);
        state->next_trial = TRIAL_AT;
    }
    if (state->barriers < state->next_trial)
        return false;
    state->next_trial += MAX(APART, state->barriers / 4);
    *rc = go_on(args, state, means);
    if (*rc)
        state->picked = *choice; /* not again */
    return true;
}
