/* size_list.c: the schedules that may be worth trying for an operation and size, and what they cost by a model of start-up time,
 * overhead of a message and time of a byte [Hoefler05 2.1; the usual equations of each algorithm]. The numbers are round ones near
 * those of softib on two x86-64 cores. They only have to keep out what is hopeless: sizes and processors at which two good
 * algorithms change places are what the trial is for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "coll/model.h"
#include "coll/size_trial.h"

#define KI 1024u

/* us; where ranks take turns on processors, a round takes until everybody has had a turn */
#define START       1.5
#define START_TURNS 15.0
#define MESSAGE     0.4
#define BYTE        0.0002

/* rounds = one + by_log * log2(ranks) + by_rank * (ranks - 1); messages of the busiest rank; bytes that it moves, in vectors or blocks:
 * once + bytes_log * log2 + bytes_rank * (ranks - 1), + bytes_both * log2 * ranks */
static const struct equation {
    enum coll_kind kind;
    const char *name;
    double one, by_log, by_rank, messages, once, bytes_log, bytes_rank, bytes_both;
} equations[] = {
    {COLL_BCAST, "binomial", .by_log = 1, .bytes_log = 1},
    {COLL_BCAST, "linear", .one = 1, .messages = 1, .bytes_rank = 1},
    {COLL_BCAST, "scatter_ring", .by_log = 1, .by_rank = 1, .once = 2},
    {COLL_GATHER, "linear", .one = 1, .messages = 1, .bytes_rank = 1},
    {COLL_GATHER, "binomial", .by_log = 1, .bytes_rank = 1},
    {COLL_SCATTER, "linear", .one = 1, .messages = 1, .bytes_rank = 1},
    {COLL_SCATTER, "binomial", .by_log = 1, .bytes_rank = 1},
    {COLL_ALLGATHER, "recursive_doubling", .by_log = 1, .bytes_rank = 1},
    {COLL_ALLGATHER, "bruck", .by_log = 1, .bytes_rank = 1},
    {COLL_ALLGATHER, "neighbor_exchange", .by_rank = 0.5, .bytes_rank = 1},
    {COLL_ALLGATHER, "ring", .by_rank = 1, .bytes_rank = 1},
    {COLL_ALLGATHER, "linear", .one = 1, .messages = 1, .bytes_rank = 1},
    {COLL_ALLTOALL, "bruck", .by_log = 1, .bytes_both = 0.5},
    {COLL_ALLTOALL, "linear", .one = 1, .messages = 1, .bytes_rank = 1},
    {COLL_ALLTOALL, "pairwise", .by_rank = 1, .bytes_rank = 1},
    {COLL_REDUCE, "binomial", .by_log = 1, .bytes_log = 1},
    {COLL_REDUCE, "linear", .one = 1, .messages = 1, .bytes_rank = 1},
    {COLL_REDUCE, "rabenseifner", .by_log = 2, .once = 2},
    {COLL_ALLREDUCE, "recursive_doubling", .by_log = 1, .bytes_log = 1},
    {COLL_ALLREDUCE, "reduce_bcast", .by_log = 2, .bytes_log = 2},
    {COLL_ALLREDUCE, "rabenseifner", .by_log = 2, .once = 2},
    {COLL_ALLREDUCE, "ring", .by_rank = 2, .once = 2},
};

/* A pipeline through all ranks. */
static double predict_chain(const struct coll_choice *c, int ranks, double bytes, double start)
{
    const double segment = c->segment && (double)c->segment < bytes ? (double)c->segment : bytes;
    return (ranks - 2 + bytes / segment) * (start + segment * BYTE);
}

double size_predict(const struct coll_choice *c, int ranks, uint64_t bytes, bool turns)
{
    const double start = turns ? START_TURNS : START, all = ranks - 1, log = model_log_up(2, ranks);
    if (strcmp(c->algorithm->name, "chain") == 0)
        return predict_chain(c, ranks, (double)bytes, start);
    for (size_t i = 0; i < COUNT_OF(equations); i++) {
        const struct equation *e = &equations[i];
        if (e->kind == c->algorithm->kind && strcmp(e->name, c->algorithm->name) == 0)
            return start * (e->one + e->by_log * log + e->by_rank * all) + MESSAGE * e->messages * all +
                   BYTE * (double)bytes *
                       (e->once + e->bytes_log * log + e->bytes_rank * all + e->bytes_both * log * ranks);
    }
    return start; /* nothing is known of it: try it */
}

static bool is_there(const struct coll_choice *c, const struct trial_candidate *list, int n)
{
    for (int i = 0; i < n; i++)
        if (list[i].choice.algorithm == c->algorithm && list[i].choice.segment == c->segment &&
            list[i].choice.window == c->window)
            return true;
    return false;
}

static int add(const struct coll_choice *c, const struct coll_shape *shape, uint64_t bytes, bool turns,
               struct trial_candidate *list, int n)
{
    if (n == PICK_CANDIDATES || is_there(c, list, n))
        return n;
    list[n] = (struct trial_candidate){.choice = *c, .predicted = size_predict(c, shape->size, bytes, turns)};
    return n + 1;
}

int size_candidates(const struct coll_shape *shape, uint64_t bytes, bool turns,
                    const struct coll_choice *rule, struct trial_candidate *out)
{
    static const uint64_t segments[] = {16 * KI, 64 * KI, 256 * KI};
    int n = add(rule, shape, bytes, turns, out, 0);
    for (size_t i = 0; i < algorithms_count(); i++) {
        const struct coll_algorithm *a = algorithms_get(i);
        if (!a->generate || (a->needs & (NEED_NODE | NEED_NODES | NEED_INTER)) || !algorithm_fits(a, shape))
            continue;
        struct coll_choice c = {.algorithm = a, .window = a->window ? rule->window : 0};
        n = add(&c, shape, bytes, turns, out, n);
        if (a->window && shape->size > 8) {
            c.window = 8;
            n = add(&c, shape, bytes, turns, out, n);
        }
        for (size_t k = 0; a->segment && k < COUNT_OF(segments) && segments[k] < bytes; k++) {
            c.segment = segments[k];
            n = add(&c, shape, bytes, turns, out, n);
        }
    }
    return n;
}

void size_name(const struct coll_choice *c, char *out, size_t size)
{
    int used = snprintf(out, size, "%s", c->algorithm->name);
    if (c->segment && used > 0 && (size_t)used < size)
        used += snprintf(out + used, size - (size_t)used, ":segment=%uk", (unsigned)(c->segment / KI));
    if (c->window && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, ":window=%d", c->window);
}

/* ---- classes ---- */

int size_class(uint64_t bytes)
{
    int class = 0;
    while (class < SIZE_CLASSES && bytes > size_limit(class))
        class ++;
    return bytes > 0 && class < SIZE_CLASSES ? class : -1;
}

uint64_t size_limit(int class)
{
    return ((uint64_t)64 << class / 2) - (class % 2 == 0);
}
