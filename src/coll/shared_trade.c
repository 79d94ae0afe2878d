/* shared_trade.c: the general path of a shared-memory collective. A rank has one of three roles: a writer
 * contributes and continues while it has slots; a reader waits for each writer in turn; or every rank does
 * both and they meet. A writer that lets others read its memory posts once, and waits until they have read
 * it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shared_trade.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/tunable.h"

enum { READ_AUTO, READ_ALWAYS, READ_NEVER, READ_HELPED };
static TUNABLE_CHOICE(
    coll_read, "COLL_READ", READ_AUTO, "auto|always|never|helped",
    "Whether collectives of ranks on one node read long data from the sender's memory (one "
    "copy, the sender waits) instead of passing it through shared memory (two copies at "
    "once). helped: a sender that has one reader writes a part of it into the reader's memory "
    "meanwhile. auto measures them and takes the fastest for each operation and size.");
static COUNTER(reads, "coll_reads", "Contributions to collectives read from the memory of another rank.");

#define CHUNK_MIN 1024 /* with shorter pieces a schedule is better */
#define HANDSHAKE \
    400 /* ns that a rank whose memory is read waits beyond the reading, until it can be read again */
#define LEARN_ALL   24 /* calls of a kind and size; */
#define LEARN_EVERY 3  /* later one in so many: the clock costs something too */

static int blocks_of(const struct trade *t)
{
    return t->each ? t->b->comm->size - 1 : 1;
}

/* How often does a block go from one rank to another in a call? */
static int moves_of(const struct trade *t)
{
    const int size = t->b->comm->size;
    return t->writer == SHARED_EVERYONE && t->reader == SHARED_EVERYONE ? size * (size - 1) : size - 1;
}

const char *trade_slot(const struct trade *t, int r, uint64_t step, size_t len)
{
    return shared_slot(t->b, r, step, len * (size_t)blocks_of(t)) + trade_offset(t, r, t->b->comm->rank, len);
}

/* What rank r has published. */
static _Atomic uint32_t *cost_word(const struct shared *b, int r, enum coll_kind kind, unsigned way,
                                   unsigned class)
{
    return &b->head->rank[r].cost[kind][way][class];
}

/* What a call takes one way, 0 where that is not known: its reader, or one of several. Where ranks share processors, the rank that it
 * takes longest: one that is read waits until the last reader has had its turn, which the readers do not see. And all ranks
 * must come to the same answer: if some went one way and some the other, a call would take what both take. */
static uint32_t known_cost(const struct trade *t, enum shared_way way, unsigned class)
{
    const struct shared *b = t->b;
    const enum coll_kind kind = t->args->kind;
    uint32_t most = 0;
    if (!t->entered) {
        const int r = t->reader == SHARED_EVERYONE ? (b->comm->rank + 1) % b->comm->size : t->reader;
        return atomic_load_explicit(cost_word(b, r, kind, way, class), memory_order_relaxed);
    }
    for (int r = 0; r < b->comm->size; r++)
        most = MAX(most, atomic_load_explicit(cost_word(b, r, kind, way, class), memory_order_relaxed));
    return most;
}

static unsigned ways_of(const struct trade *t)
{
    return t->helps ? SHARED_WAYS : BY_HELP;
}

static enum shared_way pick(struct trade *t)
{
    const struct shared *b = t->b;
    if (t->bytes <= SHARED_SHORT || !t->offer || !b->reads || coll_read.value == READ_NEVER)
        return BY_SLOTS;
    if (coll_read.value == READ_ALWAYS || coll_read.value == READ_HELPED)
        return coll_read.value == READ_HELPED && t->helps ? BY_HELP : BY_READING;
    const unsigned class = shared_class(t->bytes);
    const unsigned ways = ways_of(t);
    uint32_t ns[SHARED_WAYS], before[SHARED_WAYS];
    bool known = true;
    for (unsigned w = 0; w < ways; w++) {
        ns[w] = known_cost(t, (enum shared_way)w, class);
        known &= ns[w] != 0;
    }
    if (likely(known) || class == 0 || t->pace != PACE_ALONE)
        return shared_way_pick(t->number, ns, ways, t->pace);
    for (unsigned w = 0; w < ways; w++)
        before[w] = known_cost(t, (enum shared_way)w, class - 1);
    return shared_way_pick_new(t->number, ns, before, ways);
}

/* One call in several is measured. */
static bool is_measured(uint32_t n)
{
    return n < LEARN_ALL || n % LEARN_EVERY == 0;
}

/* The word beside a flag: the address of what is to be read, or for how long its owner has been filling the first slot. */
static void put_word(const struct trade *t, uint64_t step, uint64_t word)
{
    memcpy(t->b->head->rank[t->b->comm->rank].flag[step % SHARED_DEPTH].data, &word, sizeof(word));
}

static uint64_t word_of(const struct trade *t, int r, uint64_t step)
{
    uint64_t word;
    memcpy(&word, t->b->head->rank[r].flag[step % SHARED_DEPTH].data, sizeof(word));
    return word;
}

/* Fills a slot of this step. Its readers learn from the first of a long message: see learn. */
static void fill(struct trade *t, uint64_t step, size_t at, size_t len)
{
    struct shared *b = t->b;
    const size_t all = len * (size_t)blocks_of(t);
    char *slot = shared_slot(b, b->comm->rank, step, all);
    const bool tells = at == 0 && t->bytes > SHARED_SHORT && all > SHARED_INLINE;
    const bool measured = tells && is_measured(b->filled[t->args->kind][shared_class(t->bytes)]++);
    const uint64_t since = measured ? clock_ns() : 0;
    t->ops->put(t, slot, at, len);
    if (tells)
        put_word(t, step, measured ? clock_ns() - since + 1 : 0);
}

/* Rank r has posted the first step: is this call one to learn from? Then when its data began to come in; else 0. Where it goes
 * through slots, its owner decides. */
static uint64_t begin_learning(struct trade *t, int r, uint64_t step)
{
    struct shared *b = t->b;
    if (t->bytes <= SHARED_SHORT || t->entered)
        return 0;
    const bool slots = shared_way_of(b, r, step) == BY_SLOTS;
    const uint32_t n = b->taken[t->args->kind][shared_class(t->bytes)]++;
    t->filled_ns = slots ? word_of(t, r, step) : 0;
    return (slots ? t->filled_ns != 0 : is_measured(n)) ? clock_ns() : 0;
}

/* What the call took. Through slots the first of them was filled before it was seen here: that counts if this rank was there
 * already (`waited`); else both go on at once, and the slower counts. Where memory is read, the owner learns late that it may
 * go on. */
static uint64_t cost_of(const struct trade *t, uint64_t ns, size_t steps, bool waited)
{
    if (t->reading)
        return ns + HANDSHAKE;
    return waited ? ns + t->filled_ns : MAX(ns, t->filled_ns * steps);
}

/* Are all sources read? Then there is but one step. */
static bool all_read(const struct trade *t)
{
    const int sources = t->writer == SHARED_EVERYONE ? t->b->comm->size - 1 : 1;
    return t->reading && __builtin_popcountll(t->reading) == sources;
}

/* Did the data of all sources come the same way? */
static bool is_one_way(const struct trade *t)
{
    return !t->reading || all_read(t);
}

static void learn(struct trade *t, uint64_t since, size_t steps, bool waited)
{
    struct shared *b = t->b;
    if (!since || !is_one_way(t))
        return;
    const enum coll_kind kind = t->args->kind;
    const unsigned class = shared_class(t->bytes);
    _Atomic uint32_t *cost = cost_word(b, b->comm->rank, kind, t->reading ? t->way : BY_SLOTS, class);
    const bool early = b->taken[kind][class] <= LEARN_ALL;
    const uint32_t known = atomic_load_explicit(cost, memory_order_relaxed);
    const uint64_t ns = cost_of(t, clock_ns() - since, steps, waited);
    atomic_store_explicit(cost, shared_cost_blend(known, ns, early), memory_order_relaxed);
}

/* The same where ranks share processors: of a whole call, whatever this rank's part in it. */
static void learn_crowded(struct trade *t, enum shared_way way)
{
    struct shared *b = t->b;
    const enum coll_kind kind = t->args->kind;
    const unsigned class = shared_class(t->bytes);
    if (!t->entered || !is_one_way(t))
        return;
    _Atomic uint32_t *cost = cost_word(b, b->comm->rank, kind, way, class);
    const uint32_t known = atomic_load_explicit(cost, memory_order_relaxed);
    const uint32_t now = shared_series_learn(&b->series[kind][class], t->pace, way, clock_ns() - t->entered,
                                             known, shared_way_is_new(t->number, ways_of(t), t->pace));
    if (now != known)
        atomic_store_explicit(cost, now, memory_order_relaxed);
}

/* Rank r has posted the first step: does it want to be read? */
static bool wants_reading(struct trade *t, int r, uint64_t step)
{
    t->way = shared_way_of(t->b, r, step);
    if (likely(t->way == BY_SLOTS))
        return false;
    t->remote[r] = word_of(t, r, step);
    t->reading |= (uint64_t)1 << r;
    counter_add(&reads, 1);
    return true;
}

static bool is_short(const struct trade *t)
{
    return t->bytes * (size_t)blocks_of(t) <= SHARED_SMALL;
}

/* Nobody is kept from going on by a short step, nor where there are many slots. Who is read waits to hear of it. */
static void done(struct trade *t, uint64_t step)
{
    if (is_short(t) || (!t->reading && shared_depth(t->b) > SHARED_DEPTH_FEW))
        shared_done_short(t->b, step);
    else
        shared_done(t->b, step);
}

static void own(struct trade *t)
{
    if (t->ops->own)
        t->ops->own(t);
}

/* Writes a part of what this rank has for its only reader. */
static void help(struct trade *t, uint64_t step)
{
    const struct shared *b = t->b;
    const int reader = t->reader == SHARED_EVERYONE ? 1 - b->comm->rank : t->reader;
    const size_t mine = t->each ? (size_t)reader * t->bytes : 0; /* in what this rank has */
    const size_t there = t->args->kind == COLL_GATHER ? (size_t)b->comm->rank * t->bytes : 0;
    const struct help h = {.reader = reader,
                           .step = step,
                           .from = (const char *)t->offer + mine,
                           .skip = there,
                           .bytes = t->bytes,
                           .scratch = t->ops->combine ? shared_scratch(t->b) : NULL,
                           .combine = t->ops->combine,
                           .arg = t};
    shared_help(t->b, &h);
}

static void write_side(struct trade *t, uint64_t last)
{
    struct shared *b = t->b;
    const enum shared_way way = pick(t);
    if (way != BY_SLOTS) {
        uint64_t step = shared_begin(b, sizeof(uint64_t), t->reader);
        put_word(t, step, (uintptr_t)t->offer);
        if (way == BY_HELP)
            shared_help_begin(b, t->bytes);
        shared_post(b, step, way);
        shared_wake(b, t->reader);
        b->step = last;
        own(t);
        if (way == BY_HELP)
            help(t, step);
        shared_settle(b, last, t->reader);
        shared_done_short(b, last); /* its steps count too: see SHARED_LAG */
        learn_crowded(t, way);
        return;
    }
    for (size_t at = 0; at < t->bytes; at += t->chunk) {
        const size_t len = MIN(t->chunk, t->bytes - at), all = len * (size_t)blocks_of(t);
        const uint64_t step = shared_begin(b, all, t->reader);
        fill(t, step, at, len);
        shared_post(b, step, BY_SLOTS);
        shared_wake(b, t->reader);
    }
    own(t);
    shared_done_short(b, last);
    learn_crowded(t, BY_SLOTS);
}

static void fetch(struct trade *t, int r)
{
    if (t->way == BY_HELP && t->target)
        t->ops->fetch_helped(t, r);
    else if (t->ops->fetch)
        t->ops->fetch(t, r);
}

/* One step from one rank; false when it is in another call. */
static bool take_from(struct trade *t, int r, uint64_t step, size_t at, size_t len)
{
    if (t->reading >> r & 1)
        return true;
    if (unlikely(!shared_wait(t->b, r, step)))
        return false;
    if (at == 0 && wants_reading(t, r, step)) {
        fetch(t, r);
    } else if (t->ops->take) {
        t->ops->take(t, r, trade_slot(t, r, step, len), at, len);
    }
    return true;
}

static bool take_from_all(struct trade *t, uint64_t step, size_t at, size_t len)
{
    const int me = t->b->comm->rank, size = t->b->comm->size;
    if (t->writer != SHARED_EVERYONE)
        return take_from(t, t->writer, step, at, len);
    for (int k = 1; k < size; k++)
        if (!take_from(t, (me + k) % size, step, at, len))
            return false;
    return true;
}

static void read_side(struct trade *t, uint64_t last)
{
    struct shared *b = t->b;
    const int first_source = t->writer == SHARED_EVERYONE ? (b->comm->rank + 1) % b->comm->size : t->writer;
    const uint64_t first = b->step + 1;
    if (t->target)
        shared_help_accept(b, first, t->target, t->mine);
    own(t);
    const bool waited = !shared_posted(b, first_source, first);
    if (waited && !shared_wait(b, first_source, first)) {
        b->step = last;
        if (t->target)
            shared_help_refuse(b, first);
        shared_done(b, last);
        return;
    } else if (!waited) /* the writer runs ahead: its next flag may be on its way while this one is used */
        __builtin_prefetch(&b->head->rank[first_source].flag[(first + 1) % SHARED_DEPTH]);
    const uint64_t since = begin_learning(t, first_source, first);
    uint64_t step = first;
    for (size_t at = 0; at < t->bytes; at += t->chunk, step++) {
        const size_t len = MIN(t->chunk, t->bytes - at);
        if (unlikely(!take_from_all(t, step, at, len)))
            break;
        const bool at_once = at == 0 && all_read(t);
        if (t->ops->finish)
            t->ops->finish(t, step, at, at_once ? t->bytes : len);
        if (at_once)
            break;
        if (step < last)
            done(t, step);
    }
    b->step = last;
    if (unlikely(b->stranger) && t->target)
        shared_help_refuse(b, first);
    done(t, last);
    if (b->stranger)
        return;
    learn(t, since, (size_t)(last - first + 1), waited);
    learn_crowded(t, t->reading ? t->way : BY_SLOTS);
}

/* Everyone has posted this step. */
static void take_in_meeting(struct trade *t, uint64_t step, size_t at, size_t len)
{
    const int me = t->b->comm->rank, size = t->b->comm->size;
    for (int k = 1; k < size; k++) {
        const int r = (me + k) % size;
        if (t->reading >> r & 1)
            continue;
        if (at == 0 && wants_reading(t, r, step)) {
            fetch(t, r);
        } else if (t->ops->take) {
            t->ops->take(t, r, trade_slot(t, r, step, len), at, len);
        }
    }
}

/* Who is read posts every step like the others, unless all are: then one step is all there is. A last
 * meeting keeps everyone until nobody reads any more. */
static void both_sides(struct trade *t, uint64_t last)
{
    struct shared *b = t->b;
    const enum shared_way way = pick(t);
    const uint64_t first = b->step + 1;
    uint64_t since = 0;
    for (size_t at = 0; at < t->bytes; at += t->chunk) {
        const size_t len = MIN(t->chunk, t->bytes - at);
        const size_t all = way == BY_READING ? sizeof(uint64_t) : len * (size_t)blocks_of(t);
        const uint64_t step = shared_begin(b, all, SHARED_EVERYONE);
        if (at == 0 && way == BY_READING)
            put_word(t, step, (uintptr_t)t->offer);
        else if (way == BY_SLOTS)
            fill(t, step, at, len);
        if (!shared_meet(b, step, way)) {
            b->step = last;
            shared_done(b, last);
            return;
        }
        if (at == 0)
            since = begin_learning(t, (b->comm->rank + 1) % b->comm->size, step);
        take_in_meeting(t, step, at, len);
        const bool at_once = at == 0 && way == BY_READING && all_read(t);
        if (t->ops->finish)
            t->ops->finish(t, step, at, at_once ? t->bytes : len);
        if (at_once)
            break;
        done(t, step);
    }
    own(t); /* ... of a long allgather that is read is in its place already, so that it counts either way */
    learn(t, since, (size_t)(last - first + 1), true);
    b->step = last;
    if (last > b->told && !is_short(t))
        shared_done(b, last); /* before the meeting, which may need the first step's flag */
    if (t->reading || way == BY_READING) {
        shared_meet(b, shared_begin(b, 0, SHARED_EVERYONE), BY_SLOTS);
        shared_done(b, b->step);
    }
    learn_crowded(t, t->reading ? t->way : BY_SLOTS);
}

/* What a step carries of each block; 0 when the call does not fit. */
static size_t chunk_of(const struct trade *t, size_t unit)
{
    const size_t blocks = (size_t)blocks_of(t);
    if (t->bytes * blocks <= SHARED_SMALL)
        return t->bytes;
    if (!shared_open_big(t->b))
        return 0;
    const size_t most = t->b->head->big_size / blocks;
    if (t->bytes <= most)
        return t->bytes;
    const size_t chunk = most / unit * unit;
    return chunk >= CHUNK_MIN ? chunk : 0;
}

bool trade_run(struct trade *t, size_t unit)
{
    struct shared *b = t->b;
    t->chunk = chunk_of(t, unit);
    if (t->chunk == 0)
        return false;
    const uint64_t last = b->step + (t->bytes + t->chunk - 1) / t->chunk;
    const bool writes = t->writer == SHARED_EVERYONE || t->writer == b->comm->rank;
    const bool takes = t->reader == SHARED_EVERYONE || t->reader == b->comm->rank;
    const bool crowded = b->comm->proc->net->oversubscribed;
    t->number = t->bytes > SHARED_SHORT ? b->asked[t->args->kind][shared_class(t->bytes)]++ : 0;
    t->entered = crowded && t->bytes > SHARED_SHORT ? clock_ns() : 0;
    t->pace = shared_pace(t->entered != 0, shared_class(t->bytes), moves_of(t));
    t->helps &= b->reads && coll_read.value != READ_NEVER;
    if (crowded && coll_read.value != READ_HELPED)
        t->helps = false; /* an owner that helps would take a turn on the processor that its reader needs */
    if (!t->helps)
        t->target = NULL;
    if (t->writer == SHARED_EVERYONE && t->reader == SHARED_EVERYONE)
        both_sides(t, last);
    else if (t->writer == SHARED_EVERYONE ? !takes : writes)
        write_side(t, last);
    else
        read_side(t, last);
    return true;
}
