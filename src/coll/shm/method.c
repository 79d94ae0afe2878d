/* method.c: rank 0's tuners of copy methods, and the shared words for decisions and measured times.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/method.h"

#include <stdlib.h>

#include "coll/shm/block.h"
#include "tune/setting.h"

#define MEASURE_ALL   32 /* number of first calls of a tuner turn, all of which are measured */
#define MEASURE_EVERY 4  /* every fourth of the later calls is measured */

/* A published decision consists of turn and method; a published cost of turn and ns. The low TURN_BITS
 * bits of the turn identify outdated words. */
#define METHOD_BITS 2
#define TURN_BITS   30
#define TURN_MASK   ((1u << TURN_BITS) - 1)
_Static_assert(SHARED_METHODS <= 1 << METHOD_BITS, "a method fits its bits");

static _Atomic uint64_t *reported_cost(const struct shared *b, int rank, enum coll_kind kind, unsigned class)
{
    return &b->head->rank[rank].cost[kind][class];
}

/* Returns the maximum cost (ns) that ranks have published in this turn; 0: none. */
static uint64_t collect_costs(const struct shared *b, enum coll_kind kind, unsigned class, uint32_t turn)
{
    uint64_t most = 0;
    for (int r = 0; r < b->comm->size; r++) {
        _Atomic uint64_t *word = reported_cost(b, r, kind, class);
        if (atomic_load_explicit(word, memory_order_relaxed) == 0)
            continue;
        const uint64_t cost = atomic_exchange_explicit(word, 0, memory_order_relaxed);
        if (cost >> 32 == turn)
            most = MAX(most, cost & UINT32_MAX);
    }
    return most;
}

/* Opens the tuner of a size class, with costs of the next smaller class (doubled) as initial values. */
static void open_tuner(struct shared *b, enum coll_kind kind, unsigned class, struct shared_tuner *t)
{
    const struct shared_tuner *smaller = class > 0 ? b->key[kind][class - 1].tuner : NULL;
    uint32_t prior[SHARED_METHODS] = {0};
    for (int m = 0; smaller && m < SHARED_METHODS; m++)
        prior[m] = smaller->tune.candidate[m].measured ? 2 * smaller->tune.candidate[m].cost : 0;
    tune_open(&t->tune, SHARED_METHODS, smaller ? prior : NULL);
}

static void method_decide(struct shared *b, enum coll_kind kind, unsigned class, bool may_split)
{
    struct shared_key *key = &b->key[kind][class];
    struct shared_tuner *t = key->tuner;
    if (!t) {
        t = key->tuner = calloc(1, sizeof(*t));
        CHECK_MEMORY(t, "the methods of a collective");
    }
    if (!tune_is_open(&t->tune))
        open_tuner(b, kind, class, t);
    if (t->ticket.open) {
        const uint64_t cost = collect_costs(b, kind, class, t->ticket.turn & TURN_MASK);
        tune_report(&t->tune, &t->ticket, cost, cost != 0);
    }
    t->ticket =
        tune_pick_candidate(&t->tune, may_split ? (1u << SHARED_METHODS) - 1 : (1u << METHOD_SPLIT) - 1);
    atomic_store_explicit(&b->head->decision[kind][class],
                          t->ticket.turn << METHOD_BITS | t->ticket.candidate, memory_order_relaxed);
}

struct shared_decision shared_method_begin(struct shared *b, enum coll_kind kind, size_t bytes,
                                           bool may_split, uint32_t period)
{
    const unsigned class = shared_class(bytes);
    struct shared_key *key = &b->key[kind][class];
    if (!tune_is_enabled())
        return (struct shared_decision){.method = METHOD_SLOTS};
    if (b->comm->rank == 0 && key->calls % period == 0)
        method_decide(b, kind, class, may_split);
    const uint32_t word = atomic_load_explicit(&b->head->decision[kind][class], memory_order_relaxed);
    struct shared_decision d = {.method = (enum shared_method)(word & ((1u << METHOD_BITS) - 1)),
                                .turn = word >> METHOD_BITS};
    if (d.method == METHOD_SPLIT && !may_split) /* rank 0 made this decision for an earlier call */
        d.method = METHOD_READ;
    if (d.turn != key->turn) {
        key->turn = d.turn;
        key->since = key->summed = 0;
        key->ns = 0;
    }
    d.measured = key->since++ < MEASURE_ALL || key->calls % MEASURE_EVERY == 0 || period > 1;
    key->calls++;
    return d;
}

void shared_method_report(struct shared *b, enum coll_kind kind, size_t bytes,
                          const struct shared_decision *d, uint64_t ns, uint32_t period)
{
    const unsigned class = shared_class(bytes);
    struct shared_key *key = &b->key[kind][class];
    if (!d->measured || d->turn != key->turn)
        return;
    key->ns += ns;
    if (++key->summed < period)
        return;
    const uint64_t mean = MIN(MAX(key->ns / key->summed, 1u), UINT32_MAX);
    key->ns = key->summed = 0;
    atomic_store_explicit(reported_cost(b, b->comm->rank, kind, class), (uint64_t)d->turn << 32 | mean,
                          memory_order_relaxed);
}

void shared_method_close(struct shared *b)
{
    for (int kind = 0; kind < COLL_SCAN; kind++)
        for (int class = 0; class < SHARED_CLASSES; class ++)
            free(b->key[kind][class].tuner);
}
