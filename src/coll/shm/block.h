/* block.h: collectives of ranks on one node through shared memory: an executor of blocking calls, which the
 * selection chooses under the name "shared".
 *
 * Every rank has rings of slots that no other rank writes. Collectives on a communicator are cut into steps
 * with the same numbers at every rank. In step s a rank that contributes data writes a slot and then the flag
 * beside it. A flag and up to 48 bytes are one cache line, so that a small contribution costs one line
 * transfer. Instead of data a flag may carry an address: the readers then read the sender's memory.
 *
 * Each rank publishes in its `done` word the last step of which it has read all data; after short steps it
 * publishes the word a few steps late, so that its cache line is not transferred in every step. A slot is
 * overwritten only when all its readers are done with the step that used the slot before. Therefore ranks
 * that only send (the root of a bcast, the leaves of a gather) can be ahead by as many steps as there are
 * slots.
 *
 * Slots with more than a few bytes are reused late: data goes through a ring of some hundred KiB up to twice
 * as fast (lab/notes/one-node.md), probably because the reader finds the data in the second-level cache of
 * the writer's processor and not in its first-level cache. So a communicator begins with few slots, and gets
 * many when its calls continue to fill them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHM_BLOCK_H
#define FP_COLL_SHM_BLOCK_H

#include <stdalign.h>

#include "base/cpu.h"
#include "coll/executor.h"
#include "coll/shm/split_pieces.h"
#include "coll/shm/method.h"
#include "coll/shm/slots.h"

#define SHARED_RANKS_MAX 64
#define SHARED_DEPTH     64   /* flags */
#define SHARED_DEPTH_ONE 8    /* small slots */
#define SHARED_LAG       4    /* steps that a rank may be done with before it publishes its `done` word */
#define SHARED_AHEAD     4    /* steps whose flags are prefetched before they are written */
#define SHARED_DEPTH_BIG 64   /* big slots of a rank at most */
#define SHARED_DEPTH_FEW 8    /* big slots of a rank at first, or if memory is scarce */
#define SHARED_OFTEN     64   /* calls that fill slots before a communicator gets many slots */
#define SHARED_INLINE    112  /* bytes of data beside a flag, 48 of them in the flag's cache line */
#define SHARED_SMALL     4096 /* bytes of a small slot */
/* Bytes of a slot that are announced to a single reader while the rest is written. */
#define SHARED_PART      1024
#define SHARED_AREA_MAX  (8u << 20) /* bytes of all ranks' big slots, if each has SHARED_DEPTH_FEW */
#define SHARED_AREA_DEEP (4u << 20) /* bytes of all ranks' big slots, if each has more */
#define SHARED_SCRATCH   131072     /* bytes that are read at a time from the memory of another rank */
#define SHARED_EVERYONE  SLOTS_EVERYONE

_Static_assert(SHARED_SHORT / SHARED_PART <= 1u << SLOT_PART_BITS, "see slot_pack_parts");
_Static_assert(SHARED_LAG <= SHARED_DEPTH_FEW && SHARED_LAG <= SHARED_DEPTH_ONE, "see slots_must_report");
_Static_assert(SHARED_DEPTH_BIG <= SHARED_DEPTH, "a slot without a flag would never be used");

/* Two lines apart: processors fetch lines in pairs, and the next flag is about to be written while this one
 * is read. */
struct shared_flag {
    alignas(2 * CACHE_LINE) _Atomic uint64_t
        posted; /* step, method, and the marks of two calls: see shared_pack_word */
    /* parts of a small slot that are written before `posted` is: see slot_pack_parts */
    _Atomic uint64_t part;
    alignas(16) char data[SHARED_INLINE];
};

/* The words that one rank writes and the others read. */
struct shared_rank {
    struct shared_flag flag[SHARED_DEPTH];
    alignas(CACHE_LINE) _Atomic uint64_t done; /* the last step of which this rank has read all data */
    alignas(CACHE_LINE) _Atomic uint64_t what; /* this rank's present call; read only when marks differ */
    _Atomic uint64_t before;                   /* the call before `what` */
    /* The number of this rank's call: see shared_pack_entry. Written in every call, therefore two cache lines
     * away from the words that other ranks poll: processors fetch lines in pairs. */
    alignas(2 * CACHE_LINE) _Atomic uint64_t entered;
    /* Contributions that their owner helps to move (split_copy.h). If this rank is the reader: the step for
     * which it accepts help, the call, the address for the data, and in reductions the address of its own
     * contribution. */
    alignas(2 * CACHE_LINE) _Atomic uint64_t accept;
    _Atomic uint64_t accept_what, accept_at, accept_mine;
    /* If this rank is the owner: the claims on the units of its contribution, the units that it has written,
     * and all units. */
    alignas(2 * CACHE_LINE) _Atomic uint64_t claims;
    alignas(2 * CACHE_LINE) _Atomic uint64_t wrote;
    _Atomic uint32_t units;
    /* Cost of calls at this rank, by operation and class of sizes; rank 0 reads it (method.h). */
    alignas(2 * CACHE_LINE) _Atomic uint64_t cost[COLL_SCAN][SHARED_CLASSES];
    /* Calls of coll_device_min_bytes bytes so far (upper 48 bits), and in which of the last 16 all data of
     * this rank was in GPU memory: bit 0 is the last one. */
    alignas(CACHE_LINE) _Atomic uint64_t devices;
    alignas(CACHE_LINE) char small[SHARED_DEPTH_ONE][SHARED_SMALL];
};

struct shared_big {
    _Atomic uint64_t at; /* 0: not allocated yet; UINT64_MAX: no memory; else offset in the node's area + 1 */
    uint32_t depth;      /* slots of a rank; written before `at` */
    _Atomic uint32_t arrived; /* ranks that have read `at` and wait for the other ranks */
};

struct shared_head {
    _Atomic uint32_t users;      /* ranks that have this block open */
    uint32_t big_size;           /* bytes of a big slot, chosen by rank 0 */
    struct shared_big few, many; /* big slots: the first ones, and those that replace them (rings.c) */
    _Atomic uint32_t readers;    /* ranks that can read the memory of all other ranks */
    alignas(CACHE_LINE) _Atomic uint32_t waiting; /* ranks that wait until other ranks are done with a step */
    alignas(CACHE_LINE) _Atomic uint32_t
        decision[COLL_SCAN][SHARED_CLASSES]; /* of rank 0, by operation and class of sizes (method.h) */
    struct shared_rank rank[];
};

/* One rank's view of the block. */
struct shared {
    struct comm *comm;
    struct shared_head *head;
    uint64_t offset;
    size_t length;
    char *big;             /* [rank][big_depth][big_size], NULL until used */
    uint32_t big_depth;    /* slots of a rank */
    uint32_t often;        /* calls so far that filled slots, up to SHARED_OFTEN */
    char *scratch;         /* 3 * SHARED_SCRATCH bytes, NULL until used */
    uint64_t step;         /* the last step that this rank has begun */
    uint64_t safe;         /* every rank is done with this step and all before it */
    uint64_t what, before; /* the present call, and the call before */
    uint64_t marks;        /* marks of `what` and `before`, as flags carry them */
    bool to_root;          /* the call after the last barrier had a root: not all ranks synchronised */
    struct slot_use flag_use[SHARED_DEPTH];
    /* of this rank's small slots, once they are open of its big ones */
    struct slot_use slot_use[SHARED_DEPTH_BIG];
    uint64_t slot_step;                      /* step in which this rank last wrote a slot */
    uint64_t slot_gap;                       /* steps between the last two slots that this rank wrote */
    uint64_t reported;                       /* this rank's `done` word */
    uint64_t seen[SHARED_RANKS_MAX];         /* `done` words of the ranks when this rank last read them */
    struct doorbell *bell[SHARED_RANKS_MAX]; /* by rank */
    struct shared_key key[COLL_SCAN][SHARED_CLASSES];
    bool no_big;              /* the node's area has no memory for big slots */
    bool reads;               /* every rank can read every other rank's memory */
    bool no_help;             /* this rank cannot write the memory of other ranks */
    int mismatched_rank;      /* 1 + a rank whose call does not match the present one; 0: none was found */
    bool mismatch_is_earlier; /* the call before the present one did not match at rank mismatched_rank - 1 */
    bool mismatch_reported;   /* that mismatch of the call before has been reported at this rank */
    uint64_t mismatched_call; /* the call of rank mismatched_rank - 1 */
};

/* Caches the selection: short calls of this communicator no longer describe themselves first. They follow the
 * rules of the general path, so that ranks may differ in which path they use. */
void shared_cache_selection(struct coll_state *state);
void shared_close(struct coll_state *state);
extern const struct coll_executor shared_executor;
extern struct counter shared_runs;

/* A flag's word: the step, how the data goes, and a few bits of which call this is and which was the one
 * before. Both must be the same at all ranks, and comparing them costs nothing here. The call before (its
 * kind and root) is there for calls in which nobody waits for anybody: a bcast at its root and a reduce at a
 * leaf both send and go on. */
#define SHARED_MARK_BITS  10
#define SHARED_MARKS_BITS (2 * SHARED_MARK_BITS - 1)
#define SHARED_WORD_BITS  (SHARED_MARKS_BITS + 2)
static inline uint64_t shared_pack_word(uint64_t step, enum shared_method method, uint64_t marks)
{
    return step << SHARED_WORD_BITS | (uint64_t)method << SHARED_MARKS_BITS | marks;
}

static inline uint64_t shared_hash_mark(uint64_t what)
{
    return what * 0x9e3779b97f4a7c15u >> (64 - SHARED_MARK_BITS);
}

#define SHARED_WHAT_KIND ((uint64_t)0xffffff << 40) /* without the bytes */

/* The number and kind of a call on its communicator, for ranks that are about to sleep. Never 0. */
static inline uint64_t shared_pack_entry(uint32_t number, enum coll_kind kind, int root)
{
    return (uint64_t)number << 32 | (uint64_t)(kind + 1) << 16 | (uint64_t)(root & 0xffff);
}

/* Ensures that there are big slots, and learns whether memory can be read directly. False if no slots can be
 * had. Collective. */
bool shared_open_big(struct shared *b);
/* Opens many big slots at once if there is memory. Collective. */
void shared_open_many(struct shared *b);
/* Frees the big slots, which no rank uses any more. */
void shared_close_big(struct shared *b);

static inline bool shared_is_barrier(uint64_t what)
{
    return what >> 56 == COLL_BARRIER + 1;
}

static inline void shared_enter_call(struct shared *b, enum coll_kind kind, int root, uint64_t bytes,
                                     uint32_t number)
{
    struct shared_rank *me = &b->head->rank[b->comm->rank];
    atomic_store_explicit(&me->entered, shared_pack_entry(number, kind, root), memory_order_relaxed);
    if (bytes > SHARED_INLINE && unlikely(b->often < SHARED_OFTEN) && ++b->often == SHARED_OFTEN)
        shared_open_many(b);
    const uint64_t what =
        (uint64_t)(kind + 1) << 56 | (uint64_t)(root & 0xffff) << 40 | (bytes & ~SHARED_WHAT_KIND);
    const uint64_t before = b->what;
    if (likely(before == what && b->before == what))
        return; /* the same for the third time */
    if (shared_is_barrier(before) && kind != COLL_BARRIER)
        b->to_root = kind <= COLL_SCATTER || kind == COLL_REDUCE;
    b->what = what;
    b->before = before;
    b->marks = shared_hash_mark(what) | shared_hash_mark(before & SHARED_WHAT_KIND) >> 1 << SHARED_MARK_BITS;
    atomic_store_explicit(&me->before, before, memory_order_relaxed);
    atomic_store_explicit(&me->what, what, memory_order_relaxed);
}

/* Opens the block, agreed on in the call with this number; NULL if there is none. Once, collective. */
struct shared *shared_open(struct coll_state *state, const struct coll_args *args, uint32_t number);
/* The number of slots that a rank has for more than SHARED_INLINE bytes; the same at all ranks in every call.
 * A power of two. */
static inline uint32_t shared_slot_count(const struct shared *b)
{
    return likely(b->big != NULL) ? b->big_depth : SHARED_DEPTH_ONE;
}

/* The address of a rank's contribution to a step, for this many bytes. */
static inline char *shared_slot(const struct shared *b, int rank, uint64_t step, size_t bytes)
{
    struct shared_rank *r = &b->head->rank[rank];
    if (bytes <= SHARED_INLINE)
        return r->flag[step % SHARED_DEPTH].data;
    const uint64_t slot = step & (shared_slot_count(b) - 1);
    if (unlikely(!b->big))
        return r->small[slot];
    return b->big + ((size_t)rank * b->big_depth + slot) * b->head->big_size;
}

/* The readers of this rank's slot of that step. */
static inline struct slot_use *shared_get_slot_use(struct shared *b, uint64_t step)
{
    return &b->slot_use[step & (shared_slot_count(b) - 1)];
}

/* Waits until this reader, or everyone, is done with the step. */
void shared_wait_readers_done(struct shared *b, uint64_t step, int reader);

/* Called before a slot is written in this step for this reader: waits until no rank reads its old
 * contents. */
static inline void shared_wait_slot_free(struct shared *b, struct slot_use *use, uint64_t step, int reader)
{
    if (unlikely(!slot_is_free(use, b->safe, b->seen)))
        shared_wait_readers_done(b, use->step, use->reader);
    use->step = step;
    use->reader = reader;
}

/* Begins a step in which this rank writes a slot of this size for this reader. */
static inline uint64_t shared_begin_step(struct shared *b, size_t bytes, int reader)
{
    const uint64_t step = ++b->step;
    shared_wait_slot_free(b, &b->flag_use[step % SHARED_DEPTH], step, reader);
    if (bytes > SHARED_INLINE) {
        shared_wait_slot_free(b, shared_get_slot_use(b, step), step, reader);
        b->slot_gap = step - b->slot_step;
        b->slot_step = step;
    }
    return step;
}

/* Posts a step: what was written before becomes visible with the flag. The caller must wake sleeping readers:
 * shared_wake or shared_synchronize must follow. The flags of the next steps are prefetched: they were last
 * in the readers' caches. */
static inline void shared_post_step(struct shared *b, uint64_t step, enum shared_method method)
{
    struct shared_flag *flag = b->head->rank[b->comm->rank].flag;
    atomic_store_explicit(&flag[step % SHARED_DEPTH].posted, shared_pack_word(step, method, b->marks),
                          memory_order_release);
    cpu_prefetch_write(&flag[(step + SHARED_AHEAD) % SHARED_DEPTH]);
}

/* Waits until the rank has posted the step. Returns false if a rank turns out to be in another call:
 * b->mismatched_rank is that rank. */
bool shared_wait(struct shared *b, int rank, uint64_t step);
/* Waits until the rank has posted the step (returns 0), or has written more than `have` parts of its small
 * slot (returns their number). */
uint64_t shared_wait_part(struct shared *b, int rank, uint64_t step, uint64_t have);
/* True if the rank has posted the step; ignores marks. */
bool shared_has_posted(const struct shared *b, int rank, uint64_t step);
/* Waits until ready(arg). The rank that changes the condition rings this rank's bell. */
void shared_wait_until(struct shared *b, bool (*ready)(void *), void *arg);
/* Accepts help in this step (0: in none). */
void shared_accept(struct shared *b, uint64_t step);
/* Called with the current steps posted, the first of which is `step`: waits until that reader accepts help
 * with them or is done with them. True if it accepts. */
bool shared_wait_accepted(struct shared *b, int reader, uint64_t step);
/* Posts the step, waits for all ranks, and wakes them if this rank arrives last. */
bool shared_synchronize(struct shared *b, uint64_t step, enum shared_method method);
/* The method by which the data of a rank that has posted this step moves. */
static inline enum shared_method shared_get_posted_method(const struct shared *b, int rank, uint64_t step)
{
    return (enum shared_method)(
        atomic_load_explicit(&b->head->rank[rank].flag[step % SHARED_DEPTH].posted, memory_order_relaxed) >>
            SHARED_MARKS_BITS &
        3);
}
/* Returns true if the data of all ranks is in GPU memory. Called once at every rank in every call of at least
 * coll_device_min_bytes bytes. Only ranks that report true wait for the others. */
bool shared_all_on_device(struct shared *b, bool mine);
/* The error for a call in which another rank is in a different call. */
int shared_mismatch(struct shared *b);
/* Declares that this rank will not read anything of this step any more, and wakes ranks that wait for
 * that. */
void shared_report_step(struct shared *b, uint64_t step);
/* Reports a step without a big slot, at once or within SHARED_LAG steps. */
static inline void shared_report_short_step(struct shared *b, uint64_t step)
{
    if (slots_must_report(b->reported, step, SHARED_LAG))
        shared_report_step(b, step);
}
/* Wakes one rank, or all with SHARED_EVERYONE. */
static inline void shared_wake(struct shared *b, int rank)
{
    const struct net *net = b->comm->proc->net;
    if (rank != SHARED_EVERYONE) {
        net_ring_bell_local(net, b->bell[rank]);
        return;
    }
    for (int r = 0; r < b->comm->size; r++)
        if (r != b->comm->rank)
            net_ring_bell_local(net, b->bell[r]);
}

/* Reads the memory of another rank, or writes it. */
int shared_read(struct shared *b, int rank, void *to, uint64_t from, size_t len);
int shared_write(struct shared *b, int rank, uint64_t to, const void *from, size_t len);
char *shared_scratch(struct shared *b);

/* The operations. */
void shared_barrier(struct shared *b);

#endif
