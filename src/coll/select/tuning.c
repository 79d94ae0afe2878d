/* tuning.c: the sessions of tuning.h. A sample consists of several calls. Rooted operations use a different
 * root in each call: a root must complete its part of the previous call first, so the sample measures
 * complete operations, not how fast one rank can run ahead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/select/tuning.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/tunable.h"
#include "coll/executor.h"
#include "coll/multicast/multicast.h"
#include "coll/select/results.h"
#include "tune/setting.h"

#define WARM            2      /* calls before a sample */
#define FEWEST          3      /* fewest calls of a sample */
#define MOST            256    /* most calls of a sample */
#define SAMPLE_NS       200000 /* time (ns) of one sample */
#define SAMPLE_TURNS    500000 /* time (ns) of one sample if ranks share processors */
#define SESSION_SAMPLES 96     /* limit of samples in one session */
#define APART           32     /* minimum number of calls between two sessions */
#define MEMORY          (16u << 20)
#define MULTICAST_NODES 3 /* minimum number of nodes: with two nodes a multicast is just a message */
#define DECLINED        UINT32_MAX

static TUNABLE_INT(
    budget, "COLL_TRY", 2, 0, 100,
    "Percent of the time since the first collective that communicators on several nodes may "
    "spend on measuring which algorithm, segment size or multicast is fastest for bcast, gather, scatter, "
    "allgather, alltoall, reduce and allreduce, for each class of sizes (each power of two, and "
    "the sizes between two of them). Measuring begins with the 24th blocking call of an operation "
    "and size. The results serve all communicators of that shape (nodes, ranks). When a reduction "
    "changes its algorithm, the last bits of floating-point sums may change; "
    "FISHPLATE_COLL=deterministic keeps them. 0: measure nothing; the built-in rules decide. "
    "100: no limit.");

static COUNTER(
    measured, "coll_tuned",
    "Operations and size classes for which a communicator on several nodes has measured all candidates.");
static COUNTER(changed, "coll_tuned_changed",
               "Operations and size classes (of coll_tuned) whose fastest candidate is not the choice of the "
               "built-in rules.");
static COUNTER(reused, "coll_tuned_reused",
               "Operations and size classes whose measurements were taken over from another communicator of "
               "the same shape.");
static COUNTER(spent_us, "coll_tuning_us", "Microseconds spent on measuring candidates.");

/* Times since the first measurement and spent on measurements, of this process. */
struct coll_budget {
    uint64_t begin_ns, spent_ns;
};

/* The state of one size class of an operation. */
struct tuned {
    struct tune tune;
    struct result result; /* the candidates and their measured times */
    /* bytes of the measured calls: the size of the user's call at which the first session began */
    uint64_t bytes;
    bool turns; /* ranks share processors */
    bool all_measured;
    bool declined[TUNE_CANDIDATES]; /* the candidate's executor has declined the call, at all ranks */
    int batch[TUNE_CANDIDATES];     /* calls of one sample; 0: not known yet */
};

struct coll_tuning {
    struct {
        uint32_t calls, next; /* blocking calls so far; number of the call with the next session */
        struct tuned *tuned;  /* NULL until the first session */
    } class[COLL_ALLREDUCE][TUNING_CLASSES];
    bool opened_multicast; /* the group was opened for a candidate */
};

/* ---- what is tuned ---- */

static bool is_tuned(enum coll_kind kind)
{
    return kind >= COLL_BCAST && kind <= COLL_ALLREDUCE;
}

static bool has_blocks(enum coll_kind kind)
{
    return kind >= COLL_GATHER && kind <= COLL_ALLTOALL;
}

/* Returns the bytes of each of the two test buffers. */
static uint64_t test_buffer_bytes(const struct comm *c, enum coll_kind kind, uint64_t bytes)
{
    return bytes * (has_blocks(kind) ? (uint64_t)c->size : 1);
}

/* Returns the size class of the call, or -1 if it is not tuned. Samples must take the same time as the
 * call, so the data size must be the same at all ranks and the operator commutative. */
static int call_get_class(const struct call *call, const struct coll_choice *choice)
{
    const struct coll_state *state = call->state;
    const enum coll_kind kind = call->args->kind;
    if (!state->nodes || state->multicast_opening || !is_tuned(kind) || choice->named ||
        !coll_uses_measurements() || !tune_is_enabled() || !choice->algorithm->generate ||
        !call->shape.adjacent || !call->shape.commutative || (kind_reduces(kind) && coll_is_deterministic()))
        return -1;
    const int class = tuning_class(call->where.bytes);
    return class >= 0 && test_buffer_bytes(state->comm, kind, tuning_limit(class)) > MEMORY ? -1 : class;
}

static struct coll_budget *get_budget(struct proc *p)
{
    if (!p->coll_budget) {
        struct coll_budget *b = p->coll_budget = calloc(1, sizeof(*b));
        CHECK_MEMORY(b, "the budget of measurements");
        b->begin_ns = clock_ns();
    }
    return p->coll_budget;
}

/* Returns the time in ns that this process may spend on samples now; UINT64_MAX: no limit. */
static uint64_t tuning_allowance(struct proc *p)
{
    const struct coll_budget *b = get_budget(p);
    const uint64_t all = (clock_ns() - b->begin_ns) / 100 * (uint64_t)budget.value;
    return budget.value == 100 ? UINT64_MAX : all > b->spent_ns ? all - b->spent_ns : 0;
}

/* ---- calls of the library's own ---- */

/* Replaces each word by its maximum over all ranks, in messages with the tag of the user's call. */
static int tuning_agree_maximum(const struct call *user, uint64_t *word, int words)
{
    const struct coll_side side = {.buf = word, .count = words, .type = dtype_from_handle(MPI_UINT64_T)};
    const struct coll_args args = {.kind = COLL_ALLREDUCE,
                                   .name = user->args->name,
                                   .comm = user->args->comm,
                                   .send = side,
                                   .recv = side,
                                   .op = op_from_handle(MPI_MAX),
                                   .in_place = true};
    const struct coll_choice choice = {.algorithm = algorithm_find(COLL_ALLREDUCE, "recursive_doubling")};
    struct call call;
    int rc = call_make(&call, &args, user->state, FORM_BLOCKING);
    call.messages_of = user->args;
    if (!rc)
        executor_try(&call, &choice, NULL, &rc);
    call_free(&call);
    return rc;
}

static struct coll_args sample_args(const struct call *user, uint64_t bytes, char *buffer, int i)
{
    const struct coll_args *args = user->args;
    struct coll_args one = {.kind = args->kind, .name = args->name, .comm = args->comm};
    char *const second = buffer ? buffer + test_buffer_bytes(args->comm, args->kind, bytes) : NULL;
    one.send = make_bytes_side(second, bytes);
    one.recv = make_bytes_side(buffer, bytes);
    if (kind_reduces(args->kind))
        one.op = op_from_handle(MPI_BOR);
    if (kind_has_root(args->kind))
        one.root = i % args->comm->size;
    return one;
}

/* Makes n calls; *ns is the mean time of a call at this rank. */
static int run_calls(const struct call *user, struct tuned *t, unsigned candidate, char *buffer, int n,
                     uint64_t *ns)
{
    const uint64_t start = clock_ns();
    int rc = 0;
    for (int i = 0; i < n && !rc && !t->declined[candidate]; i++) {
        const struct coll_args args = sample_args(user, t->bytes, buffer, i);
        struct call call;
        rc = call_make(&call, &args, user->state, FORM_BLOCKING);
        if (!rc)
            t->declined[candidate] = !executor_try(&call, &t->result.candidate[candidate].choice, NULL, &rc);
        call_free(&call);
    }
    *ns = (clock_ns() - start) / (unsigned)n;
    return rc;
}

/* ---- sessions ---- */

static uint64_t sample_ns(const struct tuned *t)
{
    return t->turns ? SAMPLE_TURNS : SAMPLE_NS;
}

/* Measures one sample for the tuner. Adds the time of the slowest rank to *spent. */
static int tuning_sample(const struct call *user, struct tuned *t, char *buffer, uint64_t *spent)
{
    struct tune_ticket ticket = tune_pick_candidate(&t->tune, UINT32_MAX);
    const unsigned c = ticket.candidate;
    const uint64_t start = clock_ns();
    uint64_t word[2] = {DECLINED, 0};
    int rc = 0;
    if (!t->declined[c]) {
        rc = run_calls(user, t, c, buffer, WARM * (t->batch[c] ? 1 : 2), &word[0]);
        if (!rc && t->batch[c] == 0) {
            rc = tuning_agree_maximum(user, word, 1);
            t->batch[c] = (int)MAX(FEWEST, MIN(sample_ns(t) / MAX(word[0], 1u), MOST));
        }
        if (!rc)
            rc = run_calls(user, t, c, buffer, t->batch[c], &word[0]);
        word[0] = t->declined[c] ? DECLINED : MIN(word[0], DECLINED - 1);
        word[1] = clock_ns() - start;
        if (!rc)
            rc = tuning_agree_maximum(user, word, 2);
    }
    tune_report(&t->tune, &ticket, word[0], rc == 0);
    *spent += word[1];
    return rc;
}

static bool has_measured_all(const struct tuned *t)
{
    for (int i = 0; i < t->result.count; i++)
        if (!t->tune.candidate[i].measured)
            return false;
    return true;
}

/* Stores the result for other communicators and for display. */
static void store_result(struct proc *p, struct tuned *t)
{
    struct result *r = &t->result;
    r->best = (int)tune_best(&t->tune);
    for (int i = 0; i < r->count; i++)
        r->ns[i] = t->declined[i] || !t->tune.candidate[i].measured ? 0 : t->tune.candidate[i].cost;
    result_store(p, r);
    if (t->all_measured)
        return;
    t->all_measured = true;
    counter_add(&measured, 1);
    counter_add(&changed, r->best > 0);
}

/* Runs samples until the allowance (smallest of all ranks) is spent. If all candidates are measured, only
 * one sample, to detect changes, or all samples of an examination in progress. */
static int tuning_run_session(const struct call *user, struct tuned *t, uint64_t may_ns)
{
    struct proc *p = user->state->comm->proc;
    const uint64_t memory = test_buffer_bytes(user->args->comm, user->args->kind, t->bytes);
    uint64_t spent = 0;
    char *buffer = malloc(2 * memory);
    CHECK_MEMORY(buffer, "measuring algorithms");
    memset(buffer, 0, 2 * memory);
    int rc = 0;
    for (int i = 0; !rc && i < SESSION_SAMPLES && spent + 2 * sample_ns(t) <= may_ns; i++) {
        if (i > 0 && has_measured_all(t) && !tune_is_examining(&t->tune))
            break;
        rc = tuning_sample(user, t, buffer, &spent);
    }
    free(buffer);
    get_budget(p)->spent_ns += spent;
    counter_add(&spent_us, spent / 1000);
    if (!rc && has_measured_all(t))
        store_result(p, t);
    return rc;
}

static bool may_multicast(const struct coll_state *state, bool refused)
{
    return !refused && state->node_count >= MULTICAST_NODES;
}

static int list_candidates(const struct call *user, struct tuned *t, bool refused)
{
    const struct coll_args args = sample_args(user, t->bytes, NULL, 0);
    struct coll_choice multicast;
    struct call call;
    struct result *r = &t->result;
    int rc = call_make(&call, &args, user->state, FORM_BLOCKING);
    if (rc)
        return rc;
    const struct coll_choice rule = coll_select(&call.shape, &call.where, true);
    r->count = tuning_candidates(&call.shape, t->bytes, t->turns, &rule, TUNE_CANDIDATES - 1, r->candidate);
    if (may_multicast(user->state, refused) && multicast_candidate(args.kind, &multicast))
        r->candidate[r->count++] = (struct coll_candidate){.choice = multicast};
    call_free(&call);
    return 0;
}

/* Starts the tuner, with earlier measurements for the same shape if all ranks have them. */
static int open_tuner(const struct call *user, struct tuned *t)
{
    const struct result *r = &t->result;
    const struct result *known = result_find(user->state->comm->proc, &r->shape, r->kind, r->class);
    uint64_t word[TUNE_CANDIDATES];
    uint32_t prior[TUNE_CANDIDATES] = {0};
    for (int i = 0; i < r->count; i++) {
        const uint32_t ns = result_get_cost(known, &r->candidate[i].choice);
        word[i] = ns ? ns : UINT64_MAX;
    }
    const int rc = tuning_agree_maximum(user, word, r->count);
    for (int i = 0; i < r->count; i++)
        prior[i] = word[i] == UINT64_MAX ? 0 : (uint32_t)word[i];
    t->all_measured = !rc && prior[0] != 0;
    tune_open(&t->tune, (unsigned)r->count, t->all_measured ? prior : NULL);
    counter_add(&reused, t->all_measured);
    return rc;
}

/* Creates the tuning state with the same candidates at all ranks. refused: the network has refused a
 * multicast group to some rank. */
static int tuning_begin(const struct call *user, int class, bool turns, bool refused, struct tuned **out)
{
    struct tuned *t = calloc(1, sizeof(*t));
    CHECK_MEMORY(t, "measuring algorithms");
    t->result =
        (struct result){.shape = {user->state->comm->size, user->state->node_count, user->state->node_ranks},
                        .kind = user->args->kind,
                        .class = class};
    t->bytes = user->where.bytes; /* the same at all ranks, like all inputs of the selection */
    t->turns = turns;
    int rc = list_candidates(user, t, refused);
    rc = rc ? rc : open_tuner(user, t);
    *out = t;
    return rc;
}

/* Closes the multicast group if no tuned operation uses it: an open group adds a queue to every poll. */
static void close_unused_group(struct coll_state *state)
{
    struct coll_tuning *t = state->tuning;
    if (!t->opened_multicast)
        return;
    for (int kind = 0; kind < COLL_ALLREDUCE; kind++)
        for (int i = 0; i < TUNING_CLASSES; i++) {
            const struct tuned *one = t->class[kind][i].tuned;
            if (one && (one->result.candidate[tune_best(&one->tune)].choice.algorithm->needs & NEED_NODES))
                return;
        }
    t->opened_multicast = false;
    executors_reselect(state);
}

static int run_session(const struct call *user, int class, struct tuned **t)
{
    struct coll_state *state = user->state;
    struct proc *p = state->comm->proc;
    const bool had_group = state->multicast != NULL;
    uint64_t word[3] = {UINT64_MAX - tuning_allowance(p), p->net->oversubscribed, p->net->multicast_refused};
    int rc = tuning_agree_maximum(user, word, (int)COUNT_OF(word));
    const bool is_new = !*t;
    if (!rc && is_new)
        rc = tuning_begin(user, class, word[1] != 0, word[2] != 0, t);
    if (!rc && !(is_new && (*t)->all_measured))
        rc = tuning_run_session(user, *t, UINT64_MAX - word[0]);
    state->tuning->opened_multicast |= !had_group && state->multicast;
    close_unused_group(state);
    return rc;
}

/* ---- interface ---- */

static struct coll_tuning *get_tuning(struct coll_state *state)
{
    if (!state->tuning) {
        struct coll_tuning *t = state->tuning = calloc(1, sizeof(*t));
        CHECK_MEMORY(t, "choosing algorithms by their cost");
        for (int kind = 0; kind < COLL_ALLREDUCE; kind++)
            for (int i = 0; i < TUNING_CLASSES; i++)
                t->class[kind][i].next = TUNING_AT;
        tuning_allowance(state->comm->proc); /* start the clock of the time budget */
    }
    return state->tuning;
}

/* True if the call can use this choice: allgather and allreduce by multicast support only blocking calls. */
static bool is_choice_usable(const struct call *call, const struct coll_choice *best)
{
    if (best->algorithm->needs & NEED_NODES)
        return call->form == FORM_BLOCKING || call->args->kind == COLL_BCAST;
    return algorithm_fits(best->algorithm, &call->shape);
}

int tuning_select(struct call *call, struct coll_choice *choice)
{
    const int class = call_get_class(call, choice);
    if (class < 0)
        return 0;
    const enum coll_kind kind = call->args->kind;
    struct coll_tuning *all = get_tuning(call->state);
    struct tuned **t = &all->class[kind - COLL_BCAST][class].tuned;
    uint32_t *calls = &all->class[kind - COLL_BCAST][class].calls;
    uint32_t *next = &all->class[kind - COLL_BCAST][class].next;
    if (call->form == FORM_BLOCKING && budget.value != 0 && ++*calls >= *next) {
        *next += MAX(APART, *calls / 4);
        const int rc = run_session(call, class, t);
        if (rc)
            return rc;
    }
    if (*t) {
        const struct coll_choice *best = &(*t)->result.candidate[tune_best(&(*t)->tune)].choice;
        if (is_choice_usable(call, best))
            *choice = *best;
    }
    return 0;
}

void tuning_close(struct coll_state *state)
{
    for (int kind = 0; state->tuning && kind < COLL_ALLREDUCE; kind++)
        for (int i = 0; i < TUNING_CLASSES; i++)
            free(state->tuning->class[kind][i].tuned);
    free(state->tuning);
    state->tuning = NULL;
}
