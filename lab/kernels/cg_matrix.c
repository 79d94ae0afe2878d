/* cg_matrix.c: a sum of outer products x x' of sparse random vectors with weights that fall from 1 to
 * 1/10, plus (1/10 - shift) on the diagonal: symmetric, with known bounds of its eigenvalues [NPB94].
 * Every rank draws all vectors, in the order that gives the published matrix, and stores the entries of
 * its own block.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { VECTOR_MAX = 32 };

/* A sparse vector: at most nonzero + 1 entries. */
struct sparse {
    int count, at[VECTOR_MAX];
    double value[VECTOR_MAX];
};

static int sparse_find_place(const struct sparse *v, int at)
{
    for (int i = 0; i < v->count; i++)
        if (v->at[i] == at)
            return i;
    return -1;
}

/* Draws the random vector of row `row`: random values at distinct random places, and 1/2 at place `row`. */
static void sparse_draw_row(struct sparse *v, const struct cg_shape *shape, int row, uint64_t *seed)
{
    int range = 1;
    while (range < shape->n)
        range *= 2;
    v->count = 0;
    while (v->count < shape->nonzero) {
        double value = random_next(seed);
        int at = (int)(range * random_next(seed));
        if (at >= shape->n || sparse_find_place(v, at) >= 0)
            continue;
        v->at[v->count] = at;
        v->value[v->count++] = value;
    }
    int own = sparse_find_place(v, row);
    if (own < 0) {
        own = v->count++;
        v->at[own] = row;
    }
    v->value[own] = 0.5;
}

struct entry {
    int column;
    double value;
};

/* The block under construction: entries of a row are unordered and may repeat a column. */
struct builder {
    const struct cg_shape *shape;
    int64_t *filled; /* first pass: number of entries of each row; second pass: index for the next entry */
    struct entry *entries;
};

static void builder_add_entry(struct builder *b, int row, int column, double value)
{
    const struct cg_shape *s = b->shape;
    if (row < s->row0 || row >= s->row1 || column < s->col0 || column >= s->col1)
        return;
    int64_t at = b->filled[row - s->row0]++;
    if (b->entries)
        b->entries[at] = (struct entry){column - s->col0, value};
}

static void builder_add_products(struct builder *b)
{
    const struct cg_shape *s = b->shape;
    const double lowest = 0.1, ratio = pow(lowest, 1.0 / s->n);
    uint64_t seed = 314159265;
    double weight = 1;
    struct sparse v;
    random_next(&seed); /* the published matrix begins with the second random number */
    for (int i = 0; i < s->n; i++) {
        sparse_draw_row(&v, s, i, &seed);
        for (int c = 0; c < v.count; c++)
            for (int r = 0; r < v.count; r++)
                builder_add_entry(b, v.at[r], v.at[c], weight * v.value[c] * v.value[r]);
        builder_add_entry(b, i, i, lowest - s->shift);
        weight *= ratio;
    }
}

static int compare_by_column(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return (x->column > y->column) - (x->column < y->column);
}

/* Sorts the entries of each row by column and adds entries of the same column. */
static void cg_matrix_compress(const struct builder *b, const int64_t *begin, struct cg_matrix *out)
{
    int64_t at = 0;
    for (int r = 0; r < out->rows; r++) {
        struct entry *row = b->entries + begin[r];
        int64_t count = begin[r + 1] - begin[r];
        qsort(row, (size_t)count, sizeof(*row), compare_by_column);
        out->begin[r] = at;
        for (int64_t i = 0; i < count; i++) {
            if (i > 0 && row[i].column == row[i - 1].column) {
                out->value[at - 1] += row[i].value;
                continue;
            }
            out->column[at] = row[i].column;
            out->value[at++] = row[i].value;
        }
    }
    out->begin[out->rows] = at;
}

void cg_matrix_make(struct kernel_run *run, const struct cg_shape *shape, struct cg_matrix *out)
{
    struct builder b = {.shape = shape};
    int rows = shape->row1 - shape->row0;
    int64_t *begin = kernel_alloc(run, (size_t)(rows + 1) * sizeof(*begin));
    b.filled = kernel_alloc(run, (size_t)(rows + 1) * sizeof(*b.filled));
    builder_add_products(&b);
    for (int r = 0; r < rows; r++) {
        begin[r + 1] = begin[r] + b.filled[r];
        b.filled[r] = begin[r];
    }
    b.entries = kernel_alloc(run, (size_t)begin[rows] * sizeof(*b.entries));
    builder_add_products(&b);
    out->rows = rows;
    out->begin = kernel_alloc(run, (size_t)(rows + 1) * sizeof(*out->begin));
    out->column = kernel_alloc(run, (size_t)begin[rows] * sizeof(*out->column));
    out->value = kernel_alloc(run, (size_t)begin[rows] * sizeof(*out->value));
    cg_matrix_compress(&b, begin, out);
    free(b.entries);
    free(b.filled);
    free(begin);
}

void cg_matrix_free(struct cg_matrix *m)
{
    free(m->begin);
    free(m->column);
    free(m->value);
}
