/* shared_transfer.h: the general path of all shared-memory collectives that move data: some ranks contribute,
 * some read, in steps of one slot, or at once where memory is read directly.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHM_SHARED_TRANSFER_H
#define FP_COLL_SHM_SHARED_TRANSFER_H

#include "coll/shm/split_copy.h"

/* An allreduce in which everyone combines everything, instead of a share each: */
#define SHARED_ALL_READ_RANKS 3    /* with at most this number of ranks, however long; */
#define SHARED_ALL_READ_MAX   1024 /* up to this size in bytes, whatever the number of ranks */

/* One collective call at one rank. */
struct transfer {
    struct shared *b;
    const struct coll_args *args;
    const struct transfer_ops *ops;
    size_t bytes;          /* of one block, packed; of the longest where they differ */
    size_t chunk;          /* ... of it in one step */
    int writer, reader;    /* a rank, or SHARED_EVERYONE */
    bool each;             /* a writer has another block for every reader, not one for all */
    const void *offer;     /* my contribution in one piece, for others to read; NULL: not to be had */
    void *target;          /* where others may write what they have for me; NULL: they may not */
    const void *mine;      /* ... and of a reduction what they combine it with */
    bool helps;            /* an owner may write a part of what it has: everybody knows it alike */
    const int64_t *starts; /* reduce_scatter */
    uint64_t reading;      /* bit r: the data of rank r is to be read from its memory, or is written by it */
    bool fetched;          /* ... and it is all there, so that `finish` has nothing to do */
    uint64_t remote[SHARED_RANKS_MAX]; /* ... which begins here */
    enum shared_method method;         /* ... by which the last contribution came */
    uint64_t filled_ns;                /* through slots: how long the owner filled the first */
    struct shared_decision decision;
    uint64_t entered; /* where ranks share processors: when the call began, if it is long; else 0 */
    int error;
};

struct transfer_ops {
    /* Bytes at .. at + len - 1 of my block, or of each of my blocks one behind the other, into a slot. */
    void (*put)(struct transfer *t, char *slot, size_t at, size_t len);
    /* The same of what rank r has for me, out of a slot. NULL: `finish` does it. */
    void (*take)(struct transfer *t, int r, const char *from, size_t at, size_t len);
    /* All of it, from the memory of rank r; or with its help. May be NULL: `finish` does it. */
    void (*fetch)(struct transfer *t, int r);
    void (*fetch_helped)(struct transfer *t, int r);
    /* A reduction: combines this rank's elements with those of the reader, which are in scratch memory. */
    split_copy_part *combine;
    /* What this rank has for itself, while others are busy with what it has for them. May be NULL. */
    void (*own)(struct transfer *t);
    /* These bytes have arrived from everyone; where a rank's data is read it is all there. May be NULL. */
    void (*finish)(struct transfer *t, uint64_t step, size_t at, size_t len);
};

/* Runs the transfer. False: use a schedule. `unit`: a chunk is a multiple of this number of bytes. */
bool transfer_run(struct transfer *t, size_t unit);

/* Offset in a slot of rank w of its data for rank r, with blocks of `len` bytes. */
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
