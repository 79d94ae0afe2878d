/* datarep_type.c: builds a datatype with the sizes that basic types have in a data representation. The
 * constructors of the original type are called again: displacements in elements scale, displacements in bytes
 * do not (MPI-5.0, 14.5).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "dt/build.h"
#include "dt/recipe.h"
#include "io/datarep.h"

/* A predefined type becomes a block of bytes, of its size in the file. */
static int make_basic_type(const struct datarep *rep, struct dtype *t, struct dtype **out)
{
    int64_t size = 0;
    int rc = datarep_file_size(rep, t, &size);
    if (rc)
        return rc;
    if (size == t->size && t->contiguous) {
        dtype_retain(t);
        *out = t;
        return 0;
    }
    return dtype_contiguous(size, dtype_from_handle(MPI_BYTE), true, out);
}

/* Integer arguments of a type's constructor: int, or MPI_Count of a large-count function (`wide`). */
struct numbers {
    const struct dt_recipe *r;
    bool wide;
};

static MPI_Count numbers_get(struct numbers x, MPI_Count i)
{
    return x.wide ? x.r->large[i] : x.r->integer[i];
}

static struct ivec numbers_make_vector(struct numbers x, MPI_Count from)
{
    return x.wide ? ivec_from_int64(x.r->large + from) : ivec_from_int(x.r->integer + from);
}

/* Returns the constructor's byte displacements: r->address, or for a large-count function the counts from
 * index `from` on. */
static struct ivec numbers_displacements(struct numbers x, MPI_Count from)
{
    return x.wide ? ivec_from_int64(x.r->large + from) : ivec_from_int64(x.r->address);
}

static int remake_array(struct numbers x, struct dtype *old, struct dtype **out)
{
    const struct dt_recipe *r = x.r;
    if (r->combiner == MPI_COMBINER_SUBARRAY) {
        const int n = r->integer[0];
        const MPI_Count at = x.wide ? 0 : 1;
        return dtype_subarray(n, numbers_make_vector(x, at), numbers_make_vector(x, at + n),
                              numbers_make_vector(x, at + 2 * n), r->integer[r->integers - 1], old, out);
    }
    const int n = r->integer[2];
    const int *rest = r->integer + 3 + (x.wide ? 0 : n);
    const struct darray d = {.size = r->integer[0],
                             .rank = r->integer[1],
                             .ndims = n,
                             .gsizes = numbers_make_vector(x, x.wide ? 0 : 3),
                             .distribs = rest,
                             .dargs = rest + n,
                             .psizes = rest + 2 * n,
                             .order = r->integer[r->integers - 1]};
    return dtype_darray(&d, old, out);
}

static int recipe_remake(const struct dt_recipe *r, struct dtype *const *old, const MPI_Datatype *handles,
                         struct dtype **out)
{
    const struct numbers x = {r, r->counts > 0};
    switch (r->combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        return dtype_contiguous(numbers_get(x, 0), old[0], true, out);
    case MPI_COMBINER_VECTOR:
        return dtype_vector(numbers_get(x, 0), numbers_get(x, 1), numbers_get(x, 2), old[0], true, out);
    case MPI_COMBINER_HVECTOR:
        return dtype_hvector(numbers_get(x, 0), numbers_get(x, 1), ivec_get(numbers_displacements(x, 2), 0),
                             old[0], true, out);
    case MPI_COMBINER_INDEXED:
        return dtype_indexed(numbers_get(x, 0), numbers_make_vector(x, 1),
                             numbers_make_vector(x, 1 + numbers_get(x, 0)), old[0], out);
    case MPI_COMBINER_HINDEXED:
        return dtype_hindexed(numbers_get(x, 0), numbers_make_vector(x, 1),
                              numbers_displacements(x, 1 + numbers_get(x, 0)), old[0], out);
    case MPI_COMBINER_INDEXED_BLOCK:
        return dtype_indexed_block(numbers_get(x, 0), numbers_get(x, 1), numbers_make_vector(x, 2), old[0],
                                   out);
    case MPI_COMBINER_HINDEXED_BLOCK:
        return dtype_hindexed_block(numbers_get(x, 0), numbers_get(x, 1), numbers_displacements(x, 2), old[0],
                                    true, out);
    case MPI_COMBINER_STRUCT:
        return dtype_struct(numbers_get(x, 0), numbers_make_vector(x, 1),
                            numbers_displacements(x, 1 + numbers_get(x, 0)), handles, out);
    case MPI_COMBINER_RESIZED:
        return dtype_resized(old[0], ivec_get(numbers_displacements(x, 0), 0),
                             ivec_get(numbers_displacements(x, 0), 1), true, out);
    case MPI_COMBINER_SUBARRAY:
    case MPI_COMBINER_DARRAY:
        return remake_array(x, old[0], out);
    default: /* MPI_COMBINER_DUP */
        dtype_retain(old[0]);
        *out = old[0];
        return 0;
    }
}

static int make_derived_type(const struct datarep *rep, struct dtype *t, struct dtype **out)
{
    const struct dt_recipe *r = t->recipe;
    const size_t n = (size_t)r->types;
    struct dtype **old = calloc(n + 1, sizeof(*old));
    MPI_Datatype *handles = calloc(n + 1, sizeof(MPI_Datatype));
    int rc = old && handles ? 0 : err_set(MPI_ERR_NO_MEM, "out of memory for the file's form of a datatype");
    size_t made = 0;
    for (; made < n && !rc; made++) {
        rc = datarep_file_type(rep, r->type[made], &old[made]);
        if (rc)
            break;
        handles[made] = dtype_handle(old[made]);
    }
    if (!rc)
        rc = recipe_remake(r, old, handles, out);
    while (made > 0)
        dtype_release(old[--made]);
    free(old);
    free(handles);
    return rc;
}

int datarep_file_type(const struct datarep *rep, struct dtype *t, struct dtype **out)
{
    if (!datarep_converts(rep)) {
        dtype_retain(t);
        *out = t;
        return 0;
    }
    const bool basic = !t->recipe || t->recipe->types == 0 || t->recipe->combiner == MPI_COMBINER_VALUE_INDEX;
    int rc = basic ? make_basic_type(rep, t, out) : make_derived_type(rep, t, out);
    if (!rc && t->committed && !(*out)->committed) {
        rc = dtype_commit(*out);
        if (rc)
            dtype_release(*out);
    }
    return rc;
}
