/* size_trial.c: runs the trials of size_trial.h. A sample is several calls. Rooted ones have another root each: a root must have its part of
 * the call before, so the time until all are done is measured, not how fast the first rank can run ahead. All that decides is
 * agreed upon by allreduces inside the user's call, which is why nonblocking calls never try.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/size_trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "coll/found.h"

#define WARM         2         /* calls before a sample */
#define FEWEST       3         /* in a sample, ... */
#define MOST         256       /* ... and at most */
#define SAMPLE_NS    400000    /* one sample, ... */
#define SAMPLE_TURNS 1000000   /* ... where ranks take turns on processors */
#define MOST_NS      200000000 /* one class, unless all is allowed at once */
#define APART        32        /* calls from one session to the next, at least */
#define MEMORY       (16u << 20)

static COUNTER(trials, "coll_size_trials",
               "Operations and sizes for which communicators on several nodes tried algorithms.");
static COUNTER(won, "coll_size_trials_won", "Such trials that ended with another choice than the rules'.");
static COUNTER(saved, "coll_size_trials_saved",
               "Operations and sizes for which what another communicator of the shape had found was used.");
static COUNTER(spent_us, "coll_size_trial_us", "Microseconds spent on such trials.");

/* The trial of one class. */
struct effort {
    struct found found;
    struct pick pick;
    uint64_t spent_ns;
    int batch[PICK_CANDIDATES]; /* calls of a sample; 0: not warm yet */
    struct trial_candidate candidate[PICK_CANDIDATES];
};
/* Of one kind of operation. */
struct size_trial {
    uint32_t calls[SIZE_CLASSES], next[SIZE_CLASSES]; /* blocking ones; the one in which the trial goes on */
    struct effort *effort[SIZE_CLASSES];              /* NULL: not begun, or over */
    bool over[SIZE_CLASSES];
    struct coll_choice best[SIZE_CLASSES]; /* no algorithm: the rules' choice */
    int under_way;
};

static bool is_tried(enum coll_kind kind)
{
    return kind >= COLL_BCAST && kind <= COLL_ALLREDUCE;
}

static struct size_trial **slot_of(struct coll_state *state, enum coll_kind kind)
{
    return &state->size_trial[kind - COLL_BCAST];
}

static bool has_blocks(enum coll_kind kind)
{
    return kind >= COLL_GATHER && kind <= COLL_ALLTOALL;
}

/* Bytes of each of the two buffers. */
static uint64_t memory_of(const struct comm *c, enum coll_kind kind, uint64_t bytes)
{
    return bytes * (has_blocks(kind) ? (uint64_t)c->size : 1);
}

/* What is tried must stand for the call: same data everywhere, operands in any order. */
static int class_of(const struct coll_args *args, const struct coll_state *state, const struct call *call,
                    const struct coll_choice *choice)
{
    if (!state->nodes || state->multicast_opening || !is_tried(args->kind) || choice->named ||
        !coll_takes_trials() || !choice->algorithm->generate || !call->shape.adjacent ||
        !call->shape.commutative || (kind_reduces(args->kind) && coll_is_deterministic()))
        return -1;
    const int class = size_class(call->where.bytes);
    return class >= 0 && memory_of(args->comm, args->kind, size_limit(class)) > MEMORY ? -1 : class;
}

/* ---- samples ---- */

static struct coll_args call_of(const struct coll_args *args, uint64_t bytes, char *buffer, int i)
{
    const uint64_t memory = memory_of(args->comm, args->kind, bytes);
    struct coll_args one = {.kind = args->kind, .name = args->name, .comm = args->comm};
    char *const behind = buffer ? buffer + memory : NULL; /* a call that is not run has no memory */
    one.send = (struct coll_side){.buf = behind, .count = (MPI_Count)bytes, .type = byte_type()};
    one.recv = (struct coll_side){.buf = buffer, .count = (MPI_Count)bytes, .type = byte_type()};
    if (kind_reduces(args->kind))
        one.op = op_from(MPI_BOR);
    if (kind_has_root(args->kind))
        one.root = i % args->comm->size;
    return one;
}

/* n calls; *ns is the time of one, of the slowest rank. */
static int sample(const struct coll_args *args, struct coll_state *state, const struct size_means *means,
                  const struct coll_choice *choice, uint64_t bytes, char *buffer, int n, uint64_t *ns)
{
    int rc = 0;
    const uint64_t start = clock_ns();
    for (int i = 0; i < n && !rc; i++) {
        const struct coll_args one = call_of(args, bytes, buffer, i);
        rc = means->run(&one, state, choice);
    }
    *ns = (clock_ns() - start) / (unsigned)n;
    return rc ? rc : means->greatest(args, state, ns, 1);
}

static int try_next(const struct coll_args *args, struct coll_state *state, const struct size_means *means,
                    struct effort *e, char *buffer)
{
    const int next = pick_next(&e->pick);
    const struct coll_choice *choice = &e->candidate[next].choice;
    int *batch = &e->batch[next];
    uint64_t ns = 0;
    int rc = sample(args, state, means, choice, e->found.bytes, buffer, WARM * (*batch ? 1 : 2), &ns);
    if (!rc && *batch == 0) {
        const uint64_t fit = (e->found.shape.turns ? SAMPLE_TURNS : SAMPLE_NS) / MAX(ns, 1u);
        *batch = (int)MAX(FEWEST, MIN(fit, MOST));
    }
    if (!rc)
        rc = sample(args, state, means, choice, e->found.bytes, buffer, *batch, &ns);
    if (!rc)
        pick_record(&e->pick, ns);
    return rc;
}

/* ---- a class ---- */

static int begin(const struct coll_args *args, struct coll_state *state, const struct size_means *means,
                 const struct call *call, const struct trial_shape *shape, int class, struct size_trial *t)
{
    struct effort *e = calloc(1, sizeof(*e));
    const uint64_t bytes = call->where.bytes; /* the same at all ranks: rules go by it */
    const struct coll_args one = call_of(args, bytes, NULL, 0);
    struct coll_choice rule;
    double predicted[PICK_CANDIDATES];
    CHECK_MEMORY(e, "a trial of algorithms");
    int rc = means->rules(&one, state, &rule);
    if (rc) {
        free(e);
        return rc;
    }
    e->found = (struct found){.shape = *shape, .kind = args->kind, .class = class, .bytes = bytes};
    const int n = size_candidates(&call->shape, bytes, shape->turns, &rule, e->candidate);
    for (int i = 0; i < n; i++)
        predicted[i] = e->candidate[i].predicted;
    pick_begin(&e->pick, predicted, n, SIZE_TRIAL_MOST);
    t->effort[class] = e;
    t->under_way++;
    return 0;
}

static void settle(struct size_trial *t, int class, const struct found *f)
{
    t->over[class] = true;
    if (f->best > 0) {
        t->best[class] = f->candidate[f->best].choice;
        t->best[class].named = false;
    }
}

static void end(struct coll_state *state, struct size_trial *t, struct effort *e)
{
    struct found *f = &e->found;
    found_fill(f, &e->pick, e->candidate);
    settle(t, f->class, f);
    found_keep(state->comm->proc, f);
    counter_add(&trials, 1);
    counter_add(&won, f->best > 0);
    t->effort[f->class] = NULL;
    t->under_way--;
    free(e);
}

/* The first session: all ranks know the same, or all try. *may_ns: what the poorest rank may spend. */
static int decide(const struct coll_args *args, struct coll_state *state, const struct size_means *means,
                  const struct call *call, int class, struct size_trial *t, uint64_t *may_ns)
{
    struct proc *p = state->comm->proc;
    struct trial_shape shape = trial_shape_of(state->comm);
    const struct found *known = found_find(p, &shape, args->kind, class);
    const uint64_t mine = found_code(known);
    uint64_t word[5] = {!known, mine, UINT64_MAX - mine, UINT64_MAX - *may_ns, p->net->oversubscribed};
    int rc = means->greatest(args, state, word, (int)COUNT_OF(word));
    if (rc)
        return rc;
    *may_ns = UINT64_MAX - word[3];
    shape.turns = word[4] != 0;
    if (word[0] != 0 || word[1] != UINT64_MAX - word[2])
        return begin(args, state, means, call, &shape, class, t);
    settle(t, class, known);
    counter_add(&saved, 1);
    return 0;
}

/* As many samples as fit into what the poorest rank may spend. */
static int session(const struct coll_args *args, struct coll_state *state, const struct size_means *means,
                   struct effort *e, uint64_t may_ns)
{
    const uint64_t memory = memory_of(args->comm, args->kind, e->found.bytes);
    const uint64_t one = 2 * (e->found.shape.turns ? SAMPLE_TURNS : SAMPLE_NS);
    uint64_t spent = 0;
    char *buffer = malloc(2 * memory);
    CHECK_MEMORY(buffer, "a trial of algorithms");
    memset(buffer, 0, 2 * memory);
    int rc = 0;
    while (!rc && pick_next(&e->pick) >= 0 && e->spent_ns + spent < MOST_NS && spent + one <= may_ns) {
        const uint64_t start = clock_ns();
        rc = try_next(args, state, means, e, buffer);
        uint64_t took = clock_ns() - start;
        if (!rc)
            rc = means->greatest(args, state, &took, 1);
        spent += took;
    }
    free(buffer);
    e->spent_ns += spent;
    trial_spend(state->comm->proc, spent);
    counter_add(&spent_us, spent / 1000);
    return rc;
}

static int go_on(const struct coll_args *args, struct coll_state *state, const struct size_means *means,
                 const struct call *call, int class, struct size_trial *t)
{
    uint64_t may_ns = trial_allowance(state->comm->proc);
    int rc;
    if (!t->effort[class]) {
        rc = decide(args, state, means, call, class, t, &may_ns);
    } else {
        may_ns = UINT64_MAX - may_ns;
        rc = means->greatest(args, state, &may_ns, 1);
        may_ns = UINT64_MAX - may_ns;
    }
    struct effort *e = t->effort[class];
    if (!rc && e)
        rc = session(args, state, means, e, may_ns);
    if (!rc && e && (pick_next(&e->pick) < 0 || e->spent_ns >= MOST_NS))
        end(state, t, e);
    t->over[class] = t->over[class] || rc != 0; /* not again */
    return rc;
}

int size_trial_step(const struct coll_args *args, struct coll_state *state, const struct call *call,
                    const struct size_means *means, const struct coll_choice *choice)
{
    const int class = trial_wanted() ? class_of(args, state, call, choice) : -1;
    if (class < 0)
        return 0;
    struct size_trial **slot = slot_of(state, args->kind), *t = *slot;
    if (!t) {
        t = *slot = calloc(1, sizeof(*t));
        CHECK_MEMORY(t, "the sizes of an operation");
        trial_allowance(args->comm->proc); /* the clock runs from the first call on */
        for (int i = 0; i < SIZE_CLASSES; i++)
            t->next[i] = SIZE_TRIAL_AT;
    }
    if (t->over[class] || ++t->calls[class] < t->next[class])
        return 0;
    t->next[class] += MAX(APART, t->calls[class] / 4);
    return go_on(args, state, means, call, class, t);
}

void size_trial_choose(const struct coll_args *args, const struct coll_state *state, const struct call *call,
                       struct coll_choice *choice)
{
    if (!is_tried(args->kind))
        return;
    const struct size_trial *t = state->size_trial[args->kind - COLL_BCAST];
    const int class = t ? class_of(args, state, call, choice) : -1;
    if (class >= 0 && t->best[class].algorithm && algorithm_fits(t->best[class].algorithm, &call->shape))
        *choice = t->best[class];
}

bool size_trial_is_on(const struct coll_state *state, enum coll_kind kind)
{
    const struct size_trial *t = is_tried(kind) ? state->size_trial[kind - COLL_BCAST] : NULL;
    return t && t->under_way > 0;
}

void size_trial_close(struct coll_state *state)
{
    for (size_t k = 0; k < COUNT_OF(state->size_trial); k++) {
        struct size_trial *t = state->size_trial[k];
        for (int i = 0; t && i < SIZE_CLASSES; i++)
            free(t->effort[i]);
        free(t);
        state->size_trial[k] = NULL;
    }
}
