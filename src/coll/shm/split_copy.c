/* split_copy.c: split copies: the reader reads one part of a contribution while its owner writes the other
 * part.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/split_copy.h"

#include "base/counter.h"

static COUNTER(
    helped, "coll_owner_copies",
    "Pieces of collectives copied by the rank that owns the data, while the receiving rank copied the rest.");

#define FAILED ((uint64_t)1 << 63) /* flag in `wrote`: the owner failed; the reader reads the rest */

_Static_assert((SPLIT_MAX + SPLIT_CRUMB) * SPLIT_UNIT <= SHARED_SCRATCH, "a piece fits scratch memory");

static struct shared_rank *get_shared_rank(const struct shared *b, int rank)
{
    return &b->head->rank[rank];
}

/* Claims a piece with `take` (split_front or split_back); false if nothing is left. */
static bool split_claim_piece(_Atomic uint64_t *word, struct split_piece (*take)(struct split *c),
                              struct split_piece *got)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed), new;
    do {
        struct split c = split_unpack(old);
        *got = take(&c);
        if (got->count == 0)
            return false;
        new = split_pack(c);
    } while (
        !atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_acq_rel, memory_order_relaxed));
    return true;
}

static size_t piece_length(struct split_piece c, size_t bytes)
{
    return MIN((size_t)c.count * SPLIT_UNIT, bytes - (size_t)c.first * SPLIT_UNIT);
}

void split_copy_begin(struct shared *b, size_t bytes)
{
    struct shared_rank *me = get_shared_rank(b, b->comm->rank);
    const struct split all = {.back = split_units(bytes)};
    atomic_store_explicit(&me->wrote, 0, memory_order_relaxed);
    atomic_store_explicit(&me->units, all.back, memory_order_relaxed);
    atomic_store_explicit(&me->claims, split_pack(all), memory_order_relaxed);
}

/* Owner: copies one piece into the memory of the reader. */
static int piece_copy(struct shared *b, const struct split_copy *h, const struct shared_rank *it,
                      struct split_piece c)
{
    const size_t at = (size_t)c.first * SPLIT_UNIT, len = piece_length(c, h->bytes);
    const uint64_t to = atomic_load_explicit(&it->accept_at, memory_order_relaxed) + h->skip;
    if (!h->combine)
        return shared_write(b, h->reader, to + at, h->from + at, len);
    const uint64_t theirs = atomic_load_explicit(&it->accept_mine, memory_order_relaxed);
    const int rc = shared_read(b, h->reader, h->scratch, theirs + at, len);
    if (rc)
        return rc;
    h->combine(h->arg, at, len);
    return shared_write(b, h->reader, to + at, h->scratch, len);
}

void split_copy_write(struct shared *b, const struct split_copy *h)
{
    struct shared_rank *me = get_shared_rank(b, b->comm->rank);
    const struct shared_rank *it = get_shared_rank(b, h->reader);
    uint64_t wrote = 0;
    struct split_piece c;
    if (b->no_help || !shared_wait_accepted(b, h->reader, h->step) ||
        atomic_load_explicit(&it->accept_call, memory_order_relaxed) != b->call)
        return;
    while (wrote < FAILED && split_claim_piece(&me->claims, split_back, &c)) {
        b->no_help = piece_copy(b, h, it, c) != 0;
        wrote = b->no_help ? wrote | FAILED : wrote + c.count;
        atomic_store_explicit(&me->wrote, wrote, memory_order_release);
        counter_add(&helped, 1);
    }
    shared_wake(b, h->reader);
}

void split_copy_accept(struct shared *b, uint64_t step, void *to, const void *mine)
{
    struct shared_rank *me = get_shared_rank(b, b->comm->rank);
    atomic_store_explicit(&me->accept_at, (uintptr_t)to, memory_order_relaxed);
    atomic_store_explicit(&me->accept_mine, (uintptr_t)mine, memory_order_relaxed);
    atomic_store_explicit(&me->accept_call, b->call, memory_order_relaxed);
    shared_accept(b, step);
}

/* Argument of a wait for the units that an owner has claimed. */
struct owner_part {
    const struct shared_rank *owner;
    uint32_t units;
};

static bool all_written(void *arg)
{
    const struct owner_part *w = arg;
    const uint64_t wrote = atomic_load_explicit(&w->owner->wrote, memory_order_acquire);
    return (uint32_t)wrote == w->units || wrote >= FAILED;
}

/* Claims all remaining units, and waits for the units that the owner has claimed. Returns the number of
 * units that the owner claimed but could not write; they are the first ones after the reader's pieces. */
static uint32_t close_claims(struct shared *b, struct shared_rank *owner, uint32_t all)
{
    struct split_piece c;
    while (split_claim_piece(&owner->claims, split_front, &c))
        ;
    const struct split now = split_unpack(atomic_load_explicit(&owner->claims, memory_order_relaxed));
    struct owner_part w = {owner, all - now.back};
    if (!all_written(&w))
        shared_wait_until(b, all_written, &w);
    return w.units - (uint32_t)atomic_load_explicit(&owner->wrote, memory_order_acquire);
}

int split_copy_read(struct shared *b, int r, uint64_t from, char *to, size_t bytes, split_copy_part *use,
                    void *arg)
{
    struct shared_rank *owner = get_shared_rank(b, r);
    const uint32_t all = split_units(bytes);
    struct split_piece c = {0};
    uint32_t end = 0, left = 0; /* in units */
    int rc = 0;
    while (!rc &&
           (split_claim_piece(&owner->claims, split_front, &c) || (left = close_claims(b, owner, all)) > 0)) {
        if (left > 0) /* the owner could not write these units */
            c = (struct split_piece){end, left};
        const size_t at = (size_t)c.first * SPLIT_UNIT, len = piece_length(c, bytes);
        rc = shared_read(b, r, to + at, from + at, len);
        if (!rc && use)
            use(arg, at, len);
        end = c.first + c.count;
        if (left > 0)
            return rc;
    }
    if (rc)
        close_claims(b, owner, all);
    return rc;
}

void split_copy_cancel(struct shared *b, uint64_t step)
{
    shared_accept(b, 0);
    atomic_thread_fence(memory_order_seq_cst);
    for (int r = 0; r < b->comm->size; r++) {
        struct shared_rank *owner = get_shared_rank(b, r);
        if (r != b->comm->rank && shared_has_posted(b, r, step) &&
            shared_get_posted_method(b, r, step) == METHOD_SPLIT)
            close_claims(b, owner, atomic_load_explicit(&owner->units, memory_order_relaxed));
    }
}
