/* recipe.c: fills recipes in the order in which MPI_Type_get_contents returns their entries.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/recipe.h"

#include <stdlib.h>

struct dt_recipe *recipe_new(int combiner, MPI_Count integers, MPI_Count addresses, MPI_Count counts,
                             MPI_Count types)
{
    /* One allocation, the widest entries first, so that all are aligned. */
    size_t bytes = sizeof(struct dt_recipe) + (size_t)counts * sizeof(MPI_Count) +
                   (size_t)addresses * sizeof(MPI_Aint) + (size_t)types * sizeof(struct dtype *) +
                   (size_t)integers * sizeof(int);
    struct dt_recipe *r = calloc(1, bytes);
    if (!r)
        return NULL;
    r->combiner = combiner;
    r->large = (MPI_Count *)(r + 1);
    r->address = (MPI_Aint *)(r->large + counts);
    r->type = (struct dtype **)(r->address + addresses);
    r->integer = (int *)(r->type + types);
    return r;
}

void recipe_free(struct dt_recipe *r)
{
    if (!r)
        return;
    for (MPI_Count i = 0; i < r->types; i++)
        dtype_release(r->type[i]);
    free(r);
}

void recipe_integer(struct dt_recipe *r, int value)
{
    r->integer[r->integers++] = value;
}

static void recipe_address(struct dt_recipe *r, MPI_Aint value)
{
    r->address[r->addresses++] = value;
}

static void recipe_large(struct dt_recipe *r, MPI_Count value)
{
    r->large[r->counts++] = value;
}

void recipe_type(struct dt_recipe *r, struct dtype *t)
{
    dtype_retain(t);
    r->type[r->types++] = t;
}

void recipe_number(struct dt_recipe *r, bool wide, MPI_Count value)
{
    if (wide)
        recipe_large(r, value);
    else
        recipe_integer(r, (int)value);
}

void recipe_numbers(struct dt_recipe *r, bool wide, struct ivec v, MPI_Count n)
{
    for (MPI_Count i = 0; i < n; i++)
        recipe_number(r, wide, ivec_get(v, (size_t)i));
}

void recipe_bytes(struct dt_recipe *r, bool wide, MPI_Count value)
{
    if (wide)
        recipe_large(r, value);
    else
        recipe_address(r, (MPI_Aint)value);
}
