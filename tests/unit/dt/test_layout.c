/* test_layout.c: internal layouts of datatypes: regular types need constant memory, adjacent blocks are
 * merged, huge counts work, overflow is an error.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>

#include "dt/build.h"
#include "dt/layout.h"

#define INT    dt_predefined(0x209)
#define DOUBLE dt_predefined(0x214)
#define CHAR   dt_predefined(0x243)

/* Commits the type and returns the top node of its layout. */
static const struct dt_node *commit_and_get_node(struct dtype *t)
{
    EXPECT_EQ(dtype_commit(t), 0);
    return t->layout->node;
}

static void test_vector_is_one_loop(void)
{
    struct dtype *t;
    EXPECT_EQ(dtype_vector(1000000000, 1, 3, DOUBLE, true, &t), 0);
    const struct dt_node *n = commit_and_get_node(t);
    EXPECT_EQ(n->type, NODE_LOOP);
    EXPECT_EQ(n->loop.count, 1000000000);
    EXPECT_EQ(n->loop.stride, 24);
    EXPECT_EQ(n->loop.child->type, NODE_BLOCK);
    EXPECT_EQ(t->size, 8000000000);
    EXPECT_EQ(t->extent, 24000000000 - 16);
    dtype_release(t);
}

static void test_full_vector_is_one_block(void)
{
    struct dtype *t, *u;
    dtype_vector(10, 4, 4, INT, false, &t);
    EXPECT_EQ(commit_and_get_node(t)->type, NODE_BLOCK);
    EXPECT(t->dense && t->contiguous);
    dtype_contiguous(7, t, false, &u);
    EXPECT_EQ(commit_and_get_node(u)->size, 7 * 160);
    EXPECT(u->contiguous);
    dtype_release(t);
    dtype_release(u);
}

static void test_equal_strides_become_loop(void)
{
    int n[100], at[100];
    struct dtype *t;
    for (int i = 0; i < 100; i++) {
        n[i] = 2;
        at[i] = 5 * i + 3;
    }
    dtype_indexed(100, ivec_from_int(n), ivec_from_int(at), INT, &t);
    const struct dt_node *node = commit_and_get_node(t);
    EXPECT_EQ(node->type, NODE_LOOP);
    EXPECT_EQ(node->loop.stride, 20);
    EXPECT_EQ(t->layout->offset, 12);
    dtype_release(t);
}

static void test_adjacent_blocks_are_merged(void)
{
    int n[4] = {1, 3, 2, 1}, at[4] = {0, 1, 4, 10};
    struct dtype *t;
    dtype_indexed(4, ivec_from_int(n), ivec_from_int(at), INT, &t);
    const struct dt_node *node = commit_and_get_node(t);
    EXPECT_EQ(node->type, NODE_BLOCKS);
    EXPECT_EQ(node->blocks.count, 2);
    EXPECT_EQ(node->blocks.entry[1].start, 24);
    dtype_release(t);
}

static void test_matching_nested_loops_are_merged(void)
{
    struct dtype *row, *t;
    dtype_hvector(8, 1, 16, INT, false, &row);
    dtype_hvector(5, 1, 128, row, false, &t);
    const struct dt_node *node = commit_and_get_node(t);
    EXPECT_EQ(node->type, NODE_LOOP);
    EXPECT_EQ(node->loop.count, 40);
    EXPECT_EQ(node->loop.child->type, NODE_BLOCK);
    dtype_release(row);
    dtype_release(t);
}

/* Blocks of a strided type: equal loops share one node, and blocks at even steps become an outer loop. */
static void test_equal_parts_share_node(void)
{
    int n[3] = {2, 2, 2}, even[3] = {0, 9, 18}, odd[3] = {0, 9, 17};
    struct dtype *v, *t;
    dtype_vector(10, 1, 3, INT, false, &v);
    dtype_indexed(3, ivec_from_int(n), ivec_from_int(odd), v, &t);
    const struct dt_node *node = commit_and_get_node(t);
    EXPECT_EQ(node->type, NODE_LIST);
    EXPECT(node->list.entry[0].node == node->list.entry[2].node);
    dtype_release(t);
    dtype_indexed(3, ivec_from_int(n), ivec_from_int(even), v, &t);
    EXPECT_EQ(commit_and_get_node(t)->type, NODE_LOOP);
    dtype_release(t);
    dtype_release(v);
}

/* A column of a matrix, resized so that columns follow each other. */
static void test_resized_column(void)
{
    double m[4][5], out[20];
    struct dtype *column, *t;
    for (int i = 0; i < 20; i++)
        m[i / 5][i % 5] = i;
    dtype_vector(4, 1, 5, DOUBLE, false, &column);
    dtype_resized(column, 0, 8, false, &t);
    dtype_release(column);
    dtype_commit(t);
    dt_pack_all(t, 5, m, out);
    for (int i = 0; i < 20; i++)
        EXPECT_EQ(out[i], i % 4 * 5 + i / 4);
    dtype_release(t);
}

/* Derived types inherit explicit bounds; natural bounds of other parts do not replace them. */
static void test_explicit_bounds_are_inherited(void)
{
    struct dtype *wide, *t, *u;
    dtype_resized(INT, -4, 20, false, &wide);
    int n[2] = {1, 1};
    MPI_Aint at[2] = {0, 100};
    MPI_Datatype types[2] = {dtype_handle(wide), MPI_INT};
    dtype_struct(2, ivec_from_int(n), ivec_from_int64(at), types, &t);
    EXPECT_EQ(t->lb, -4);
    EXPECT_EQ(t->extent, 20);
    EXPECT_EQ(t->true_extent, 104);
    dtype_contiguous(3, wide, false, &u);
    EXPECT_EQ(u->lb, -4);
    EXPECT_EQ(u->extent, 60);
    EXPECT_EQ(u->size, 12);
    dtype_release(wide);
    dtype_release(t);
    dtype_release(u);
}

static void test_structures_are_padded(void)
{
    struct dtype *t, *u;
    int n[2] = {1, 1};
    MPI_Aint at[2] = {0, 8}, two[2] = {0, 17};
    MPI_Datatype types[2] = {MPI_DOUBLE, MPI_CHAR};
    dtype_struct(2, ivec_from_int(n), ivec_from_int64(at), types, &t);
    EXPECT_EQ(t->extent, 16);
    EXPECT_EQ(t->true_extent, 9);
    EXPECT_EQ(t->size, 9);
    /* Each part spans its extent, padding included: 17 + 16, rounded up to a multiple of 8. */
    dtype_hindexed(2, ivec_from_int(n), ivec_from_int64(two), t, &u);
    EXPECT_EQ(u->extent, 40);
    EXPECT_EQ(u->true_extent, 26);
    dtype_release(t);
    dtype_release(u);
}

static void test_empty_types(void)
{
    struct dtype *t, *u;
    char byte = 7;
    EXPECT_EQ(dtype_struct(0, ivec_from_int(NULL), ivec_from_int64(NULL), NULL, &t), 0);
    EXPECT_EQ(dtype_commit(t), 0);
    EXPECT_EQ(t->size + t->extent + t->lb + t->true_extent, 0);
    EXPECT(t->contiguous);
    dtype_resized(t, 3, 10, false, &u);
    dtype_commit(u);
    EXPECT_EQ(u->extent, 10);
    dt_pack_all(u, 5, &byte, &byte);
    struct dt_cursor c;
    void *piece;
    dt_cursor_init(&c, u, 1000, NULL);
    EXPECT_EQ(dt_cursor_next(&c, 10, &piece), 0);
    EXPECT_EQ(dt_cursor_pack(&c, &byte, 1), 0);
    EXPECT_EQ(byte, 7);
    dtype_release(t);
    dtype_release(u);
}

/* Iterates over terabytes without allocating them: only addresses are computed. */
static void test_huge_counts(void)
{
    struct dtype *t;
    struct dt_cursor c;
    void *piece;
    const int64_t n = (int64_t)1 << 40;
    dtype_vector(n, 1, 2, INT, true, &t);
    EXPECT_EQ(dtype_commit(t), 0);
    dt_cursor_init(&c, t, 3, (void *)4096);
    dt_cursor_seek(&c, (uint64_t)4 * n + 4 * 1000 + 1);
    EXPECT_EQ(dt_cursor_next(&c, 100, &piece), 3);
    EXPECT_EQ((intptr_t)piece, 4096 + t->extent + 8000 + 1);
    EXPECT_EQ(dt_cursor_next(&c, 100, &piece), 4);
    EXPECT_EQ((intptr_t)piece, 4096 + t->extent + 8008);
    dtype_release(t);
}

static void test_overflow_is_an_error(void)
{
    struct dtype *t, *u;
    EXPECT_EQ(dtype_contiguous((MPI_Count)1 << 61, DOUBLE, true, &t), MPI_ERR_ARG);
    EXPECT_EQ(dtype_vector(3, 1, (MPI_Count)1 << 62, INT, true, &t), MPI_ERR_ARG);
    EXPECT_EQ(dtype_hvector(5, 1, (MPI_Count)1 << 61, INT, true, &t), MPI_ERR_ARG);
    EXPECT_EQ(dtype_contiguous((MPI_Count)1 << 60, INT, true, &t), 0);
    EXPECT_EQ(dtype_contiguous(2, t, true, &u), MPI_ERR_ARG);
    EXPECT_EQ(dtype_contiguous(-1, INT, false, &u), MPI_ERR_COUNT);
    int sizes[3] = {2000000000, 2000000000, 2000000000}, one[3] = {1, 1, 1}, at[3] = {5, 5, 1999999999};
    EXPECT_EQ(dtype_subarray(3, ivec_from_int(sizes), ivec_from_int(one), ivec_from_int(at),
                             MPI_ORDER_FORTRAN, INT, &u),
              MPI_ERR_ARG);
    dtype_release(t);
    /* The entries end at 2^63 - 1, and the padding would exceed 2^63 - 1. */
    const int64_t lengths[2] = {1, 1}, displacements[2] = {INT64_MAX - 6, INT64_MAX - 1};
    const MPI_Datatype types[2] = {MPI_INT, MPI_CHAR};
    EXPECT_EQ(dtype_struct(2, ivec_from_int64(lengths), ivec_from_int64(displacements), types, &u),
              MPI_ERR_ARG);
}

/* A derived type holds references to the types that it is built from. */
static void test_derived_types_retain_children(void)
{
    struct dtype *a, *b, *c;
    dtype_vector(3, 1, 2, INT, false, &a);
    dtype_contiguous(2, a, false, &b);
    dtype_release(a);
    dtype_dup(b, &c);
    dtype_release(b);
    int in[12], out[6];
    for (int i = 0; i < 12; i++)
        in[i] = i;
    EXPECT_EQ(dtype_commit(c), 0);
    dt_pack_all(c, 1, in, out);
    EXPECT_EQ(out[5], 9);
    dtype_release(c);
}

int main(void)
{
    TEST_RUN(test_vector_is_one_loop);
    TEST_RUN(test_full_vector_is_one_block);
    TEST_RUN(test_equal_strides_become_loop);
    TEST_RUN(test_adjacent_blocks_are_merged);
    TEST_RUN(test_matching_nested_loops_are_merged);
    TEST_RUN(test_equal_parts_share_node);
    TEST_RUN(test_resized_column);
    TEST_RUN(test_explicit_bounds_are_inherited);
    TEST_RUN(test_structures_are_padded);
    TEST_RUN(test_empty_types);
    TEST_RUN(test_huge_counts);
    TEST_RUN(test_overflow_is_an_error);
    TEST_RUN(test_derived_types_retain_children);
    return test_result();
}
