/* short.c: fast path of short calls through the shared block, whose data fits in a slot. The general path
 * (shared_transfer.c) takes several times as long as the transfer of one cache line. Steps, slots and marks
 * are the same in both paths, so ranks may use different paths.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/copy.h"
#include "base/counter.h"
#include "coll/coll_debug.h"
#include "coll/shm/block.h"
#include "coll/shm/shared_transfer.h"

COUNTER(shared_runs, "coll_shared", "Collectives executed in the node's shared memory.");

static inline struct shared_flag *rank_flag(const struct shared *b, int rank, uint64_t step)
{
    return &b->head->rank[rank].flag[step % SHARED_DEPTH];
}

/* Prefetches all lines of a slot before it is written. They were last in the readers' caches; without
 * prefetches the stores would wait for each line in turn. */
static inline void slot_prefetch(const char *slot, size_t bytes)
{
    for (size_t at = 0; bytes > SHARED_INLINE && at < bytes; at += CACHE_LINE)
        cpu_prefetch_write(slot + at);
}

/* Prefetches the slot that this rank will write next if the distance between its calls is constant, unless
 * readers may still use the slot. */
static inline void prefetch_next_slot(struct shared *b, size_t bytes)
{
    const uint64_t next = b->slot_step + b->slot_gap;
    if (next > b->step && next - b->slot_step < shared_slot_count(b) && !b->comm->proc->net->oversubscribed &&
        slot_is_free(shared_get_slot_use(b, next), b->safe, b->seen))
        slot_prefetch(shared_slot(b, b->comm->rank, next, bytes), bytes);
}

/* Begins a step and returns the slot for the `bytes` bytes that this rank sends in it. */
static inline char *slot_begin(struct shared *b, int reader, size_t bytes)
{
    const uint64_t step = shared_begin_step(b, bytes, reader);
    char *slot = shared_slot(b, b->comm->rank, step, bytes);
    slot_prefetch(slot, bytes);
    return slot;
}

static inline void slot_post(struct shared *b, int reader)
{
    shared_post_step(b, b->step, METHOD_SLOTS);
    shared_wake(b, reader);
}

/* Returns the data that rank r sends in this step; NULL if rank r is in a different call. */
static inline const char *slot_wait(struct shared *b, int r, uint64_t step, size_t bytes)
{
    struct shared_flag *flag = rank_flag(b, r, step);
    const uint64_t word = shared_pack_word(step, METHOD_SLOTS, b->marks);
    if (atomic_load_explicit(&flag->posted, memory_order_acquire) == word) {
        /* Rank r is ahead: prefetch its next flag. */
        __builtin_prefetch(rank_flag(b, r, step + 1));
        if (b->comm->size == 2)
            b->safe = MAX(b->safe, step - 1);
    } else if (!shared_wait(b, r, step)) {
        return NULL;
    }
    return shared_slot(b, r, step, bytes);
}

/* Sends `bytes` bytes to one reader. A long slot is announced in parts, each when it is written, so that
 * this processor and the reader's processor transfer cache lines in parallel. Not if ranks share
 * processors, since they do not run in parallel. Only the last part wakes a sleeping reader. */
static void send_parts(struct shared *b, int reader, const char *from, size_t bytes)
{
    const uint64_t step = shared_begin_step(b, bytes, reader);
    struct shared_flag *flag = rank_flag(b, b->comm->rank, step);
    char *slot = shared_slot(b, b->comm->rank, step, bytes);
    const size_t part = bytes <= SHARED_INLINE || b->comm->proc->net->oversubscribed ? bytes : SHARED_PART;
    const uint64_t word = shared_pack_word(step, METHOD_SLOTS, b->marks);
    size_t at = 0;
    for (uint64_t n = 1; bytes - at > part; n++, at += part) {
        slot_prefetch(slot + at, part);
        memcpy(slot + at, from + at, part);
        atomic_store_explicit(&flag->part, slot_pack_parts(word, n), memory_order_release);
    }
    slot_prefetch(slot + at, bytes - at);
    copy_bytes(slot + at, from + at, bytes - at);
    slot_post(b, reader);
}

/* Copies the parts that rank r announces until it has posted the step. Returns the bytes copied. */
static size_t copy_announced_parts(struct shared *b, int r, uint64_t step, char *to)
{
    const char *slot = shared_slot(b, r, step, SHARED_SMALL);
    uint64_t have = 0, now;
    for (; (now = shared_wait_part(b, r, step, have)) > 0; have = now)
        memcpy(to + have * SHARED_PART, slot + have * SHARED_PART, (now - have) * SHARED_PART);
    return have * SHARED_PART;
}

/* Receives `bytes` bytes from rank r; false if rank r is in a different call. */
static inline bool receive_parts(struct shared *b, int r, uint64_t step, char *to, size_t bytes)
{
    size_t have = 0;
    if (bytes > SHARED_PART && !b->comm->proc->net->oversubscribed)
        have = copy_announced_parts(b, r, step, to);
    const char *from = slot_wait(b, r, step, bytes);
    if (likely(from != NULL))
        copy_bytes(to + have, from + have, bytes - have);
    return from != NULL;
}

static inline char *side_block_address(const struct coll_side *side, int index, size_t bytes)
{
    return (char *)side->buf + (size_t)index * bytes;
}

/* Returns the offset of rank r's data in a slot of rank w that has separate data for each rank. */
static inline size_t slot_offset(const struct shared *b, int w, int r, size_t bytes)
{
    return (size_t)(r > w ? r - w - 1 : r - w - 1 + b->comm->size) * bytes;
}

/* Copies this rank's blocks for the other ranks into its slot, in the order of slot_offset(). */
static inline void copy_blocks_to_slot(const struct shared *b, const struct coll_side *side, char *slot,
                                       size_t bytes)
{
    const int me = b->comm->rank;
    for (int r = me + 1; r < b->comm->size; r++, slot += bytes)
        copy_bytes(slot, side_block_address(side, r, bytes), bytes);
    for (int r = 0; r < me; r++, slot += bytes)
        copy_bytes(slot, side_block_address(side, r, bytes), bytes);
}

/* Blocks in a slot: one for each reader, or one for all. */
static inline size_t slot_blocks(const struct shared *b, bool each)
{
    return each ? (size_t)b->comm->size - 1 : 1;
}

/* The root sends one block to all ranks (bcast), or a separate block to each (scatter). */
static inline void move_from_root(const struct coll_args *a, struct shared *b, size_t bytes, bool each)
{
    const int me = b->comm->rank, root = a->root, other = 1 - root;
    const size_t all = bytes * slot_blocks(b, each);
    const struct coll_side *side = each ? &a->send : &a->recv;
    if (me != root && each && b->comm->size > 2) {
        const char *from = slot_wait(b, root, ++b->step, all);
        if (likely(from != NULL))
            copy_bytes(a->recv.buf, from + slot_offset(b, root, me, bytes), bytes);
        return;
    }
    if (me != root) {
        receive_parts(b, root, ++b->step, a->recv.buf, bytes);
        return;
    }
    if (b->comm->size == 2) {
        send_parts(b, other, side_block_address(side, each ? other : 0, bytes), bytes);
    } else {
        char *slot = slot_begin(b, SHARED_EVERYONE, all);
        if (each)
            copy_blocks_to_slot(b, side, slot, bytes);
        else
            copy_bytes(slot, side->buf, bytes);
        slot_post(b, SHARED_EVERYONE);
    }
    if (each && !a->in_place)
        copy_bytes(a->recv.buf, side_block_address(side, me, bytes), bytes);
}

static void short_bcast(const struct coll_args *a, struct shared *b, size_t bytes)
{
    move_from_root(a, b, bytes, false);
}

static void short_scatter(const struct coll_args *a, struct shared *b, size_t bytes)
{
    move_from_root(a, b, bytes, true);
}

static void short_gather(const struct coll_args *a, struct shared *b, size_t bytes)
{
    const int me = b->comm->rank, root = a->root, size = b->comm->size;
    if (me != root) {
        send_parts(b, root, a->send.buf, bytes);
        return;
    }
    const uint64_t step = ++b->step;
    if (!a->in_place)
        copy_bytes(side_block_address(&a->recv, me, bytes), a->send.buf, bytes);
    for (int r = 0; r < size; r++)
        if (r != me && unlikely(!receive_parts(b, r, step, side_block_address(&a->recv, r, bytes), bytes)))
            break;
}

/* Combines the elements of all ranks from the last to the first, as reductions.c does. `mine`: this rank's
 * elements, which must not be in the result memory. */
static void short_combine(const struct coll_args *a, struct shared *b, uint64_t step, const void *mine,
                          size_t bytes)
{
    const int me = b->comm->rank;
    int r = b->comm->size - 1;
    const void *right = r == me ? mine : shared_slot(b, r, step, bytes);
    for (r--; r >= 0; r--) {
        const void *left = r == me ? mine : shared_slot(b, r, step, bytes);
        op_apply3(a->op, left, right, a->recv.buf, a->send.count, a->send.type);
        right = a->recv.buf;
    }
}

static void short_reduce(const struct coll_args *a, struct shared *b, size_t bytes)
{
    const int me = b->comm->rank, root = a->root, size = b->comm->size;
    char copy[SHARED_SHORT];
    if (me != root) {
        copy_bytes(slot_begin(b, root, bytes), a->send.buf, bytes);
        slot_post(b, root);
        return;
    }
    const uint64_t step = ++b->step;
    const void *mine = a->send.buf;
    if (a->in_place)
        mine = memcpy(copy, a->recv.buf, bytes);
    for (int r = 0; r < size; r++)
        if (r != me && unlikely(!slot_wait(b, r, step, bytes)))
            return;
    short_combine(a, b, step, mine, bytes);
}

static void short_allreduce(const struct coll_args *a, struct shared *b, size_t bytes)
{
    char *slot = slot_begin(b, SHARED_EVERYONE, bytes);
    copy_bytes(slot, a->in_place ? a->recv.buf : a->send.buf, bytes);
    if (likely(shared_synchronize(b, b->step, METHOD_SLOTS)))
        short_combine(a, b, b->step, a->in_place ? slot : a->send.buf, bytes);
}

/* Every rank sends one block to all ranks (allgather), or a separate block to each (alltoall). */
static inline void move_among_all(const struct coll_args *a, struct shared *b, size_t bytes, bool each)
{
    const int me = b->comm->rank, size = b->comm->size;
    const size_t all = bytes * slot_blocks(b, each);
    const struct coll_side *side = a->in_place ? &a->recv : &a->send;
    const char *own = side_block_address(side, each || a->in_place ? me : 0, bytes);
    char *slot = slot_begin(b, SHARED_EVERYONE, all);
    if (each)
        copy_blocks_to_slot(b, side, slot, bytes);
    else
        copy_bytes(slot, own, bytes);
    if (unlikely(!shared_synchronize(b, b->step, METHOD_SLOTS)))
        return;
    for (int r = 0; r < size; r++)
        if (r != me)
            copy_bytes(side_block_address(&a->recv, r, bytes),
                       shared_slot(b, r, b->step, all) + (each ? slot_offset(b, r, me, bytes) : 0), bytes);
    if (!a->in_place)
        copy_bytes(side_block_address(&a->recv, me, bytes), own, bytes);
}

static void short_allgather(const struct coll_args *a, struct shared *b, size_t bytes)
{
    move_among_all(a, b, bytes, false);
}

static void short_alltoall(const struct coll_args *a, struct shared *b, size_t bytes)
{
    move_among_all(a, b, bytes, true);
}

static void short_barrier(const struct coll_args *a, struct shared *b, size_t bytes)
{
    (void)a, (void)bytes;
    shared_synchronize(b, shared_begin_step(b, 0, SHARED_EVERYONE), METHOD_SLOTS);
}

static void (*const short_of[])(const struct coll_args *, struct shared *, size_t) = {
    [COLL_BARRIER] = short_barrier, [COLL_BCAST] = short_bcast,         [COLL_GATHER] = short_gather,
    [COLL_SCATTER] = short_scatter, [COLL_ALLGATHER] = short_allgather, [COLL_ALLTOALL] = short_alltoall,
    [COLL_REDUCE] = short_reduce,   [COLL_ALLREDUCE] = short_allreduce,
};

/* Returns the bytes of a side if its data is contiguous, else 0. */
static inline size_t contiguous_bytes(const struct coll_side *side)
{
    return side->type && side->type->contiguous ? (size_t)(side->count * side->type->size) : 0;
}

/* Returns the bytes of a block if both sides, which describe this rank's own block, are contiguous and
 * equal in size, else 0. In place, only `many` is valid. */
static inline size_t contiguous_bytes_both(const struct coll_args *a, const struct coll_side *many,
                                           const struct coll_side *one)
{
    const size_t bytes = contiguous_bytes(many);
    return a->in_place || contiguous_bytes(one) == bytes ? bytes : 0;
}

/* Returns the bytes of a block as this rank describes it; 0 if this file does not support the call. */
static inline size_t short_block_bytes(const struct coll_args *a, const struct shared *b)
{
    const bool root = a->root == b->comm->rank;
    switch (a->kind) {
    case COLL_BCAST:
        return contiguous_bytes(&a->recv);
    case COLL_GATHER:
        return root ? contiguous_bytes_both(a, &a->recv, &a->send) : contiguous_bytes(&a->send);
    case COLL_SCATTER:
        return root ? contiguous_bytes_both(a, &a->send, &a->recv) : contiguous_bytes(&a->recv);
    case COLL_ALLGATHER:
    case COLL_ALLTOALL:
        return contiguous_bytes_both(a, &a->recv, &a->send);
    default: /* reductions: only predefined operators on predefined types */
        return a->op->handle && a->send.type->obj.predefined ? contiguous_bytes(&a->send) : 0;
    }
}

/* Returns 1 + the largest size for which this communicator uses short calls: sizes that fit in a slot,
 * always use slots, and for which the rules select the shared block. Depends only on inputs that do not
 * change. */
static __attribute__((noinline, cold)) uint16_t compute_short_limit(const struct coll_state *state,
                                                                    enum coll_kind kind)
{
    const struct coll_shape shape = {.kind = kind, .size = state->comm->size, .adjacent = true};
    struct coll_where where = {.one_node = true, .bytes = 1, .node_count = 1};
    uint64_t most = state->shared->big ? MIN(state->shared->head->big_size, SHARED_SHORT) : SHARED_SMALL;
    if (kind == COLL_SCATTER || kind == COLL_ALLTOALL)
        most /= slot_blocks(state->shared, true);
    if (kind == COLL_ALLREDUCE && shape.size > SHARED_ALL_READ_RANKS)
        most = SHARED_ALL_READ_MAX;
    while (where.bytes <= most && (coll_select(&shape, &where, true).algorithm->needs & NEED_NODE))
        where.bytes = coll_select_next(kind, where.bytes);
    return (uint16_t)(debug_coll ? 1 : MIN(where.bytes, most + 1));
}
_Static_assert(SHARED_SHORT < UINT16_MAX, "a limit fits its type");

static bool run_short(const struct coll_args *args, struct coll_state *state, int *rc)
{
    struct shared *b = state->shared;
    const enum coll_kind kind = args->kind;
    if (unlikely(args->vector))
        return false;
    if (unlikely(state->short_limit[kind] == 0))
        state->short_limit[kind] = compute_short_limit(state, kind);
    const size_t bytes = kind == COLL_BARRIER ? 0 : short_block_bytes(args, b);
    /* One unsigned comparison excludes 0 bytes and sizes above the limit; a barrier always has 0 bytes. */
    if (bytes - (kind != COLL_BARRIER) >= state->short_limit[kind] - 1u)
        return false;
    counter_add(&shared_runs, 1);
    shared_enter_call(b, kind, args->root, bytes,
                      coll_number_call(state, args, FORM_BLOCKING, COLL_PAST_OTHER));
    short_of[kind](args, b, bytes);
    if (bytes > SHARED_INLINE)
        prefetch_next_slot(b, bytes);
    *rc = 0;
    if (unlikely(b->mismatched_rank)) {
        shared_report_step(b, b->step);
        *rc = shared_mismatch(b);
        return true;
    }
    b->mismatch_reported = false;
    shared_report_short_step(b, b->step);
    return true;
}

void shared_cache_selection(struct coll_state *state)
{
    for (size_t kind = 0; kind < COUNT_OF(short_of); kind++)
        state->cached[kind] = run_short;
}
