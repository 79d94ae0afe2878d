/* shared.h: collectives of ranks on one node through memory they share: barrier, bcast, reduce, allreduce.
 * Not schedules but an executor of its own, which blocks; chosen by the same selection under the name
 * "shared".
 *
 * Every rank has a ring of slots that only it writes. Collectives on a communicator are cut into steps,
 * numbered alike at every rank; in step s a rank writes slot s mod depth and then the flag beside it. A flag
 * and up to SHARED_INLINE bytes are one cache line, so that a small contribution costs one line transfer. A
 * slot is written again only when every rank is known to be done with the step that used it before: a rank
 * that has posted step t is done with t - 1, and where posting is not part of the step (a receiver of a
 * bcast) it says so in its `done` word.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHARED_H
#define FP_COLL_SHARED_H

#include <stdalign.h>

#include "coll/call.h"

#define SHARED_RANKS_MAX 64
#define SHARED_DEPTH     8          /* small slots, and flags */
#define SHARED_DEPTH_BIG 4          /* big slots */
#define SHARED_INLINE    48         /* bytes that travel with the flag */
#define SHARED_SMALL     2048       /* bytes of a small slot */
#define SHARED_AREA_MAX  (8u << 20) /* of big slots, all ranks together */

struct shared_flag {
    alignas(CACHE_LINE) _Atomic uint64_t posted; /* a step and the mark of the call it belongs to */
    alignas(16) char data[SHARED_INLINE];
};

/* What one rank writes and the others read. */
struct shared_rank {
    struct shared_flag flag[SHARED_DEPTH];
    alignas(CACHE_LINE) _Atomic uint64_t done;
    _Atomic uint64_t what; /* the call it is in; read only when marks differ */
    alignas(CACHE_LINE) char small[SHARED_DEPTH][SHARED_SMALL];
};

struct shared_head {
    _Atomic uint32_t users; /* ranks that still have it open */
    uint32_t big_size;      /* bytes of a big slot: rank 0's decision */
    _Atomic uint64_t big;   /* 0: not asked for yet; BIG_NONE; else offset in the area + 1 */
    alignas(CACHE_LINE) _Atomic uint32_t waiting; /* ranks that wait until a slot of theirs is free */
    alignas(CACHE_LINE) struct shared_rank rank[];
};

/* One rank's view of the block. */
struct shared {
    struct comm *comm;
    struct shared_head *head;
    uint64_t offset;
    size_t length;
    char *big;     /* [rank][SHARED_DEPTH_BIG][big_size], NULL until used */
    uint64_t step; /* the last one begun */
    uint64_t safe; /* every rank is done with this step and all before it */
    uint64_t what; /* the call that is running */
    uint64_t mark; /* SHARED_MARK_BITS of it */
    bool no_big;
    int stranger;    /* 1 + the rank whose call turned out not to match the one that is running, or 0 */
    uint64_t theirs; /* what that rank was in then */
};

/* Runs the call and returns true, or returns false when it has to be left to a schedule (everywhere or
 * nowhere). */
bool shared_run(const struct coll_args *args, struct coll_state *state, const struct call *call, int *rc);
void shared_close(struct coll_state *state);

/* Which call this is must be the same at all ranks: kind, root, bytes. A few bits of it travel in the flag
 * itself, where comparing them costs nothing. */
#define SHARED_MARK_BITS 16
static inline void shared_enter(struct shared *b, enum coll_kind kind, int root, uint64_t bytes)
{
    uint64_t what = (uint64_t)kind << 56 | (uint64_t)(root & 0xffff) << 40 | (bytes & 0xffffffffffu);
    if (b->what == what)
        return;
    b->what = what;
    b->mark = what * 0x9e3779b97f4a7c15u >> (64 - SHARED_MARK_BITS);
    atomic_store_explicit(&b->head->rank[b->comm->rank].what, what, memory_order_relaxed);
}

/* The block, agreed on at first use; NULL when there is none to be had. Collective. */
struct shared *shared_open(struct coll_state *state);
/* Makes sure there are big slots; false when there are none to be had. Collective. */
bool shared_open_big(struct shared *b);

/* Where a rank's contribution to a step lies, for this many bytes. */
static inline char *shared_slot(const struct shared *b, int rank, uint64_t step, size_t bytes)
{
    struct shared_rank *r = &b->head->rank[rank];
    if (bytes <= SHARED_INLINE)
        return r->flag[step % SHARED_DEPTH].data;
    if (bytes <= SHARED_SMALL)
        return r->small[step % SHARED_DEPTH];
    return b->big + ((size_t)rank * SHARED_DEPTH_BIG + step % SHARED_DEPTH_BIG) * b->head->big_size;
}

/* Begins a step in which this rank writes a slot of this size: waits until nobody reads its old contents. */
uint64_t shared_begin(struct shared *b, size_t bytes);
/* Begins a step in which it writes none. */
static inline uint64_t shared_begin_reading(struct shared *b)
{
    return ++b->step;
}
/* What was written before becomes visible with the flag. Whom that may wake is the caller's to wake:
 * shared_wake, shared_wake_all or shared_done must follow. */
void shared_post(struct shared *b, uint64_t step);
/* Waiting ends early, with false, when a rank turns out to be in another call: b->stranger says which. */
bool shared_wait(struct shared *b, int rank, uint64_t step);
/* Posts, waits for everyone, and wakes everyone if this rank was the last. */
bool shared_meet(struct shared *b, uint64_t step);
/* The error of a call that met a stranger. */
int shared_mismatch(struct shared *b);
/* This rank will not read anything of this step any more. */
void shared_done(struct shared *b, uint64_t step);
void shared_wake(struct shared *b, int rank);
void shared_wake_all(struct shared *b);

/* The operations; `bytes` of a piece is what fits a slot, 0 when the call cannot be done. */
size_t shared_piece(struct shared *b, uint64_t total, MPI_Count element);
void shared_barrier(struct shared *b);
void shared_bcast(struct shared *b, const struct coll_args *args, size_t piece);
void shared_allgather(struct shared *b, const struct coll_args *args, size_t bytes);
void shared_alltoall(struct shared *b, const struct coll_args *args, size_t bytes);
int shared_reduce(struct shared *b, const struct coll_args *args, size_t piece);
int shared_allreduce(struct shared *b, const struct coll_args *args, size_t piece);

#endif
