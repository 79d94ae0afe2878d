/* build.h: constructors of datatypes. Every constructor produces a shape: a list of parts (a count of
 * elements of another type at an offset), the whole list repeated at a stride. The recipe records the
 * constructor and its arguments.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_BUILD_H
#define FP_DT_BUILD_H

#include "base/ivec.h"
#include "dt/dtype.h"

struct dt_part {
    MPI_Count count; /* elements, one extent apart */
    MPI_Aint offset;
    struct dtype *type;
};

struct dt_shape {
    MPI_Count repeat; /* repetitions of the list of parts */
    MPI_Aint stride;  /* bytes from one repetition to the next */
    MPI_Count count;  /* parts */
    struct dt_part part[];
};

/* Reports that there is no memory for a datatype; returns MPI_ERR_NO_MEM. */
int dtype_report_no_memory(void);

/* A shape with zeroed memory for `count` parts; NULL: out of memory. */
struct dt_shape *dt_shape_new(MPI_Count repeat, MPI_Aint stride, MPI_Count count);

/* Creates a type of this shape (NULL: returns MPI_ERR_NO_MEM). The type owns the shape and references to
 * the types of its parts; on failure the shape is freed. */
int dtype_new(struct dt_shape *shape, struct dtype **out);

/* Creates a type of `count` blocks of `blocklength` elements at a byte stride, without a recipe. */
int dtype_strided(MPI_Count count, MPI_Count blocklength, MPI_Aint stride, struct dtype *old,
                  struct dtype **out);

/* Sets the markers lb and ub (MPI_Type_create_resized): types constructed from this one inherit them
 * without padding. */
void dtype_set_bounds(struct dtype *t, MPI_Aint lb, MPI_Aint extent);

/* The constructors. `wide`: the user called the `_c` form, which MPI_Type_get_envelope returns. */
int dtype_contiguous(MPI_Count count, struct dtype *old, bool wide, struct dtype **out);
int dtype_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, struct dtype *old, bool wide,
                 struct dtype **out);
int dtype_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, struct dtype *old, bool wide,
                  struct dtype **out);
int dtype_indexed(MPI_Count count, struct ivec blocklengths, struct ivec displacements, struct dtype *old,
                  struct dtype **out);
int dtype_hindexed(MPI_Count count, struct ivec blocklengths, struct ivec displacements, struct dtype *old,
                   struct dtype **out);
int dtype_indexed_block(MPI_Count count, MPI_Count blocklength, struct ivec displacements, struct dtype *old,
                        struct dtype **out);
int dtype_hindexed_block(MPI_Count count, MPI_Count blocklength, struct ivec displacements, struct dtype *old,
                         bool wide, struct dtype **out);
int dtype_struct(MPI_Count count, struct ivec blocklengths, struct ivec displacements,
                 const MPI_Datatype *types, struct dtype **out);
int dtype_resized(struct dtype *old, MPI_Count lb, MPI_Count extent, bool wide, struct dtype **out);
int dtype_dup(struct dtype *old, struct dtype **out);
int dtype_subarray(int ndims, struct ivec sizes, struct ivec subsizes, struct ivec starts, int order,
                   struct dtype *old, struct dtype **out);

struct darray {
    int size, rank, ndims;
    struct ivec gsizes;
    const int *distribs, *dargs, *psizes;
    int order;
};
int dtype_darray(const struct darray *d, struct dtype *old, struct dtype **out);

/* Unnamed predefined types (MPI_Type_create_f90_real and others). They exist until the process ends: the
 * same arguments return the same type. */
int dtype_f90_real(int p, int r, struct dtype **out);
int dtype_f90_complex(int p, int r, struct dtype **out);
int dtype_f90_integer(int r, struct dtype **out);
/* The pair type of a value and an index; *out is NULL if there is no such pair type. */
int dtype_value_index(struct dtype *value, struct dtype *index, struct dtype **out);
int dtype_match_size(int typeclass, int size, struct dtype **out);

int dtype_commit(struct dtype *t);

#endif
