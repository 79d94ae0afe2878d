/* dtype.h: a datatype for the rest of the library: sizes and bounds, walks over its layout, packing and
 * unpacking from any byte offset, and the kind of its elements for reductions. Constructors are in
 * build.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_DTYPE_H
#define FP_DT_DTYPE_H

#include <mpi.h>

#include "base/checked.h"
#include "base/err.h"
#include "base/objmem.h"

struct dt_layout; /* committed form of a type: loops over blocks */
struct dt_recipe; /* constructor of a type and its arguments: envelope and contents */
struct dt_shape;  /* parts of a type, which are of other types: build.h */
struct attr_set;  /* src/obj/attr.h */

struct dtype {
    struct object obj; /* MAGIC_DTYPE; must be the first member */
    MPI_Count size;    /* bytes of data */
    MPI_Count extent, lb;
    MPI_Count true_lb, true_extent;
    /* The data of one element is one dense block that starts at true_lb. */
    bool dense;
    /* dense, extent == size and true_lb == 0: any number of elements is one block that starts at the
     * buffer. */
    bool contiguous;
    bool committed;
    uint8_t kind;    /* enum dt_kind when all data is of one basic kind, else KIND_MIXED */
    uint32_t handle; /* predefined handle value, 0 for derived types */
    bool marked;     /* lb and ub are markers (resized, subarray, darray), which containing types inherit */
    uint16_t align;  /* strictest alignment of its basic types */
    int32_t handles; /* handles of the user; obj.refs counts these and internal references together */
    MPI_Count elements; /* basic elements */
    struct dt_layout *layout;
    struct dt_shape *shape;
    struct dt_recipe *recipe;
    struct attr_set *attrs;
    char name[MPI_MAX_OBJECT_NAME];
};

/* Predefined types by handle value - 0x200. Shared by the whole process and immutable, except for names and
 * attributes. */
#define DT_HANDLES 256
extern struct dtype *const dt_by_handle[DT_HANDLES];

/* The predefined type with this handle value, or NULL. */
static inline struct dtype *dt_predefined(uint32_t handle)
{
    return handle - 0x200 < DT_HANDLES ? dt_by_handle[handle - 0x200] : NULL;
}

/* Resolves a user's handle; NULL when it is not a datatype. */
static inline struct dtype *dtype_from_handle(MPI_Datatype handle)
{
    if (handle_is_predefined(handle))
        return dt_predefined((uint32_t)(uintptr_t)handle);
    struct dtype *t = (struct dtype *)handle;
    return object_has_magic(t, MAGIC_DTYPE) ? t : NULL;
}

static inline MPI_Datatype dtype_handle(const struct dtype *t)
{
    return t->handle ? (MPI_Datatype)(uintptr_t)t->handle : (MPI_Datatype)t;
}

static inline void dtype_retain(struct dtype *t)
{
    if (!t->obj.predefined)
        t->obj.refs++;
}
/* Releases one reference; frees the type with the last one. The attributes must have been deleted before. */
void dtype_free(struct dtype *t);
static inline void dtype_release(struct dtype *t)
{
    if (!t->obj.predefined && --t->obj.refs <= 0)
        dtype_free(t);
}

/* True if `count` elements at a buffer are one contiguous block; *offset is its start relative to the
 * buffer. */
static inline bool dt_is_contiguous_block(const struct dtype *t, MPI_Count count, MPI_Aint *offset)
{
    *offset = t->true_lb;
    return t->contiguous || (t->dense && (count <= 1 || t->extent == t->size));
}

/* A walk over `count` elements at `buffer`, in type-map order, that can stop and continue at any byte, as
 * pipelined protocols require. Packed positions are 0 to count * size. */
struct dt_cursor {
    const struct dtype *type;
    char *buffer;
    MPI_Count count;
    uint64_t position;  /* packed bytes before the next one */
    uint64_t state[14]; /* struct walk of cursor.c */
    bool is_device;     /* a part of the data is in GPU memory */
    int error;          /* error class of the first copy of GPU memory that failed; 0: none failed */
};
void dt_cursor_init(struct dt_cursor *c, const struct dtype *t, MPI_Count count, const void *buffer);
/* Like dt_cursor_init, for dt_cursor_next alone: `buffer` may be an address of another process or an
 * offset in a file. */
void dt_cursor_open(struct dt_cursor *c, const struct dtype *t, MPI_Count count, const void *buffer);
void dt_cursor_seek(struct dt_cursor *c, uint64_t position);
/* Pack or unpack the next `len` bytes. Return the number of bytes moved, which is less than `len` only at the
 * end of the data. `out` and `in` are host memory. */
size_t dt_cursor_pack(struct dt_cursor *c, void *out, size_t len);
size_t dt_cursor_unpack(struct dt_cursor *c, const void *in, size_t len);
/* Advances over the next contiguous piece, at most max bytes, without copying it. Returns its length; 0 at
 * the end. */
size_t dt_cursor_next(struct dt_cursor *c, size_t max, void **piece);

/* Pack and unpack whole messages. An error class is returned only if `buffer` is in GPU memory; packed
 * data is in host memory. */
int dt_pack_all(const struct dtype *t, MPI_Count count, const void *buffer, void *out);
int dt_unpack_all(const struct dtype *t, MPI_Count count, void *buffer, const void *in, size_t len);

/* Copies between two typed buffers in memory of any kind (collectives to self, sendrecv to self), as many
 * bytes as the smaller one has. Returns MPI_ERR_TRUNCATE if the source is larger. */
int dt_copy(const void *from, MPI_Count from_count, const struct dtype *from_type, void *to,
            MPI_Count to_count, const struct dtype *to_type);

/* Computes the smallest span of memory that holds `count` elements, and the start of the span relative to the
 * buffer (gap). False if a result does not fit in 64 bits. The extent may be negative. */
static inline bool dt_span_checked(const struct dtype *t, MPI_Count count, MPI_Aint *gap, MPI_Count *span)
{
    MPI_Count reach;
    *gap = t->true_lb;
    *span = 0;
    if (count == 0)
        return true;
    if (!checked_mul(count - 1, t->extent, &reach))
        return false;
    if (reach < 0)
        return checked_add(t->true_lb, reach, gap) && checked_sub(t->true_extent, reach, span);
    return checked_add(t->true_extent, reach, span);
}

/* The span of existing memory, which is less than 2^63 bytes. */
static inline MPI_Count dt_span(const struct dtype *t, MPI_Count count, MPI_Aint *gap)
{
    MPI_Count span;
    const bool fits = dt_span_checked(t, count, gap, &span);
    ASSERT(fits);
    return fits ? span : 0;
}

#endif
