/* recipe.h: how a datatype was made, as MPI_Type_get_envelope and MPI_Type_get_contents report it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_RECIPE_H
#define FP_DT_RECIPE_H

#include "base/ivec.h"
#include "dt/dtype.h"

struct dt_recipe {
    int combiner;
    MPI_Count integers, addresses, counts, types; /* how many of each */
    int *integer;
    MPI_Aint *address;
    MPI_Count *large;    /* filled when the type was made by a large-count function */
    struct dtype **type; /* retained */
};

/* An empty recipe with room for this many of each; the fillers below append. */
struct dt_recipe *recipe_new(int combiner, MPI_Count integers, MPI_Count addresses, MPI_Count counts,
                             MPI_Count types);
void recipe_free(struct dt_recipe *r);

void recipe_integer(struct dt_recipe *r, int value);
void recipe_address(struct dt_recipe *r, MPI_Aint value);
void recipe_large(struct dt_recipe *r, MPI_Count value);
void recipe_type(struct dt_recipe *r, struct dtype *t);
/* A count that the small form keeps as an integer and the large form as a count. */
void recipe_number(struct dt_recipe *r, bool wide, MPI_Count value);
void recipe_numbers(struct dt_recipe *r, bool wide, struct ivec v, MPI_Count n);
/* A byte displacement: an address in the small form, a count in the large one. */
void recipe_bytes(struct dt_recipe *r, bool wide, MPI_Count value);

#endif
