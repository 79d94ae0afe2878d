/* block.h: collectives of ranks on one node through shared memory: an executor of blocking calls, which the
 * selection chooses under the name "shared".
 *
 * Every rank has rings of slots that only this rank writes. Collectives on a communicator are divided into
 * steps with the same numbers at every rank. In step s a rank that contributes data writes a slot and then
 * its flag. A flag and up to 48 bytes of data share one cache line, so that a small contribution costs one
 * line transfer. Instead of data a flag may contain an address: the readers then read the sender's memory.
 *
 * Each rank publishes in its `done` word the last step of which it has read all data; after short steps it
 * publishes the word only every few steps, so that its cache line is not transferred in every step. A slot is
 * overwritten only when all readers are done with the step that last used the slot. Therefore ranks that only
 * send (the root of a bcast, the leaves of a gather) can be ahead by as many steps as there are slots.
 *
 * Rings of large slots are long: data moves through a ring of some hundred KiB up to twice as fast
 * (lab/notes/one-node.md), probably because the reader finds the data in the second-level cache of the
 * writer's processor and not in its first-level cache. A communicator begins with small slots, and gets big
 * slots when it needs them or when its calls continue to fill slots.
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
#define SHARED_DEPTH     64   /* number of flags of a rank */
#define SHARED_DEPTH_ONE 8    /* number of small slots of a rank */
#define SHARED_LAG       4    /* steps that a rank may complete before it must publish its `done` word */
#define SHARED_AHEAD     4    /* distance in steps at which flags are prefetched for writing */
#define SHARED_DEPTH_BIG 64   /* limit of big slots of a rank */
#define SHARED_DEPTH_FEW 8    /* big slots of a rank if memory is scarce, or if ranks share processors */
#define SHARED_OFTEN     64   /* calls with data in slots after which big slots are opened */
#define SHARED_INLINE    112  /* bytes of data beside a flag, 48 of them in the flag's cache line */
#define SHARED_SMALL     4096 /* bytes of a small slot */
/* Bytes of each part of a slot that is announced to a single reader while the next part is written. */
#define SHARED_PART      1024
#define SHARED_AREA_MAX  (8u << 20) /* limit of bytes of all big slots with SHARED_DEPTH_FEW slots each */
#define SHARED_AREA_DEEP (4u << 20) /* limit of bytes of all ranks' big slots with more slots each */
#define SHARED_SCRATCH   131072     /* bytes of each read from the memory of another rank */
#define SHARED_EVERYONE  SLOTS_EVERYONE

_Static_assert(SHARED_SHORT / SHARED_PART <= 1u << SLOT_PART_BITS, "see slot_pack_parts");
_Static_assert(SHARED_LAG <= SHARED_DEPTH_FEW && SHARED_LAG <= SHARED_DEPTH_ONE, "see slots_must_report");
_Static_assert(SHARED_DEPTH_BIG <= SHARED_DEPTH, "a slot without a flag would never be used");

/* Aligned to two cache lines: processors prefetch lines in pairs, and the owner writes the next flag while
 * readers read this one. */
struct shared_flag {
    /* step, method, and marks of the current and previous call: see shared_pack_word */
    alignas(2 * CACHE_LINE) _Atomic uint64_t posted;
    /* number of parts of a small slot written before `posted`: see slot_pack_parts */
    _Atomic uint64_t part;
    alignas(16) char data[SHARED_INLINE];
};

/* The words that one rank writes and the others read. */
struct shared_rank {
    struct shared_flag flag[SHARED_DEPTH];
    alignas(CACHE_LINE) _Atomic uint64_t done; /* the last step whose data this rank has read completely */
    alignas(CACHE_LINE) _Atomic uint64_t call; /* current call; others read it only if marks differ */
    _Atomic uint64_t previous_call;            /* the call before `call` */
    /* Number and kind of this rank's call: see shared_pack_entry. Written in every call, therefore two
     * cache lines away from the words that other ranks poll: processors prefetch lines in pairs. */
    alignas(2 * CACHE_LINE) _Atomic uint64_t entered;
    /* Split copies (split_copy.h), in which the owner of the data helps the reader. At the reader: the
     * step for which it accepts help, the call, the address for the data, and in reductions the address of
     * its own contribution. */
    alignas(2 * CACHE_LINE) _Atomic uint64_t accept;
    _Atomic uint64_t accept_call, accept_at, accept_mine;
    /* At the owner: claims on the units of its contribution, number of written units, number of all units. */
    alignas(2 * CACHE_LINE) _Atomic uint64_t claims;
    alignas(2 * CACHE_LINE) _Atomic uint64_t wrote;
    _Atomic uint32_t units;
    /* Time of calls at this rank, by operation and size class; rank 0 reads it (method.h). */
    alignas(2 * CACHE_LINE) _Atomic uint64_t cost[COLL_SCAN][SHARED_CLASSES];
    /* Upper 48 bits: number of calls of at least coll_device_min_bytes bytes. Lower 16 bits: for the last
     * 16 of them (bit 0 = the last) whether all data of this rank was in GPU memory. */
    alignas(CACHE_LINE) _Atomic uint64_t devices;
    alignas(CACHE_LINE) char small[SHARED_DEPTH_ONE][SHARED_SMALL];
};

struct shared_head {
    _Atomic uint32_t users; /* ranks that have this block open */
    uint32_t big_size;      /* bytes of a big slot, chosen by rank 0 */
    uint32_t big_depth;     /* big slots of a rank; written before `big_at` */
    /* offset of the big slots in the node's area + 1; 0: not allocated yet; UINT64_MAX: no memory */
    _Atomic uint64_t big_at;
    _Atomic uint32_t big_arrived; /* ranks that are ready to use the big slots */
    _Atomic uint32_t readers;     /* ranks that can read the memory of all other ranks */
    /* number of ranks that wait for a report of another rank (`done`, `accept` or `devices`) */
    alignas(CACHE_LINE) _Atomic uint32_t waiting;
    /* decisions of rank 0, by operation and size class (method.h) */
    alignas(CACHE_LINE) _Atomic uint32_t decision[COLL_SCAN][SHARED_CLASSES];
    struct shared_rank rank[];
};

/* One rank's view of the block. */
struct shared {
    struct comm *comm;
    struct shared_head *head;
    uint64_t offset;
    size_t length;
    char *big;                    /* [rank][big_depth][big_size], NULL until used */
    uint32_t big_depth;           /* big slots of a rank */
    uint32_t often;               /* calls that have filled a small slot, up to SHARED_OFTEN */
    char *scratch;                /* 3 * SHARED_SCRATCH bytes, NULL until used */
    uint64_t step;                /* the last step that this rank has begun */
    uint64_t safe;                /* every rank is done with this step and all earlier steps */
    uint64_t call, previous_call; /* current and previous call, as in struct shared_rank */
    uint64_t marks;               /* hash marks of `call` and `previous_call`, part of each flag */
    bool to_root;                 /* the first call after the last barrier had a root */
    struct slot_use flag_use[SHARED_DEPTH];
    /* last uses of this rank's small slots; of its big slots once they are open */
    struct slot_use slot_use[SHARED_DEPTH_BIG];
    uint64_t slot_step;                      /* step in which this rank last wrote a slot */
    uint64_t slot_gap;                       /* steps between the last two slots that this rank wrote */
    uint64_t reported;                       /* last value of this rank's `done` word */
    uint64_t seen[SHARED_RANKS_MAX];         /* `done` words of all ranks, as last read */
    struct doorbell *bell[SHARED_RANKS_MAX]; /* doorbells by rank */
    struct shared_key key[COLL_SCAN][SHARED_CLASSES];
    bool no_big;              /* the node's area has no memory for big slots */
    bool reads;               /* every rank can read every other rank's memory */
    bool no_help;             /* this rank cannot write the memory of other ranks */
    int mismatched_rank;      /* 1 + a rank whose call does not match the current call; 0: none found */
    bool mismatch_is_earlier; /* the mismatch is in the previous call (of rank mismatched_rank - 1) */
    bool mismatch_reported;   /* the mismatch of the previous call has been reported at this rank */
    uint64_t mismatched_call; /* the call of rank mismatched_rank - 1 */
};

/* Caches the selection: short calls of this communicator skip call_make() and coll_select(). They use the
 * same protocol as the general path, so ranks may differ in the path that they use. */
void shared_cache_selection(struct coll_state *state);
void shared_close(struct coll_state *state);
extern const struct coll_executor shared_executor;
extern struct counter shared_runs;

/* The word of a flag: step, method, and a few hash bits (marks) of the current and the previous call,
 * which must be the same at all ranks. Comparing them takes no extra time. The previous call (its kind and
 * root) is included for calls in which no rank waits: the root of a bcast and a leaf of a reduce send and
 * continue. */
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

#define SHARED_WHAT_KIND ((uint64_t)0xffffff << 40) /* the kind and root of `what`, without the bytes */

/* Packs number, kind and root of a call. Ranks that are about to sleep compare these words. Never 0. */
static inline uint64_t shared_pack_entry(uint32_t number, enum coll_kind kind, int root)
{
    return (uint64_t)number << 32 | (uint64_t)(kind + 1) << 16 | (uint64_t)(root & 0xffff);
}

/* Opens the big slots if necessary, and finds out whether memory of other ranks can be read directly.
 * Returns false if there is no memory for slots. Collective. */
bool shared_open_big(struct shared *b);
/* Frees the big slots. No rank may use them any more. */
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
        shared_open_big(b);
    const uint64_t what =
        (uint64_t)(kind + 1) << 56 | (uint64_t)(root & 0xffff) << 40 | (bytes & ~SHARED_WHAT_KIND);
    const uint64_t before = b->call;
    if (likely(before == what && b->previous_call == what))
        return; /* three equal calls in succession: nothing to update */
    if (shared_is_barrier(before) && kind != COLL_BARRIER)
        b->to_root = kind <= COLL_SCATTER || kind == COLL_REDUCE;
    b->call = what;
    b->previous_call = before;
    b->marks = shared_hash_mark(what) | shared_hash_mark(before & SHARED_WHAT_KIND) >> 1 << SHARED_MARK_BITS;
    atomic_store_explicit(&me->previous_call, before, memory_order_relaxed);
    atomic_store_explicit(&me->call, what, memory_order_relaxed);
}

/* Opens the shared block in the call with this number; NULL if there is no memory. Collective; called once
 * for each communicator. */
struct shared *shared_open(struct coll_state *state, const struct coll_args *args, uint32_t number);
/* Number of slots of a rank for more than SHARED_INLINE bytes: a power of two, the same at all ranks. */
static inline uint32_t shared_slot_count(const struct shared *b)
{
    return likely(b->big != NULL) ? b->big_depth : SHARED_DEPTH_ONE;
}

/* Returns the address of a rank's slot in a step, for a contribution of this many bytes. */
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

/* Returns the last use (step and reader) of this rank's slot for that step. */
static inline struct slot_use *shared_get_slot_use(struct shared *b, uint64_t step)
{
    return &b->slot_use[step & (shared_slot_count(b) - 1)];
}

/* Waits until this reader (or all ranks, SHARED_EVERYONE) is done with the step. */
void shared_wait_readers_done(struct shared *b, uint64_t step, int reader);

/* Called before this rank writes a slot for this reader: waits until no rank reads its old contents. */
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

/* Posts a step: stores before it are visible to ranks that see the flag (release; pairs with the acquire
 * load in shared_wait). The caller must then call shared_wake or shared_synchronize. A later flag is
 * prefetched for writing, since it was last in the readers' caches. */
static inline void shared_post_step(struct shared *b, uint64_t step, enum shared_method method)
{
    struct shared_flag *flag = b->head->rank[b->comm->rank].flag;
    atomic_store_explicit(&flag[step % SHARED_DEPTH].posted, shared_pack_word(step, method, b->marks),
                          memory_order_release);
    cpu_prefetch_write(&flag[(step + SHARED_AHEAD) % SHARED_DEPTH]);
}

/* Waits until the rank has posted the step. If a rank is in a different call, sets b->mismatched_rank. */
bool shared_wait(struct shared *b, int rank, uint64_t step);
/* Waits until the rank has posted the step (returns 0) or has announced more than `have` parts of its
 * small slot (returns their number). */
uint64_t shared_wait_part(struct shared *b, int rank, uint64_t step, uint64_t have);
/* True if the rank has posted the step; ignores marks. */
bool shared_has_posted(const struct shared *b, int rank, uint64_t step);
/* Waits until ready(arg). The rank that makes it true must ring the doorbell of this rank. */
void shared_wait_until(struct shared *b, bool (*ready)(void *), void *arg);
/* Publishes that this rank, as a reader, accepts help of the owner in this step (0: in none). */
void shared_accept(struct shared *b, uint64_t step);
/* Called by an owner that has posted its steps from `step` on: waits until the reader accepts help with
 * the step (returns true) or is done with it (returns false). */
bool shared_wait_accepted(struct shared *b, int reader, uint64_t step);
/* Posts the step and waits until all ranks have posted it. Returns false on a mismatch. */
bool shared_synchronize(struct shared *b, uint64_t step, enum shared_method method);
/* Returns the method in the flag of a rank that has posted this step. */
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
/* Returns the error of a call during which another rank is in a different call. */
int shared_mismatch(struct shared *b);
/* Reports that this rank is done with reading this step, and wakes ranks that wait for the report. */
void shared_report_step(struct shared *b, uint64_t step);
/* Reports a short step, at once or within the next SHARED_LAG steps. */
static inline void shared_report_short_step(struct shared *b, uint64_t step)
{
    if (slots_must_report(b->reported, step, SHARED_LAG))
        shared_report_step(b, step);
}
/* Wakes one rank, or all other ranks with SHARED_EVERYONE. */
static inline void shared_wake(struct shared *b, int rank)
{
    const struct net *net = b->comm->proc->net;
    if (rank != SHARED_EVERYONE) {
        net_wake_local_doorbell(net, b->bell[rank]);
        return;
    }
    for (int r = 0; r < b->comm->size; r++)
        if (r != b->comm->rank)
            net_wake_local_doorbell(net, b->bell[r]);
}

/* Read or write the memory of another rank. */
int shared_read(struct shared *b, int rank, void *to, uint64_t from, size_t len);
int shared_write(struct shared *b, int rank, uint64_t to, const void *from, size_t len);
char *shared_scratch(struct shared *b);

void shared_barrier(struct shared *b);

#endif
