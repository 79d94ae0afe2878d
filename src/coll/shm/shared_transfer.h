/* shared_transfer.h: the general path of all shared-memory collectives that move data: some ranks contribute,
 * some read, in steps of one slot, or at once where memory is read directly.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHM_SHARED_TRANSFER_H
#define FP_COLL_SHM_SHARED_TRANSFER_H

#include "coll/shm/split_copy.h"

/* Limits of an allreduce in which every rank combines all elements, and not only a share of them. */
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
    bool each;          /* a writer has another block for every reader, not one block for all */
    const void *offer;  /* this rank's contribution, contiguous, for others to read; NULL: not contiguous */
    void *target;       /* this rank's memory into which owners may write contributions; NULL: none */
    const void *mine;   /* reductions: this rank's contribution, with which an owner combines its own */
    bool helps;         /* an owner may write a part of its contribution; the same at all ranks */
    const int64_t *starts; /* reduce_scatter: coll_shape.starts */
    uint64_t reading; /* bit r: the data of rank r does not come through slots (METHOD_READ, METHOD_SPLIT) */
    bool fetched;     /* all data is in the result, so that `finish` has nothing to do */
    /* bit r of `reading` is set: address of the data in the memory of rank r */
    uint64_t remote[SHARED_RANKS_MAX];
    enum shared_method method; /* method of the last contribution */
    uint64_t filled_ns;        /* METHOD_SLOTS: ns in which the owner filled the first slot */
    struct shared_decision decision;
    uint64_t entered; /* start (ns) of a long call where ranks share processors; else 0 */
    int error;
};

struct transfer_ops {
    /* Copies bytes at .. at + len - 1 of this rank's block, or of each of its blocks, into a slot. */
    void (*put)(struct transfer *t, char *slot, size_t at, size_t len);
    /* Copies these bytes of rank r's block for this rank out of a slot. NULL: `finish` does it. */
    void (*take)(struct transfer *t, int r, const char *from, size_t at, size_t len);
    /* Reads the whole block from the memory of rank r, alone or while rank r writes a part of the block.
     * NULL: `finish` does it. */
    void (*fetch)(struct transfer *t, int r);
    void (*fetch_helped)(struct transfer *t, int r);
    /* Reductions: combines this rank's elements with the reader's elements, which are in scratch memory. */
    split_copy_part *combine;
    /* Copies this rank's block for itself, while other ranks read its blocks for them. May be NULL. */
    void (*own)(struct transfer *t);
    /* Called when these bytes of all ranks have arrived, or, of ranks in `reading`, all bytes. May be
     * NULL. */
    void (*finish)(struct transfer *t, uint64_t step, size_t at, size_t len);
};

/* Runs the transfer. False: use a schedule. `unit`: a chunk is a multiple of this number of bytes. */
bool transfer_run(struct transfer *t, size_t unit);

/* The offset of the data for rank r in a slot of rank w, if blocks have `len` bytes. */
static inline size_t transfer_offset(const struct transfer *t, int w, int r, size_t len)
{
    const int size = t->b->comm->size;
    return t->each ? (size_t)((r - w - 1 + size) % size) * len : 0;
}

/* The address of rank r's contribution, for this rank, to a step of `len` bytes per block. */
const char *transfer_slot(const struct transfer *t, int r, uint64_t step, size_t len);

bool shared_move_data(struct shared *b, const struct coll_args *args, size_t bytes, int *rc);
bool shared_combine(struct shared *b, const struct coll_args *args, const struct call *call, int *rc);

#endif
