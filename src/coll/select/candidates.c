/* candidates.c: lists the schedules to be measured for an operation and size, with their predicted times by a
 * model of latency per round, overhead per message and time per byte [Hoefler05 2.1; the usual equations of
 * each algorithm]. The constants are rounded values of softib on two x86-64 cores. They only exclude
 * candidates that are much slower; measurements find the sizes at which one good algorithm becomes faster
 * than another.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "coll/select/tuning.h"

#define KI       1024u
#define HOPELESS 3 /* a candidate that is predicted to be 3 times slower than the fastest is not tried */

/* Times in us: START per round, MESSAGE per message, BYTE per byte. START_TURNS replaces START if ranks
 * share processors: a round then ends after every rank has been scheduled. */
#define START       1.5
#define START_TURNS 15.0
#define MESSAGE     0.4
#define BYTE        0.0002

/* rounds = one + by_log * log2(ranks) + by_rank * (ranks - 1). messages: sent by the busiest rank, per
 * other rank. Data volume of a rank, in vectors or blocks = once + bytes_log * log2(ranks) + bytes_rank *
 * (ranks - 1) + bytes_both * log2(ranks) * ranks */
#define KIND(kind) (1u << COLL_##kind)
static const struct equation {
    unsigned kinds;
    const char *name;
    double one, by_log, by_rank, messages, once, bytes_log, bytes_rank, bytes_both;
} equations[] = {
    {~0u, "linear", .one = 1, .messages = 1, .bytes_rank = 1},
    {KIND(BCAST) | KIND(REDUCE), "binomial", .by_log = 1, .bytes_log = 1},
    {KIND(GATHER) | KIND(SCATTER), "binomial", .by_log = 1, .bytes_rank = 1},
    {KIND(BCAST), "scatter_ring", .by_log = 1, .by_rank = 1, .once = 2},
    {KIND(REDUCE) | KIND(ALLREDUCE), "rabenseifner", .by_log = 2, .once = 2},
    {KIND(ALLREDUCE), "recursive_doubling", .by_log = 1, .bytes_log = 1},
    {KIND(ALLREDUCE), "reduce_bcast", .by_log = 2, .bytes_log = 2},
    {KIND(ALLREDUCE), "ring", .by_rank = 2, .once = 2},
    {KIND(ALLGATHER), "recursive_doubling", .by_log = 1, .bytes_rank = 1},
    {KIND(ALLGATHER), "bruck", .by_log = 1, .bytes_rank = 1},
    {KIND(ALLGATHER), "neighbor_exchange", .by_rank = 0.5, .bytes_rank = 1},
    {KIND(ALLGATHER), "ring", .by_rank = 1, .bytes_rank = 1},
    {KIND(ALLTOALL), "bruck", .by_log = 1, .bytes_both = 0.5},
    {KIND(ALLTOALL), "pairwise", .by_rank = 1, .bytes_rank = 1},
};

/* Returns the predicted time of a pipeline through all ranks. */
static double predict_chain(const struct coll_choice *c, int ranks, double bytes, double start)
{
    const double segment = c->segment && (double)c->segment < bytes ? (double)c->segment : bytes;
    return (ranks - 2 + bytes / segment) * (start + segment * BYTE);
}

/* Returns the smallest k with 2^k >= ranks. */
static int count_doubling_rounds(int ranks)
{
    int k = 0;
    while ((int64_t)1 << k < ranks)
        k++;
    return k;
}

static double tuning_predict(const struct coll_choice *c, int ranks, uint64_t bytes, bool turns)
{
    const double start = turns ? START_TURNS : START, all = ranks - 1, log = count_doubling_rounds(ranks);
    if (strcmp(c->algorithm->name, "chain") == 0)
        return predict_chain(c, ranks, (double)bytes, start);
    for (size_t i = 0; i < COUNT_OF(equations); i++) {
        const struct equation *e = &equations[i];
        if (e->kinds >> c->algorithm->kind & 1 && strcmp(e->name, c->algorithm->name) == 0)
            return start * (e->one + e->by_log * log + e->by_rank * all) + MESSAGE * e->messages * all +
                   BYTE * (double)bytes *
                       (e->once + e->bytes_log * log + e->bytes_rank * all + e->bytes_both * log * ranks);
    }
    return start; /* no equation: the candidate is always tried */
}

struct candidate_list {
    int count;
    struct coll_candidate candidate[64];
};

static bool candidates_contain(const struct candidate_list *l, const struct coll_choice *c)
{
    for (int i = 0; i < l->count; i++)
        if (l->candidate[i].choice.algorithm == c->algorithm &&
            l->candidate[i].choice.segment == c->segment && l->candidate[i].choice.window == c->window)
            return true;
    return false;
}

/* Inserts a candidate after the rules' choice (index 0), sorted by predicted time. */
static void candidates_add(struct candidate_list *l, const struct coll_choice *c,
                           const struct coll_shape *shape, uint64_t bytes, bool turns)
{
    if (l->count == (int)COUNT_OF(l->candidate) || candidates_contain(l, c))
        return;
    const struct coll_candidate new = {.choice = *c,
                                       .predicted = tuning_predict(c, shape->size, bytes, turns)};
    int at = l->count++;
    for (; at > 1 && l->candidate[at - 1].predicted > new.predicted; at--)
        l->candidate[at] = l->candidate[at - 1];
    l->candidate[at] = new;
}

static void add_all(struct candidate_list *l, const struct coll_shape *shape, uint64_t bytes, bool turns,
                    const struct coll_choice *rule)
{
    static const uint64_t segments[] = {16 * KI, 64 * KI, 256 * KI};
    for (size_t i = 0; i < algorithms_count(); i++) {
        const struct coll_algorithm *a = algorithms_get(i);
        if (!a->generate || (a->needs & (NEED_NODE | NEED_NODES | NEED_INTER)) || !algorithm_fits(a, shape))
            continue;
        struct coll_choice c = {.algorithm = a, .window = a->window ? rule->window : 0};
        candidates_add(l, &c, shape, bytes, turns);
        if (a->window && shape->size > 8) {
            c.window = 8;
            candidates_add(l, &c, shape, bytes, turns);
        }
        for (size_t k = 0; a->segment && k < COUNT_OF(segments) && segments[k] < bytes; k++) {
            c.segment = segments[k];
            candidates_add(l, &c, shape, bytes, turns);
        }
    }
}

int tuning_candidates(const struct coll_shape *shape, uint64_t bytes, bool turns,
                      const struct coll_choice *rule, int most, struct coll_candidate *out)
{
    struct candidate_list l = {0};
    int n = 0;
    candidates_add(&l, rule, shape, bytes, turns);
    add_all(&l, shape, bytes, turns, rule);
    double least = l.candidate[0].predicted;
    if (l.count > 1)
        least = MIN(least, l.candidate[1].predicted);
    for (int i = 0; i < l.count && n < most; i++)
        if (i == 0 || l.candidate[i].predicted <= HOPELESS * least)
            out[n++] = l.candidate[i];
    return n;
}

void tuning_name(const struct coll_choice *c, char *out, size_t size)
{
    int used = snprintf(out, size, "%s", c->algorithm->name);
    if (c->segment && used > 0 && (size_t)used < size)
        used += snprintf(out + used, size - (size_t)used, ":segment=%uk", (unsigned)(c->segment / KI));
    if (c->window && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, ":window=%d", c->window);
}

/* ---- classes ---- */

int tuning_class(uint64_t bytes)
{
    int class = 0;
    while (class < TUNING_CLASSES && bytes > tuning_limit(class))
        class ++;
    return bytes > 0 && class < TUNING_CLASSES ? class : -1;
}

uint64_t tuning_limit(int class)
{
    return ((uint64_t)64 << class / 2) - (class % 2 == 0);
}
