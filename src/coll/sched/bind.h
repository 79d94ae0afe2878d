/* bind.h: maps the items of a schedule to memory: an address, a count and a datatype.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SCHED_BIND_H
#define FP_COLL_SCHED_BIND_H

#include "coll/coll.h"

/* A buffer of a schedule with its memory. */
struct bound {
    char *base;
    struct dtype *type;
    MPI_Count unit;   /* elements of an item */
    MPI_Count stride; /* bytes from one item to the next */
    bool whole;       /* the buffer has `unit` elements, and steps move all of them */
    /* If counts is set: item i is counts[i] elements at displs[i]. */
    struct ivec counts, displs;
    const MPI_Datatype *types;
};

struct place {
    void *at;
    MPI_Count count;
    struct dtype *type;
};

/* The memory of all buffers of one collective call. The caller provides temporary memory. */
struct binding {
    struct bound buf[SCHED_BUFS];
    size_t temp_size;
    int64_t *temp_starts; /* offsets of temporary blocks of different sizes; allocated, or NULL */
    /* Broadcast of noncontiguous data by an algorithm that splits data: the data is packed first. */
    bool staged, pack, unpack;
    MPI_Count staged_count;
    struct dtype *staged_type;
    void *staged_user;
};

/* Binds the user's buffers and sets temp_size, the bytes of memory that binding_temp needs. temp_items: items
 * of the schedule's temporary buffer; splits: steps name parts of a broadcast. */
int binding_make(struct binding *b, const struct coll_args *args, const struct coll_shape *shape,
                 int64_t temp_items, bool splits);
void binding_temp(struct binding *b, void *temp);
void binding_free(struct binding *b);

/* Pack the staged data of a broadcast before the first step; unpack it after the last step. */
void binding_pack_staged(struct binding *b);
void binding_unpack_staged(struct binding *b);

struct place binding_get_place(const struct binding *b, int buf, int64_t at, int64_t count);

static inline struct dtype *byte_type(void)
{
    return dt_predefined((uint32_t)(uintptr_t)MPI_BYTE);
}

static inline struct coll_side make_bytes_side(void *buf, size_t len)
{
    return (struct coll_side){.buf = buf, .count = (MPI_Count)len, .type = byte_type()};
}

/* True if an item of this kind of collective is the block of a rank or neighbour. */
static inline bool kind_has_blocks(enum coll_kind kind)
{
    return (kind >= COLL_GATHER && kind <= COLL_ALLTOALL) || kind >= COLL_NEIGHBOR_ALLGATHER;
}
static inline bool kind_reduces(enum coll_kind kind)
{
    return kind >= COLL_REDUCE && kind <= COLL_EXSCAN;
}

#endif
