/* build.h: making datatypes. Every constructor reduces to one shape: a list of parts (a count of elements of
 * another type at an offset), the whole repeated at a stride. What the constructor was is remembered in the
 * recipe.
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
    MPI_Count repeat;
    MPI_Aint stride;
    MPI_Count count;
    struct dt_part part[];
};

/* A shape with room for `count` parts, or NULL. */
struct dt_shape *dt_shape_new(MPI_Count repeat, MPI_Aint stride, MPI_Count count);

/* A new type of this shape, which it takes over (also when it fails); the parts' types are retained. */
int dtype_new(struct dt_shape *shape, struct dtype **out);

/* A type of `count` blocks of `blocklength` elements at a byte stride. It has no recipe: it is an intermediate step. */
int dtype_strided(MPI_Count count, MPI_Count blocklength, MPI_Aint stride, struct dtype *old,
                  struct dtype **out);

/* Sets lb and ub explicitly (MPI_Type_create_resized): types made of this one inherit them without padding. */
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

/* Unnamed predefined types (MPI_Type_create_f90_real and the like), kept for the life of the process: the same
 * arguments return the same type. */
int dtype_f90_real(int p, int r, struct dtype **out);
int dtype_f90_complex(int p, int r, struct dtype **out);
int dtype_f90_integer(int r, struct dtype **out);
/* The pair type of value and index; *out is NULL when there is none. */
int dtype_value_index(struct dtype *value, struct dtype *index, struct dtype **out);
int dtype_match_size(int typeclass, int size, struct dtype **out);

int dtype_commit(struct dtype *t);

#endif
