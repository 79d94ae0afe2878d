/* array.c: subarrays and distributed arrays: one nested type for each dimension, the fastest dimension
 * first, and bounds that span the whole array.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/checked.h"
#include "dt/build.h"
#include "dt/recipe.h"

/* An array type that is being built, dimension by dimension. */
struct array {
    struct dtype *type; /* describes the dimensions that are complete */
    MPI_Count step;     /* its extent: bytes from one index of the next dimension to the following index */
};

static int report_array_too_large(void)
{
    return err_set(MPI_ERR_ARG, "the array would span more than 2^63 bytes");
}

static int array_begin(struct array *a, struct dtype *old)
{
    int rc = dtype_strided(1, 1, 0, old, &a->type);
    if (rc)
        return rc;
    a->step = old->extent;
    dtype_set_bounds(a->type, 0, a->step);
    return 0;
}

static int array_grow(struct array *a, MPI_Count size)
{
    if (!checked_mul(a->step, size, &a->step))
        return report_array_too_large();
    return 0;
}

/* Replaces the array's type by a new type of this shape, which contains the former one. */
static int array_replace(struct array *a, struct dt_shape *shape)
{
    struct dtype *next;
    int rc = dtype_new(shape, &next);
    if (rc)
        return rc;
    dtype_release(a->type);
    a->type = next;
    return 0;
}

/* Adds a dimension of which `count` indices from `start` on are selected. */
static int array_add_slice(struct array *a, MPI_Count start, MPI_Count count)
{
    MPI_Aint offset;
    if (!checked_mul(start, a->step, &offset))
        return report_array_too_large();
    struct dt_shape *s = dt_shape_new(1, 0, 1);
    if (s)
        s->part[0] = (struct dt_part){count, offset, a->type};
    return array_replace(a, s);
}

/* Completes a dimension: extends the array to `size` indices of it. */
static int array_end_dimension(struct array *a, MPI_Count size)
{
    int rc = array_grow(a, size);
    if (!rc)
        dtype_set_bounds(a->type, 0, a->step);
    return rc;
}

static int array_finish(struct array *a, int rc, struct dt_recipe *r, struct dtype **out)
{
    if (rc || !r) {
        recipe_free(r);
        dtype_release(a->type);
        return rc ? rc : dtype_report_no_memory();
    }
    a->type->recipe = r;
    *out = a->type;
    return 0;
}

static int check_order(int ndims, int order)
{
    if (ndims < 1)
        return err_set(MPI_ERR_ARG, "ndims is %d; an array has at least one dimension", ndims);
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
        return err_set(MPI_ERR_ARG, "order is %d; it must be MPI_ORDER_C or MPI_ORDER_FORTRAN", order);
    return 0;
}

/* Returns the dimension that is the i-th fastest in memory. */
static int array_fast_dimension(int i, int ndims, int order)
{
    return order == MPI_ORDER_C ? ndims - 1 - i : i;
}

static int check_slice(int d, MPI_Count size, MPI_Count subsize, MPI_Count start)
{
    if (size < 1 || subsize < 1 || subsize > size || start < 0 || start > size - subsize)
        return err_set(MPI_ERR_ARG,
                       "dimension %d: %lld elements from %lld do not lie inside an array of %lld", d,
                       (long long)subsize, (long long)start, (long long)size);
    return 0;
}

static struct dt_recipe *subarray_recipe(int ndims, const struct ivec lists[3], int order, struct dtype *old)
{
    bool wide = lists[0].wide;
    MPI_Count n = 3 * (MPI_Count)ndims;
    struct dt_recipe *r = recipe_new(MPI_COMBINER_SUBARRAY, wide ? 2 : 2 + n, 0, wide ? n : 0, 1);
    if (!r)
        return NULL;
    recipe_integer(r, ndims);
    for (int i = 0; i < 3; i++)
        recipe_numbers(r, wide, lists[i], ndims);
    recipe_integer(r, order);
    recipe_type(r, old);
    return r;
}

int dtype_subarray(int ndims, struct ivec sizes, struct ivec subsizes, struct ivec starts, int order,
                   struct dtype *old, struct dtype **out)
{
    struct array a;
    int rc = check_order(ndims, order);
    for (int d = 0; !rc && d < ndims; d++)
        rc = check_slice(d, ivec_get(sizes, d), ivec_get(subsizes, d), ivec_get(starts, d));
    if (!rc)
        rc = array_begin(&a, old);
    if (rc)
        return rc;
    for (int i = 0; !rc && i < ndims; i++) {
        int d = array_fast_dimension(i, ndims, order);
        rc = array_add_slice(&a, ivec_get(starts, d), ivec_get(subsizes, d));
        if (!rc)
            rc = array_end_dimension(&a, ivec_get(sizes, d));
    }
    const struct ivec lists[3] = {sizes, subsizes, starts};
    return array_finish(&a, rc, rc ? NULL : subarray_recipe(ndims, lists, order, old), out);
}

/* The part of one dimension of a distributed array that belongs to one process. */
struct share {
    MPI_Count size;  /* elements of the dimension */
    MPI_Count block; /* elements of a block */
    int procs;       /* processes of the grid in this dimension */
    int mine;        /* coordinate of the process in this dimension */
};

static int darray_check_dimension(int d, const struct darray *a)
{
    MPI_Count size = ivec_get(a->gsizes, d);
    int how = a->distribs[d], arg = a->dargs[d], procs = a->psizes[d];
    if (size < 1 || procs < 1)
        return err_set(MPI_ERR_ARG, "dimension %d: %lld elements over %d processes", d, (long long)size,
                       procs);
    if (how != MPI_DISTRIBUTE_NONE && how != MPI_DISTRIBUTE_BLOCK && how != MPI_DISTRIBUTE_CYCLIC)
        return err_set(MPI_ERR_ARG, "dimension %d: %d is not a distribution", d, how);
    if (how == MPI_DISTRIBUTE_NONE)
        return procs == 1
                   ? 0
                   : err_set(MPI_ERR_ARG, "dimension %d is not distributed but has %d processes", d, procs);
    if (arg != MPI_DISTRIBUTE_DFLT_DARG && arg < 1)
        return err_set(MPI_ERR_ARG, "dimension %d: the distribution argument is %d", d, arg);
    if (how == MPI_DISTRIBUTE_BLOCK && arg != MPI_DISTRIBUTE_DFLT_DARG && (MPI_Count)arg * procs < size)
        return err_set(MPI_ERR_ARG, "dimension %d: %d blocks of %d do not cover %lld elements", d, procs, arg,
                       (long long)size);
    return 0;
}

static int check_darray(const struct darray *a)
{
    int64_t procs = 1;
    int rc = check_order(a->ndims, a->order);
    for (int d = 0; !rc && d < a->ndims; d++) {
        rc = darray_check_dimension(d, a);
        if (!rc && (!checked_mul(procs, a->psizes[d], &procs) || procs > a->size))
            rc = err_set(MPI_ERR_ARG, "the process grid has more than %d processes", a->size);
    }
    if (!rc && procs != a->size)
        rc = err_set(MPI_ERR_ARG, "the process grid has %lld processes, size is %d", (long long)procs,
                     a->size);
    if (!rc && (a->rank < 0 || a->rank >= a->size))
        rc = err_set(MPI_ERR_ARG, "rank is %d; it must be less than size, which is %d", a->rank, a->size);
    return rc;
}

static struct share darray_compute_share(const struct darray *a, int d)
{
    struct share s = {.size = ivec_get(a->gsizes, d), .procs = a->psizes[d]};
    /* Ranks of the process grid are in row-major order for both orders of the array. */
    int row = 1; /* processes with the same coordinates in dimensions 0 to d */
    for (int i = d + 1; i < a->ndims; i++)
        row *= a->psizes[i];
    s.mine = a->rank / row % s.procs;
    int how = a->distribs[d], arg = a->dargs[d];
    if (how == MPI_DISTRIBUTE_NONE)
        s.block = s.size;
    else if (arg != MPI_DISTRIBUTE_DFLT_DARG)
        s.block = arg;
    else
        s.block = how == MPI_DISTRIBUTE_CYCLIC ? 1 : s.size / s.procs + (s.size % s.procs != 0);
    return s;
}

/* Adds this process's blocks: its whole blocks, one in each round over all processes, then its part of the
 * last round. A block distribution is a cyclic one that ends in the first round. */
static int array_add_share(struct array *a, const struct share *s)
{
    MPI_Count start, round;
    if (!checked_mul(s->block, s->mine, &start) || !checked_mul(s->block, s->procs, &round))
        return report_array_too_large();
    MPI_Count left = s->size > start ? s->size - start : 0;
    MPI_Count whole = left / round, rest = MIN(left % round, s->block);
    if (rest == s->block) {
        whole++;
        rest = 0;
    }
    /* An offset that no element uses may not fit in 64 bits: it stays 0. */
    MPI_Aint first = 0, stride = 0, last = 0;
    if ((left > 0 && !checked_mul(start, a->step, &first)) ||
        (whole > 1 && !checked_mul(round, a->step, &stride)) ||
        (rest > 0 && !checked_mul(start + whole * round, a->step, &last)))
        return report_array_too_large();
    struct dt_shape *shape = dt_shape_new(whole, stride, 1);
    struct dtype *inner = a->type, *blocks;
    if (shape)
        shape->part[0] = (struct dt_part){s->block, first, inner};
    int rc = dtype_new(shape, &blocks);
    if (rc)
        return rc;
    shape = dt_shape_new(1, 0, 2);
    if (shape) {
        shape->part[0] = (struct dt_part){1, 0, blocks};
        shape->part[1] = (struct dt_part){rest, last, inner};
    }
    rc = array_replace(a, shape);
    dtype_release(blocks);
    return rc;
}

static struct dt_recipe *darray_recipe(const struct darray *a, struct dtype *old)
{
    bool wide = a->gsizes.wide;
    MPI_Count n = a->ndims;
    struct dt_recipe *r = recipe_new(MPI_COMBINER_DARRAY, wide ? 4 + 3 * n : 4 + 4 * n, 0, wide ? n : 0, 1);
    if (!r)
        return NULL;
    recipe_integer(r, a->size);
    recipe_integer(r, a->rank);
    recipe_integer(r, a->ndims);
    recipe_numbers(r, wide, a->gsizes, n);
    recipe_numbers(r, false, ivec_from_int(a->distribs), n);
    recipe_numbers(r, false, ivec_from_int(a->dargs), n);
    recipe_numbers(r, false, ivec_from_int(a->psizes), n);
    recipe_integer(r, a->order);
    recipe_type(r, old);
    return r;
}

int dtype_darray(const struct darray *d, struct dtype *old, struct dtype **out)
{
    struct array a;
    int rc = check_darray(d);
    if (!rc)
        rc = array_begin(&a, old);
    if (rc)
        return rc;
    for (int i = 0; !rc && i < d->ndims; i++) {
        struct share s = darray_compute_share(d, array_fast_dimension(i, d->ndims, d->order));
        rc = array_add_share(&a, &s);
        if (!rc)
            rc = array_end_dimension(&a, s.size);
    }
    return array_finish(&a, rc, rc ? NULL : darray_recipe(d, old), out);
}
