/* random_type.h: random nested datatypes, each built twice: by the library's constructors and in the model
 * of model.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_DT_RANDOM_TYPE_H
#define FP_TESTS_DT_RANDOM_TYPE_H

#include "model.h"

#define RANDOM_MAX_ENTRIES 4000
#define RANDOM_MAX_BLOCKS  6

struct type_pair {
    struct dtype *type;
    struct model model;
};

static inline void type_pair_free(struct type_pair *m)
{
    dtype_release(m->type);
    free(m->model.entry);
}

static const uint32_t random_basics[] = {0x209, 0x214, 0x243, 0x208, 0x210, 0x216,
                                         0x258, 0x247, 0x2e1, 0x220, 0x238};
/* The codes of MPI_FLOAT_INT, MPI_SHORT_INT, MPI_DOUBLE_INT, MPI_2INT and MPI_LONG_DOUBLE_INT. */
static const uint32_t random_pairs[] = {0x228, 0x22c, 0x229, 0x22b, 0x22d};

static inline struct type_pair random_basic_type(void)
{
    struct type_pair m = {0};
    if (random_in_range(0, 5) == 0) {
        m.type = dt_predefined(random_pairs[random_in_range(0, 4)]);
        model_add(&m.model, 0, m.type->shape->part[0].type);
        model_add(&m.model, m.type->shape->part[1].offset, m.type->shape->part[1].type);
    } else {
        m.type = dt_predefined(random_basics[random_in_range(0, 10)]);
        model_add(&m.model, 0, m.type);
    }
    return m;
}

static inline struct type_pair random_strided_type(int which, struct type_pair *old)
{
    struct type_pair m = {0};
    int count = random_in_range(0, 7), length = random_in_range(0, 4), stride = random_in_range(-9, 12);
    int64_t extent = old->type->extent;
    if (random_in_range(0, 3) == 0)
        stride = length;
    if (which == 0) {
        dtype_contiguous(count, old->type, false, &m.type);
        stride = length = 1;
    } else if (which == 1) {
        dtype_vector(count, length, stride, old->type, false, &m.type);
    } else {
        dtype_hvector(count, length, stride, old->type, true, &m.type);
    }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < length; j++)
            model_add_copy(&m.model, &old->model,
                           which == 2 ? i * stride + j * extent : (i * stride + j) * extent);
    return m;
}

/* Makes an indexed, hindexed, indexed_block or hindexed_block type. */
static inline struct type_pair random_indexed_type(int which, struct type_pair *old)
{
    struct type_pair m = {0};
    int count = random_in_range(0, RANDOM_MAX_BLOCKS), fixed = random_in_range(0, 3), n[RANDOM_MAX_BLOCKS],
        at[RANDOM_MAX_BLOCKS];
    MPI_Aint bytes[RANDOM_MAX_BLOCKS];
    for (int i = 0; i < count; i++) {
        n[i] = which >= 2 ? fixed : random_in_range(0, 4);
        at[i] = random_in_range(-20, 40);
        /* Some blocks are adjacent to the block before. */
        if (i > 0 && random_in_range(0, 2) == 0)
            at[i] = at[i - 1] + n[i - 1] * (which % 2 ? (int)old->type->extent : 1);
        bytes[i] = at[i];
    }
    if (which == 0)
        dtype_indexed(count, ivec_from_int(n), ivec_from_int(at), old->type, &m.type);
    else if (which == 1)
        dtype_hindexed(count, ivec_from_int(n), ivec_from_int64(bytes), old->type, &m.type);
    else if (which == 2)
        dtype_indexed_block(count, fixed, ivec_from_int(at), old->type, &m.type);
    else
        dtype_hindexed_block(count, fixed, ivec_from_int64(bytes), old->type, false, &m.type);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < n[i]; j++)
            model_add_copy(&m.model, &old->model,
                           which % 2 ? at[i] + j * old->type->extent : (at[i] + j) * old->type->extent);
    return m;
}

static inline struct type_pair random_type(int depth);

static inline struct type_pair random_struct_type(int depth)
{
    struct type_pair m = {0}, part[4];
    int count = random_in_range(1, 4), n[4];
    MPI_Aint at[4], next = 0;
    MPI_Datatype types[4];
    for (int i = 0; i < count; i++) {
        part[i] = random_type(depth - 1);
        n[i] = random_in_range(0, 3);
        at[i] = random_in_range(0, 1) ? next : random_in_range(-50, 200);
        next = at[i] + n[i] * part[i].type->extent;
        types[i] = dtype_handle(part[i].type);
        for (int j = 0; j < n[i]; j++)
            model_add_copy(&m.model, &part[i].model, at[i] + j * part[i].type->extent);
    }
    dtype_struct(count, ivec_from_int(n), ivec_from_int64(at), types, &m.type);
    for (int i = 0; i < count; i++)
        type_pair_free(&part[i]);
    return m;
}

/* The selected elements of an array: a subarray, or one process's share of a distributed array. */
struct grid {
    int ndims, order;
    int size[3], low[3], high[3];                     /* subarray: low <= index < high */
    int distribution[3], block[3], procs[3], mine[3]; /* darray; mine: coordinates of the process */
    bool distributed;
};

static inline bool grid_selects(const struct grid *g, const int *index)
{
    for (int d = 0; d < g->ndims; d++) {
        bool in = g->distributed ? index[d] / g->block[d] % g->procs[d] == g->mine[d]
                                 : index[d] >= g->low[d] && index[d] < g->high[d];
        if (!in)
            return false;
    }
    return true;
}

static inline void grid_add_selected(const struct grid *g, const struct type_pair *old, struct model *m)
{
    int total = 1, index[3];
    for (int d = 0; d < g->ndims; d++)
        total *= g->size[d];
    for (int k = 0; k < total; k++) {
        int rest = k;
        for (int i = 0; i < g->ndims; i++) {
            int d = g->order == MPI_ORDER_C ? g->ndims - 1 - i : i;
            index[d] = rest % g->size[d];
            rest /= g->size[d];
        }
        if (grid_selects(g, index))
            model_add_copy(m, &old->model, k * old->type->extent);
    }
    m->marked = false;
    model_include_bounds(m, 0, total * old->type->extent);
}

static inline struct type_pair random_subarray_type(struct type_pair *old)
{
    struct type_pair m = {0};
    int sub[3];
    struct grid g = {.ndims = random_in_range(1, 3),
                     .order = random_in_range(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN};
    for (int d = 0; d < g.ndims; d++) {
        g.size[d] = random_in_range(1, 5);
        sub[d] = random_in_range(1, g.size[d]);
        g.low[d] = random_in_range(0, g.size[d] - sub[d]);
        g.high[d] = g.low[d] + sub[d];
    }
    dtype_subarray(g.ndims, ivec_from_int(g.size), ivec_from_int(sub), ivec_from_int(g.low), g.order,
                   old->type, &m.type);
    grid_add_selected(&g, old, &m.model);
    return m;
}

static inline struct type_pair random_darray_type(struct type_pair *old)
{
    struct type_pair m = {0};
    struct grid g = {.ndims = random_in_range(1, 3),
                     .order = random_in_range(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN};
    int args[3], size = 1;
    g.distributed = true;
    for (int d = 0; d < g.ndims; d++) {
        g.size[d] = random_in_range(1, 7);
        g.distribution[d] = MPI_DISTRIBUTE_NONE + random_in_range(0, 2);
        g.procs[d] = g.distribution[d] == MPI_DISTRIBUTE_NONE ? 1 : random_in_range(1, 3);
        int cover = (g.size[d] + g.procs[d] - 1) / g.procs[d];
        bool dflt = random_in_range(0, 1);
        if (g.distribution[d] == MPI_DISTRIBUTE_CYCLIC)
            g.block[d] = dflt ? 1 : random_in_range(1, 4);
        else
            g.block[d] = g.distribution[d] == MPI_DISTRIBUTE_NONE ? g.size[d]
                         : dflt                                   ? cover
                                                                  : cover + random_in_range(0, 2);
        args[d] = dflt ? MPI_DISTRIBUTE_DFLT_DARG : g.block[d];
        size *= g.procs[d];
    }
    int rank = random_in_range(0, size - 1), rest = rank;
    for (int d = g.ndims - 1; d >= 0; d--) {
        g.mine[d] = rest % g.procs[d];
        rest /= g.procs[d];
    }
    struct darray a = {.size = size,
                       .rank = rank,
                       .ndims = g.ndims,
                       .gsizes = ivec_from_int(g.size),
                       .distribs = g.distribution,
                       .dargs = args,
                       .psizes = g.procs,
                       .order = g.order};
    dtype_darray(&a, old->type, &m.type);
    grid_add_selected(&g, old, &m.model);
    return m;
}

static inline struct type_pair random_resized_type(struct type_pair *old, bool resize)
{
    struct type_pair m = {0};
    int lb = random_in_range(-30, 30), extent = random_in_range(-10, 80);
    if (resize)
        dtype_resized(old->type, lb, extent, false, &m.type);
    else
        dtype_dup(old->type, &m.type);
    model_add_copy(&m.model, &old->model, 0);
    if (resize) {
        m.model.marked = false;
        model_include_bounds(&m.model, lb, lb + extent);
    }
    return m;
}

static inline struct type_pair random_type_of_any_size(int depth)
{
    if (depth == 0)
        return random_basic_type();
    int which = random_in_range(0, 12);
    if (which >= 11)
        return random_struct_type(depth);
    struct type_pair old = random_type(depth - 1), m;
    if (which <= 2)
        m = random_strided_type(which, &old);
    else if (which <= 6)
        m = random_indexed_type(which - 3, &old);
    else if (which == 7)
        m = random_subarray_type(&old);
    else if (which == 8)
        m = random_darray_type(&old);
    else
        m = random_resized_type(&old, which == 9);
    type_pair_free(&old);
    return m;
}

/* Returns a random type whose type map has at most RANDOM_MAX_ENTRIES entries. */
static inline struct type_pair random_type(int depth)
{
    for (;;) {
        struct type_pair m = random_type_of_any_size(depth);
        if (m.model.count <= RANDOM_MAX_ENTRIES)
            return m;
        type_pair_free(&m);
    }
}

#endif
