/* multicast_trial.c: each class of sizes is decided on its own: multicast may lose where processors are the bottleneck (short
 * messages) and win where links are (long ones), or the other way round where packets are lost. A sample is several calls.
 * Broadcasts have another root each: a root must have received the one before, so the time until all have the data is measured, not
 * how fast a root can send.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/multicast_trial.h"

#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/counter.h"
#include "boot/boot.h"
#include "coll/found.h"
#include "coll/multicast_part.h"
#include "coll/pick.h"

#define NODES        3         /* a multicast to one other node is a message */
#define WARM         2         /* calls before a sample */
#define FEWEST       4         /* in a sample, ... */
#define MOST         256       /* ... and at most */
#define SAMPLE_NS    500000    /* one sample */
#define MOST_NS      200000000 /* the whole trial, unless more is allowed at once */
#define APART        32        /* calls from one session to the next, at least */
#define MULTICAST    1         /* candidates: the rules' choice, then this */
#define PARTICIPANTS 2
#define CLASSES      5

static COUNTER(
    trials, "coll_multicast_trials",
    "Trials whether the broadcasts, allgathers or allreduces of a communicator are faster by multicast.");
static COUNTER(won, "coll_multicast_trials_won", "Such trials after which some sizes go by multicast.");
static COUNTER(spent_us, "coll_multicast_trial_us", "Microseconds spent on such trials.");

struct multicast_trial {
    enum coll_kind kind;
    uint32_t calls, next; /* blocking calls; the one in which the trial goes on */
    int step;             /* the class of sizes that is tried */
    bool begun, over, refused;
    struct pick pick;
    int batch[PARTICIPANTS]; /* calls of a sample; 0: not warm yet */
    uint64_t spent_ns;
    struct coll_choice choice;   /* multicast, without a limit */
    unsigned won;                /* bit i: multicast is faster for class i */
    struct found found[CLASSES]; /* for people, when it is over */
};

static struct multicast_trial **slot_of(struct coll_state *state, enum coll_kind kind)
{
    return &state->multicast_trial[kind == COLL_BCAST ? 0 : kind == COLL_ALLGATHER ? 1 : 2];
}

/* A short message, one packet, some packets, a window of them, more than windows and buffers hold. */
static const struct {
    uint64_t tried, limit;
} classes[CLASSES] = {
    {64, 512}, {2048, 4096}, {8192, 16 * 1024}, {48 * 1024, 128 * 1024}, {512 * 1024, 2048 * 1024}};

uint64_t multicast_trial_size(int step)
{
    return step < (int)COUNT_OF(classes) ? classes[step].tried : 0;
}

uint64_t multicast_trial_limit(int class)
{
    return classes[class].limit;
}

int multicast_trial_class(uint64_t bytes)
{
    int i = 0;
    while (i < (int)COUNT_OF(classes) && bytes > classes[i].limit)
        i++;
    return bytes > 0 && i < (int)COUNT_OF(classes) ? i : -1;
}

/* One call of the size that is tried; allgather and allreduce in place. */
static struct coll_args call_of(const struct coll_args *args, const struct multicast_trial *t, char *buffer,
                                int i)
{
    struct coll_args one = {.kind = t->kind, .name = args->name, .comm = args->comm};
    one.recv = (struct coll_side){
        .buf = buffer, .count = (MPI_Count)multicast_trial_size(t->step), .type = byte_type()};
    one.in_place = t->kind != COLL_BCAST;
    if (t->kind == COLL_ALLREDUCE)
        one.op = op_from(MPI_BOR);
    if (t->kind == COLL_BCAST)
        one.root = i % args->comm->size;
    if (one.in_place)
        one.send = one.recv;
    return one;
}

static char *buffer_for(const struct comm *c, const struct multicast_trial *t)
{
    const size_t blocks = t->kind == COLL_ALLGATHER ? (size_t)c->size : 1;
    char *buffer = calloc(blocks, MAX(multicast_trial_size(t->step), 1u));
    CHECK_MEMORY(buffer, "a trial of multicast");
    return buffer;
}

/* n calls; *ns is the time of one, of the slowest rank. *went: all of them by the candidate. */
static int sample(const struct coll_args *args, struct coll_state *state, struct multicast_trial *t,
                  const struct multicast_means *means, int candidate, char *buffer, int n, uint64_t *ns,
                  bool *went)
{
    int rc = 0;
    const uint64_t start = clock_ns();
    *went = true;
    for (int i = 0; i < n && !rc && *went; i++) {
        const struct coll_args one = call_of(args, t, buffer, i);
        rc = means->run(&one, state, candidate == MULTICAST ? &t->choice : NULL, went);
    }
    *ns = (clock_ns() - start) / (unsigned)n;
    return rc || !*went ? rc : means->greatest(args, state, ns, 1);
}

/* One sample of whoever is next. Multicast that the network refuses has lost, at all ranks. */
static int try_next(const struct coll_args *args, struct coll_state *state, struct multicast_trial *t,
                    const struct multicast_means *means, char *buffer)
{
    const int next = pick_next(&t->pick);
    int *batch = &t->batch[next];
    uint64_t ns = 0;
    bool went;
    int rc = sample(args, state, t, means, next, buffer, WARM * (*batch ? 1 : 2), &ns, &went);
    if (!rc && went && *batch == 0) {
        const uint64_t fit = SAMPLE_NS / MAX(ns, 1u);
        *batch = (int)MAX(FEWEST, MIN(fit, MOST));
    }
    if (!rc && went)
        rc = sample(args, state, t, means, next, buffer, *batch, &ns, &went);
    if (!rc)
        pick_record(&t->pick, went ? ns : UINT64_MAX / 2);
    t->refused = t->refused || !went;
    t->over = t->over || !went;
    return rc;
}

static void begin_size(struct multicast_trial *t)
{
    static const double predicted[PARTICIPANTS] = {1, 1};
    pick_begin(&t->pick, predicted, PARTICIPANTS, PARTICIPANTS);
    t->batch[0] = t->batch[1] = 0;
}

/* What was measured for this class. One that is not decided stays with the rules. */
static int note(const struct coll_args *args, struct coll_state *state, struct multicast_trial *t,
                const struct multicast_means *means, bool decided)
{
    struct trial_candidate list[PARTICIPANTS] = {[MULTICAST] = {.choice = t->choice}};
    struct found *f = &t->found[t->step];
    *f = (struct found){.shape = trial_shape_of(state->comm),
                        .kind = t->kind,
                        .multicast = true,
                        .class = t->step,
                        .bytes = multicast_trial_size(t->step)};
    const struct coll_args one = call_of(args, t, NULL, 0);
    int rc = means->rules(&one, state, &list[0].choice);
    if (rc)
        return rc;
    if (!t->refused)
        found_fill(f, &t->pick, list);
    f->best = decided ? f->best : 0;
    f->undecided = !decided;
    return 0;
}

/* A class is decided. */
static void end_size(struct multicast_trial *t)
{
    if (pick_best(&t->pick) == MULTICAST)
        t->won |= 1u << t->step;
    if (multicast_trial_size(++t->step) == 0)
        t->over = true;
    else
        begin_size(t);
}

/* Another kind of call has found multicast faster, or may. */
static bool is_used(const struct coll_state *state)
{
    for (int i = 0; i < MULTICAST_KINDS; i++) {
        const struct multicast_trial *t = state->multicast_trial[i];
        if (t && (t->won || (t->begun && !t->over)))
            return true;
    }
    return false;
}

static int end(const struct coll_args *args, struct coll_state *state, struct multicast_trial *t,
               const struct multicast_means *means)
{
    const bool all = t->step == CLASSES;
    int rc = all ? 0 : note(args, state, t, means, false);
    for (int i = 0; i < t->step + !all; i++)
        found_keep(state->comm->proc, &t->found[i]);
    counter_add(&trials, 1);
    if (t->won)
        counter_add(&won, 1);
    else if (!is_used(state))
        multicast_forget(state);
    return rc;
}

/* What the poorest rank may spend, in ns; 0 also when a rank has found that the network refuses. */
static int agree(const struct coll_args *args, struct coll_state *state, const struct multicast_means *means,
                 uint64_t *may_ns, bool *refused)
{
    struct proc *p = state->comm->proc;
    uint64_t word[2] = {UINT64_MAX - trial_allowance(p), p->net->multicast_refused};
    int rc = means->greatest(args, state, word, (int)COUNT_OF(word));
    *may_ns = UINT64_MAX - word[0];
    *refused = word[1] != 0;
    return rc;
}

/* As many samples as fit into what the poorest rank may spend. */
static int session(const struct coll_args *args, struct coll_state *state, struct multicast_trial *t,
                   const struct multicast_means *means)
{
    uint64_t left = 0, spent = 0;
    bool refused = false;
    int rc = agree(args, state, means, &left, &refused);
    char *buffer = buffer_for(state->comm, t);
    t->refused = refused && !t->choice.named;
    t->over = t->over || t->refused;
    while (!rc && !t->over && spent + 2 * SAMPLE_NS <= left) {
        const uint64_t begin = clock_ns();
        t->begun = true;
        rc = try_next(args, state, t, means, buffer);
        uint64_t took = clock_ns() - begin;
        if (!rc)
            rc = means->greatest(args, state, &took, 1);
        spent += took;
        if (!rc && !t->over && t->spent_ns + spent + 2 * SAMPLE_NS > MAX(left, MOST_NS))
            t->over = true;
        if (!rc && !t->over && pick_next(&t->pick) < 0) {
            rc = note(args, state, t, means, true);
            end_size(t);
            free(buffer);
            buffer = buffer_for(state->comm, t);
        }
    }
    free(buffer);
    t->spent_ns += spent;
    trial_spend(state->comm->proc, spent);
    counter_add(&spent_us, spent / 1000);
    if (t->over && !rc)
        rc = end(args, state, t, means);
    t->over = t->over || rc != 0; /* not again */
    return rc;
}

static struct multicast_trial *make(const struct coll_args *args, const struct coll_choice *choice)
{
    struct multicast_trial *t = calloc(1, sizeof(*t));
    CHECK_MEMORY(t, "a trial of multicast");
    const bool named = choice->named && choice->algorithm->kind == COLL_BCAST;
    t->kind = args->kind;
    t->next = MULTICAST_TRIAL_AT;
    t->choice = named ? *choice : multicast_preset();
    t->choice.named = choice->named;
    t->choice.parameter[PARAMETER_MAX] = INT_MAX;
    t->over = !trial_wanted() || args->comm->coll->node_count < NODES;
    trial_allowance(args->comm->proc); /* the clock runs from the first call on */
    begin_size(t);
    return t;
}

int multicast_trial_step(const struct coll_args *args, struct coll_state *state,
                         const struct multicast_means *means, const struct coll_choice *choice)
{
    struct multicast_trial **slot = slot_of(state, args->kind);
    if (!*slot)
        *slot = make(args, choice);
    struct multicast_trial *t = *slot;
    if (t->over || ++t->calls < t->next)
        return 0;
    t->next += MAX(APART, t->calls / 4);
    return session(args, state, t, means);
}

bool multicast_trial_wants(const struct coll_state *state, const struct coll_choice *choice)
{
    const enum coll_kind kind = choice->algorithm->kind;
    if (!state->nodes || state->multicast_opening || state->comm->remote ||
        (kind != COLL_BCAST && kind != COLL_ALLGATHER && kind != COLL_ALLREDUCE))
        return false;
    if (!choice
             ->named) /* which of two ways a sum is taken must not depend on the clock unless somebody asks for it */
        return kind != COLL_ALLREDUCE && state->node_count >= NODES;
    return (choice->algorithm->needs & NEED_NODES) &&
           choice->parameter[kind == COLL_BCAST ? PARAMETER_TRY : 0] != 0;
}

bool multicast_trial_won(struct coll_state *state, enum coll_kind kind, uint64_t bytes,
                         struct coll_choice *choice)
{
    const struct multicast_trial *t = *slot_of(state, kind);
    const int class = multicast_trial_class(bytes);
    if (!t || !t->over || !coll_takes_trials() || class < 0 || !(t->won >> class & 1) || !state->multicast)
        return false;
    *choice = t->choice;
    return true;
}

void multicast_trial_close(struct coll_state *state)
{
    for (int i = 0; i < MULTICAST_KINDS; i++) {
        free(state->multicast_trial[i]);
        state->multicast_trial[i] = NULL;
    }
}
