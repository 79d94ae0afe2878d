/* partial.c: partial results of reductions that preserve the operand order, and the exchanges built on them:
 * fold, halving, ring allgather.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

struct partial partial_start(const struct coll_shape *shape, struct loc in, struct loc buf0, struct loc buf1)
{
    return (struct partial){
        .in = in, .buf = {buf0, buf1}, .at = loc_same(in, buf0) ? 0 : -1, .commutative = shape->commutative};
}

struct loc partial_own_data(const struct partial *p)
{
    return p->at < 0 ? p->in : p->buf[p->at];
}

struct loc partial_peer_data(const struct partial *p)
{
    return p->at < 0 ? p->buf[0] : p->buf[1 - p->at];
}

void partial_merge(struct sched *s, struct partial *p, bool mine_first, int64_t first, int64_t count)
{
    struct loc mine = loc_add(partial_own_data(p), first), theirs = loc_add(partial_peer_data(p), first);
    if (p->at < 0 && (p->commutative || mine_first)) {
        sched_reduce(s, mine, theirs, theirs, count);
        p->at = 0;
    } else if (p->at < 0) {
        sched_reduce(s, theirs, mine, loc_add(p->buf[1], first), count);
        p->at = 1;
    } else if (p->commutative ? p->at == 0 : !mine_first) {
        sched_reduce(s, theirs, mine, mine, count);
    } else {
        sched_reduce(s, mine, theirs, theirs, count);
        p->at = 1 - p->at;
    }
}

void partial_copy_to_result(struct sched *s, const struct partial *p, int64_t first, int64_t count)
{
    sched_copy(s, loc_add(partial_own_data(p), first), loc_add(p->buf[0], first), count);
}

struct fold fold_init(int rank, int size)
{
    struct fold f = {.pof2 = 1};
    while (f.pof2 <= size / 2)
        f.pof2 *= 2;
    f.rem = size - f.pof2;
    if (rank >= 2 * f.rem)
        f.index = rank - f.rem;
    else
        f.index = rank % 2 == 0 ? rank / 2 : -1;
    return f;
}

void fold_generate_reduce(struct sched *s, const struct fold *f, int rank, struct partial *p, int64_t count)
{
    if (rank >= 2 * f->rem)
        return;
    if (f->index < 0) {
        sched_send(s, rank - 1, p->in, count);
        sched_fence(s);
        return;
    }
    sched_recv(s, rank + 1, partial_peer_data(p), count);
    sched_fence(s);
    partial_merge(s, p, true, 0, count);
}

/* Last step: an even rank below 2 * rem sends the result at `data` to its right neighbour. */
static void fold_generate_return(struct sched *s, const struct fold *f, int rank, struct loc data,
                                 int64_t count)
{
    if (rank >= 2 * f->rem)
        return;
    if (f->index < 0)
        sched_recv(s, rank - 1, data, count);
    else
        sched_send(s, rank + 1, data, count);
    sched_fence(s);
}

void fold_allreduce(const struct coll_shape *shape, struct sched *s, fold_exchange *exchange)
{
    const int64_t n = shape->count;
    struct fold f = fold_init(shape->rank, shape->size);
    struct loc out = loc_make(BUF_RECV, 0), temp = shape->size > 1 && f.index >= 0 ? sched_temp(s, n) : out;
    struct partial p = partial_start(shape, shape_input(shape), out, temp);
    fold_generate_reduce(s, &f, shape->rank, &p, n);
    if (f.index >= 0)
        exchange(s, &f, &p, out, n);
    fold_generate_return(s, &f, shape->rank, out, n);
}

void halving_reduce(struct sched *s, const struct fold *f, struct partial *p, int64_t count,
                    struct halving *h)
{
    int64_t lo = 0, hi = count;
    h->steps = 0;
    for (int mask = 1; mask < f->pof2; mask *= 2) {
        int partner = fold_rank(f, f->index ^ mask);
        bool mine_first = (f->index & mask) == 0;
        int64_t mid = lo + (hi - lo + 1) / 2;
        h->lo[h->steps] = lo;
        h->hi[h->steps++] = hi;
        int64_t keep_lo = mine_first ? lo : mid, keep_hi = mine_first ? mid : hi;
        int64_t give_lo = mine_first ? mid : lo, give_hi = mine_first ? hi : mid;
        sched_recv(s, partner, loc_add(partial_peer_data(p), keep_lo), keep_hi - keep_lo);
        sched_send(s, partner, loc_add(partial_own_data(p), give_lo), give_hi - give_lo);
        sched_fence(s);
        partial_merge(s, p, mine_first, keep_lo, keep_hi - keep_lo);
        lo = keep_lo;
        hi = keep_hi;
    }
    h->lo[h->steps] = lo;
    h->hi[h->steps] = hi;
}

void ring_allgather(struct sched *s, int rank, int size, int first, struct loc data, int64_t count)
{
    for (int k = 0; k < size - 1; k++) {
        int out = ring(first - k, size), in = ring(first - k - 1, size),
            idle = ring_count_idle_rounds(out, in, count);
        if (idle >= 0) {
            k += idle;
            continue;
        }
        sched_recv(s, ring(rank - 1, size), loc_add(data, part_start(count, size, in)),
                   part_size(count, size, in));
        sched_send(s, ring(rank + 1, size), loc_add(data, part_start(count, size, out)),
                   part_size(count, size, out));
        sched_fence(s);
    }
}
