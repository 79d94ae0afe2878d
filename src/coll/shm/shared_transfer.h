/* shared_transfer.h: the general path of all shared-memory collectives that move data: some ranks contribute
 * and some read, in steps of one slot, or in one step if memory is read directly.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHM_SHARED_TRANSFER_H
#define FP_COLL_SHM_SHARED_TRANSFER_H

#include "coll/shm/split_copy.h"

/* Limits up to which every rank of an allreduce combines all elements; above, each combines a share. */
#define SHARED_ALL_READ_RANKS 3    /* ranks, for vectors of any size */
#define SHARED_ALL_READ_MAX   1024 /* bytes of the vector, for any number of ranks */

/* One collective call at one rank. */
struct transfer {
    struct shared *b;
    const struct coll_args *args;
    const struct transfer_ops *ops;
    size_t bytes;       /* packed bytes of one block; of the longest block if their sizes differ */
    size_t chunk;       /* bytes of a block that one step moves */
    int writer, reader; /* a rank, or SHARED_EVERYONE */
    bool each;          /* a writer has a separate block for every reader */
    const void *offer;  /* contiguous contribution of this rank, for others to read; NULL: not contiguous */
    void *target;       /* result memory into which owners may write their contributions; NULL: none */
    const void *mine;   /* reductions: contribution of this rank, read by helping owners */
    bool helps;         /* an owner may write a part of its contribution; the same at all ranks */
    const int64_t *starts; /* reduce_scatter: coll_shape.starts */
    uint64_t reading;      /* bit r: the data of rank r is not in slots (METHOD_READ, METHOD_SPLIT) */
    bool fetched;          /* all data is in the result, so that `finish` has nothing to do */
    /* by rank whose bit in `reading` is set: address of the data in its memory */
    uint64_t remote[SHARED_RANKS_MAX];
    enum shared_method method; /* method of the last contribution */
    uint64_t filled_ns;        /* METHOD_SLOTS: time (ns) in which the owner filled the first slot */
    struct shared_decision decision;
    uint64_t entered; /* start (ns) of a long call if ranks share processors; else 0 */
    int error;
};

struct transfer_ops {
    /* Copies bytes [at, at + len) of this rank's block, or of each of its blocks, into a slot. */
    void (*put)(struct transfer *t, char *slot, size_t at, size_t len);
    /* Copies bytes [at, at + len) of rank r's block from a slot. NULL: `finish` reads the slots. */
    void (*take)(struct transfer *t, int r, const char *from, size_t at, size_t len);
    /* Read the whole block from the memory of rank r; fetch_helped while rank r writes a part of it (split
     * copy). NULL: `finish` reads it. */
    void (*fetch)(struct transfer *t, int r);
    void (*fetch_helped)(struct transfer *t, int r);
    /* Reductions: combines this rank's elements with the reader's elements, which are in scratch memory. */
    split_copy_part *combine;
    /* Copies this rank's block to its own result, while other ranks read. May be NULL. */
    void (*own)(struct transfer *t);
    /* Called when bytes [at, at + len) of all ranks (all bytes of ranks in `reading`) are here. May be
     * NULL. */
    void (*finish)(struct transfer *t, uint64_t step, size_t at, size_t len);
};

/* Runs the transfer. Returns false if a schedule must be used. Chunks are multiples of `unit` bytes. */
bool transfer_run(struct transfer *t, size_t unit);

/* Returns the offset of the data for rank r in a slot of rank w, if blocks have `len` bytes. */
static inline size_t transfer_offset(const struct transfer *t, int w, int r, size_t len)
{
    const int size = t->b->comm->size;
    return t->each ? (size_t)((r - w - 1 + size) % size) * len : 0;
}

/* Returns the address of rank r's data for this rank in a step of `len` bytes per block. */
const char *transfer_slot(const struct transfer *t, int r, uint64_t step, size_t len);

bool shared_move_data(struct shared *b, const struct coll_args *args, size_t bytes, int *rc);
bool shared_combine(struct shared *b, const struct coll_args *args, const struct call *call, int *rc);

#endif
