/* layout.h: buffers of integers with various datatypes, compared byte by byte with their expected
 * contents, gaps included.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_MPI_COLL_LAYOUT_H
#define FP_TESTS_MPI_COLL_LAYOUT_H

#include "mpitest.h"

/* A datatype that holds `n` integers at these byte offsets. */
struct layout {
    const char *name;
    MPI_Datatype type;
    MPI_Aint extent;
    int n;
    MPI_Aint at[3];
};

enum { PLAIN, TRIPLE, STRIDED, SHIFTED, LAYOUTS };
static struct layout layouts[LAYOUTS];

static void layouts_create(void)
{
    MPI_Datatype t;
    layouts[PLAIN] = (struct layout){.name = "int", .type = MPI_INT, .extent = 4, .n = 1};
    MPI_Type_contiguous(3, MPI_INT, &t);
    MPI_Type_commit(&t);
    layouts[TRIPLE] = (struct layout){.name = "triple", .type = t, .extent = 12, .n = 3, .at = {0, 4, 8}};
    MPI_Datatype v;
    MPI_Type_vector(2, 1, 3, MPI_INT, &v);
    MPI_Type_create_resized(v, 0, 20, &t);
    MPI_Type_free(&v);
    MPI_Type_commit(&t);
    layouts[STRIDED] = (struct layout){.name = "strided", .type = t, .extent = 20, .n = 2, .at = {0, 12}};
    int one = 1;
    MPI_Aint eight = 8;
    MPI_Type_create_hindexed(1, &one, &eight, MPI_INT, &v);
    MPI_Type_create_resized(v, -4, 16, &t);
    MPI_Type_free(&v);
    MPI_Type_commit(&t);
    layouts[SHIFTED] = (struct layout){.name = "shifted", .type = t, .extent = 16, .n = 1, .at = {8}};
}

static void layouts_free(void)
{
    for (int i = TRIPLE; i < LAYOUTS; i++)
        MPI_Type_free(&layouts[i].type);
}

/* A buffer for `elements` elements of a layout, filled with a pattern that differs from all data. */
struct space {
    const struct layout *l;
    char *memory, *base;
    size_t size;
};

static struct space space_alloc(const struct layout *l, long elements)
{
    struct space s = {.l = l, .size = 128 + (size_t)elements * (size_t)l->extent};
    s.memory = malloc(s.size);
    s.base = s.memory + 64;
    memset(s.memory, 0xa5, s.size);
    return s;
}

static void space_free(struct space *s)
{
    free(s->memory);
}

/* Writes integer number `i` of the stream that starts at element `first`. */
static void space_set(struct space *s, long first, long i, int value)
{
    char *element = s->base + (first + i / s->l->n) * s->l->extent;
    memcpy(element + s->l->at[i % s->l->n], &value, 4);
}

static int space_is_equal(const struct space *a, const struct space *b)
{
    return a->size == b->size && memcmp(a->memory, b->memory, a->size) == 0;
}

/* Element i of the data that rank `from` has for rank `to`. */
static int block_element(int from, int to, long i)
{
    return (int)(from * 1000003 + to * 10007 + i * 31 + 7);
}

static void space_fill(struct space *s, long first, long ints, int from, int to)
{
    for (long i = 0; i < ints; i++)
        space_set(s, first, i, block_element(from, to, i));
}

#endif
