/* construct.c: the constructors that place copies of a type at a stride or at listed displacements. Arrays
 * are in array.c, Fortran kinds and pairs in unnamed.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "dt/build.h"
#include "dt/recipe.h"

static int report_negative_count(const char *what, MPI_Count value)
{
    return err_set(MPI_ERR_COUNT, "%s is %lld; it must not be negative", what, (long long)value);
}

static int report_displacement_overflow(void)
{
    return err_set(MPI_ERR_ARG, "a displacement of the datatype does not fit in 64 bits");
}

/* Attaches the recipe to the type; a NULL recipe (no memory) frees the type and returns MPI_ERR_NO_MEM. */
static int recipe_finish(struct dtype *t, struct dt_recipe *r, struct dtype **out)
{
    if (!r) {
        dtype_release(t);
        return dtype_report_no_memory();
    }
    t->recipe = r;
    *out = t;
    return 0;
}

int dtype_contiguous(MPI_Count count, struct dtype *old, bool wide, struct dtype **out)
{
    struct dtype *t;
    if (count < 0)
        return report_negative_count("count", count);
    int rc = dtype_strided(1, count, 0, old, &t);
    if (rc)
        return rc;
    struct dt_recipe *r = recipe_new(MPI_COMBINER_CONTIGUOUS, !wide, 0, wide, 1);
    if (r) {
        recipe_number(r, wide, count);
        recipe_type(r, old);
    }
    return recipe_finish(t, r, out);
}

/* MPI_Type_vector and, if `combiner` is MPI_COMBINER_HVECTOR, MPI_Type_create_hvector, whose stride is in
 * bytes. */
static int build_vector(int combiner, MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                        struct dtype *old, bool wide, struct dtype **out)
{
    const bool in_bytes = combiner == MPI_COMBINER_HVECTOR;
    struct dtype *t;
    MPI_Count bytes;
    if (count < 0 || blocklength < 0)
        return report_negative_count(count < 0 ? "count" : "blocklength", MIN(count, blocklength));
    if (!checked_mul(stride, in_bytes ? 1 : old->extent, &bytes))
        return report_displacement_overflow();
    int rc = dtype_strided(count, blocklength, bytes, old, &t);
    if (rc)
        return rc;
    struct dt_recipe *r = recipe_new(combiner, wide ? 0 : 3 - in_bytes, !wide && in_bytes, wide ? 3 : 0, 1);
    if (r) {
        recipe_number(r, wide, count);
        recipe_number(r, wide, blocklength);
        if (in_bytes)
            recipe_bytes(r, wide, stride);
        else
            recipe_number(r, wide, stride);
        recipe_type(r, old);
    }
    return recipe_finish(t, r, out);
}

int dtype_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, struct dtype *old, bool wide,
                 struct dtype **out)
{
    return build_vector(MPI_COMBINER_VECTOR, count, blocklength, stride, old, wide, out);
}

int dtype_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, struct dtype *old, bool wide,
                  struct dtype **out)
{
    return build_vector(MPI_COMBINER_HVECTOR, count, blocklength, stride, old, wide, out);
}

/* Blocks at listed displacements. */
struct blocks {
    MPI_Count count;
    MPI_Count blocklength; /* elements of every block, if blocklengths.p is NULL */
    MPI_Count unit;        /* bytes per unit of displacement */
    struct ivec blocklengths, displacements;
    const MPI_Datatype *types; /* type of each block; NULL: all are of type `old` */
    struct dtype *old;
};

static int blocks_get_part(const struct blocks *b, MPI_Count i, struct dt_part *part)
{
    MPI_Count n = b->blocklengths.p ? ivec_get(b->blocklengths, (size_t)i) : b->blocklength, offset;
    struct dtype *type = b->types ? dtype_from_handle(b->types[i]) : b->old;
    if (n < 0)
        return report_negative_count("a block length", n);
    if (!type)
        return err_set(MPI_ERR_TYPE, "entry %lld of array_of_types is not a datatype", (long long)i);
    if (!checked_mul(ivec_get(b->displacements, (size_t)i), b->unit, &offset))
        return report_displacement_overflow();
    *part = (struct dt_part){n, offset, type};
    return 0;
}

static int make_blocks(const struct blocks *b, struct dtype **out)
{
    if (b->count < 0)
        return report_negative_count("count", b->count);
    struct dt_shape *s = dt_shape_new(1, 0, b->count);
    for (MPI_Count i = 0; s && i < b->count; i++) {
        int rc = blocks_get_part(b, i, &s->part[i]);
        if (rc) {
            free(s);
            return rc;
        }
    }
    return dtype_new(s, out);
}

/* The recipe of a constructor that has lists as arguments. wide: large-count form. bytes: displacements are
 * in bytes, and the small form stores them as addresses. */
static struct dt_recipe *blocks_recipe(const struct blocks *b, int combiner, bool wide, bool bytes)
{
    MPI_Count n = b->count, lengths = b->blocklengths.p ? n : 1, numbers = 1 + lengths + (bytes ? 0 : n);
    MPI_Count types = b->types ? n : 1;
    struct dt_recipe *r = wide ? recipe_new(combiner, 0, 0, 1 + lengths + n, types)
                               : recipe_new(combiner, numbers, bytes ? n : 0, 0, types);
    if (!r)
        return NULL;
    recipe_number(r, wide, n);
    if (b->blocklengths.p)
        recipe_numbers(r, wide, b->blocklengths, n);
    else if (combiner == MPI_COMBINER_INDEXED_BLOCK || combiner == MPI_COMBINER_HINDEXED_BLOCK)
        recipe_number(r, wide, b->blocklength);
    for (MPI_Count i = 0; i < n; i++) {
        MPI_Count d = ivec_get(b->displacements, (size_t)i);
        if (bytes)
            recipe_bytes(r, wide, d);
        else
            recipe_number(r, wide, d);
    }
    for (MPI_Count i = 0; i < types; i++)
        recipe_type(r, b->types ? dtype_from_handle(b->types[i]) : b->old);
    return r;
}

static int build_blocks(const struct blocks *b, int combiner, bool wide, bool bytes, struct dtype **out)
{
    struct dtype *t;
    int rc = make_blocks(b, &t);
    return rc ? rc : recipe_finish(t, blocks_recipe(b, combiner, wide, bytes), out);
}

int dtype_indexed(MPI_Count count, struct ivec blocklengths, struct ivec displacements, struct dtype *old,
                  struct dtype **out)
{
    struct blocks b = {count, 0, old->extent, blocklengths, displacements, NULL, old};
    return build_blocks(&b, MPI_COMBINER_INDEXED, displacements.wide, false, out);
}

int dtype_hindexed(MPI_Count count, struct ivec blocklengths, struct ivec displacements, struct dtype *old,
                   struct dtype **out)
{
    struct blocks b = {count, 0, 1, blocklengths, displacements, NULL, old};
    return build_blocks(&b, MPI_COMBINER_HINDEXED, blocklengths.wide, true, out);
}

int dtype_indexed_block(MPI_Count count, MPI_Count blocklength, struct ivec displacements, struct dtype *old,
                        struct dtype **out)
{
    struct blocks b = {count, blocklength, old->extent, {NULL, false}, displacements, NULL, old};
    if (blocklength < 0)
        return report_negative_count("blocklength", blocklength);
    return build_blocks(&b, MPI_COMBINER_INDEXED_BLOCK, displacements.wide, false, out);
}

int dtype_hindexed_block(MPI_Count count, MPI_Count blocklength, struct ivec displacements, struct dtype *old,
                         bool wide, struct dtype **out)
{
    struct blocks b = {count, blocklength, 1, {NULL, false}, displacements, NULL, old};
    if (blocklength < 0)
        return report_negative_count("blocklength", blocklength);
    return build_blocks(&b, MPI_COMBINER_HINDEXED_BLOCK, wide, true, out);
}

int dtype_struct(MPI_Count count, struct ivec blocklengths, struct ivec displacements,
                 const MPI_Datatype *types, struct dtype **out)
{
    /* An empty structure may have NULL lists, but in struct blocks NULL stands for "one length" and "one
     * type". */
    static const MPI_Datatype none[1];
    static const int zero[1];
    if (!blocklengths.p)
        blocklengths.p = zero;
    struct blocks b = {count, 0, 1, blocklengths, displacements, types ? types : none, NULL};
    return build_blocks(&b, MPI_COMBINER_STRUCT, blocklengths.wide, true, out);
}

/* Makes a duplicate: a type of one element of the old type. */
static int make_duplicate(struct dtype *old, struct dtype **out)
{
    int rc = dtype_strided(1, 1, 0, old, out);
    if (rc)
        return rc;
    (*out)->lb = old->lb;
    (*out)->extent = old->extent;
    return 0;
}

int dtype_resized(struct dtype *old, MPI_Count lb, MPI_Count extent, bool wide, struct dtype **out)
{
    struct dtype *t;
    MPI_Count ub;
    if (!checked_add(lb, extent, &ub))
        return report_displacement_overflow();
    int rc = make_duplicate(old, &t);
    if (rc)
        return rc;
    dtype_set_bounds(t, lb, extent);
    struct dt_recipe *r = recipe_new(MPI_COMBINER_RESIZED, 0, wide ? 0 : 2, wide ? 2 : 0, 1);
    if (r) {
        recipe_bytes(r, wide, lb);
        recipe_bytes(r, wide, extent);
        recipe_type(r, old);
    }
    return recipe_finish(t, r, out);
}

int dtype_dup(struct dtype *old, struct dtype **out)
{
    struct dtype *t;
    int rc = make_duplicate(old, &t);
    if (rc)
        return rc;
    struct dt_recipe *r = recipe_new(MPI_COMBINER_DUP, 0, 0, 0, 1);
    if (r)
        recipe_type(r, old);
    rc = recipe_finish(t, r, out);
    return rc || !old->committed ? rc : dtype_commit(t);
}
