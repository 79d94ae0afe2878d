/* recipe.h: the constructor of a datatype and its arguments, for MPI_Type_get_envelope and
 * MPI_Type_get_contents.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_RECIPE_H
#define FP_DT_RECIPE_H

#include "base/ivec.h"
#include "dt/dtype.h"

struct dt_recipe {
    int combiner;
    MPI_Count integers, addresses, counts, types; /* entries in the lists below */
    int *integer;
    MPI_Aint *address;
    MPI_Count *large;    /* filled by large-count constructors */
    struct dtype **type; /* retained */
};

/* An empty recipe with memory for these numbers of entries, to which the functions below append. NULL: out
 * of memory. */
struct dt_recipe *recipe_new(int combiner, MPI_Count integers, MPI_Count addresses, MPI_Count counts,
                             MPI_Count types);
void recipe_free(struct dt_recipe *r);

void recipe_integer(struct dt_recipe *r, int value);
void recipe_type(struct dt_recipe *r, struct dtype *t);
/* Append counts: as integers in the small form, as MPI_Count in the large form. */
void recipe_number(struct dt_recipe *r, bool wide, MPI_Count value);
void recipe_numbers(struct dt_recipe *r, bool wide, struct ivec v, MPI_Count n);
/* Appends a byte displacement: as an address in the small form, as MPI_Count in the large form. */
void recipe_bytes(struct dt_recipe *r, bool wide, MPI_Count value);

#endif
