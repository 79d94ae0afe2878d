/* test_recipe.c: envelopes: the arguments of every constructor, in its int and its large-count form, are
 * returned as given; and unnamed predefined types are identical when requested twice.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "dt/build.h"
#include "dt/op.h"
#include "dt/recipe.h"

#define INT   dtype_from_handle(MPI_INT)
#define FLOAT dtype_from_handle(MPI_FLOAT)

/* Compares the arguments of the envelope with a text such as "i 3 1 a 24 c 7": integers, addresses,
 * counts. */
static void expect_envelope(struct dtype *t, int combiner, const char *wanted)
{
    char text[300] = "";
    size_t n = 0;
    const struct dt_recipe *r = t->recipe;
    EXPECT_EQ(r->combiner, combiner);
    for (int i = 0; i < r->integers; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d ", i ? "" : "i ", r->integer[i]);
    for (int i = 0; i < r->addresses; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%ld ", i ? "" : "a ", (long)r->address[i]);
    for (int i = 0; i < r->counts; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%ld ", i ? "" : "c ", (long)r->large[i]);
    EXPECT_STR(text, wanted);
    for (int i = 0; i < r->types; i++)
        EXPECT(r->type[i] == (i == 1 ? FLOAT : INT));
    dtype_release(t);
}

static void test_strided(void)
{
    struct dtype *t;
    EXPECT_EQ(dtype_contiguous(5, INT, false, &t), 0);
    expect_envelope(t, MPI_COMBINER_CONTIGUOUS, "i 5 ");
    EXPECT_EQ(dtype_contiguous(5, INT, true, &t), 0);
    expect_envelope(t, MPI_COMBINER_CONTIGUOUS, "c 5 ");
    EXPECT_EQ(dtype_vector(5, 2, -3, INT, false, &t), 0);
    expect_envelope(t, MPI_COMBINER_VECTOR, "i 5 2 -3 ");
    EXPECT_EQ(dtype_vector(5, 2, -3, INT, true, &t), 0);
    expect_envelope(t, MPI_COMBINER_VECTOR, "c 5 2 -3 ");
    EXPECT_EQ(dtype_hvector(5, 2, 30, INT, false, &t), 0);
    expect_envelope(t, MPI_COMBINER_HVECTOR, "i 5 2 a 30 ");
    EXPECT_EQ(dtype_hvector(5, 2, 30, INT, true, &t), 0);
    expect_envelope(t, MPI_COMBINER_HVECTOR, "c 5 2 30 ");
    EXPECT_EQ(dtype_resized(INT, -4, 12, false, &t), 0);
    expect_envelope(t, MPI_COMBINER_RESIZED, "a -4 12 ");
    EXPECT_EQ(dtype_resized(INT, -4, 12, true, &t), 0);
    expect_envelope(t, MPI_COMBINER_RESIZED, "c -4 12 ");
    EXPECT_EQ(dtype_dup(INT, &t), 0);
    EXPECT(t->committed);
    expect_envelope(t, MPI_COMBINER_DUP, "");
}

static void test_indexed(void)
{
    struct dtype *t;
    int n[2] = {1, 2}, at[2] = {3, 4};
    MPI_Count wn[2] = {1, 2}, wat[2] = {3, 4};
    MPI_Aint bytes[2] = {16, 32};
    EXPECT_EQ(dtype_indexed(2, ivec_from_int(n), ivec_from_int(at), INT, &t), 0);
    expect_envelope(t, MPI_COMBINER_INDEXED, "i 2 1 2 3 4 ");
    EXPECT_EQ(dtype_indexed(2, ivec_from_int64(wn), ivec_from_int64(wat), INT, &t), 0);
    expect_envelope(t, MPI_COMBINER_INDEXED, "c 2 1 2 3 4 ");
    EXPECT_EQ(dtype_hindexed(2, ivec_from_int(n), ivec_from_int64(bytes), INT, &t), 0);
    expect_envelope(t, MPI_COMBINER_HINDEXED, "i 2 1 2 a 16 32 ");
    EXPECT_EQ(dtype_hindexed(2, ivec_from_int64(wn), ivec_from_int64(bytes), INT, &t), 0);
    expect_envelope(t, MPI_COMBINER_HINDEXED, "c 2 1 2 16 32 ");
    EXPECT_EQ(dtype_indexed_block(2, 7, ivec_from_int(at), INT, &t), 0);
    expect_envelope(t, MPI_COMBINER_INDEXED_BLOCK, "i 2 7 3 4 ");
    EXPECT_EQ(dtype_indexed_block(2, 7, ivec_from_int64(wat), INT, &t), 0);
    expect_envelope(t, MPI_COMBINER_INDEXED_BLOCK, "c 2 7 3 4 ");
    EXPECT_EQ(dtype_hindexed_block(2, 7, ivec_from_int64(bytes), INT, false, &t), 0);
    expect_envelope(t, MPI_COMBINER_HINDEXED_BLOCK, "i 2 7 a 16 32 ");
    EXPECT_EQ(dtype_hindexed_block(2, 7, ivec_from_int64(bytes), INT, true, &t), 0);
    expect_envelope(t, MPI_COMBINER_HINDEXED_BLOCK, "c 2 7 16 32 ");
    MPI_Datatype types[2] = {MPI_INT, MPI_FLOAT};
    EXPECT_EQ(dtype_struct(2, ivec_from_int(n), ivec_from_int64(bytes), types, &t), 0);
    EXPECT_EQ(t->recipe->types, 2);
    expect_envelope(t, MPI_COMBINER_STRUCT, "i 2 1 2 a 16 32 ");
    EXPECT_EQ(dtype_struct(2, ivec_from_int64(wn), ivec_from_int64(bytes), types, &t), 0);
    expect_envelope(t, MPI_COMBINER_STRUCT, "c 2 1 2 16 32 ");
    EXPECT_EQ(dtype_indexed(0, ivec_from_int(NULL), ivec_from_int(NULL), INT, &t), 0);
    expect_envelope(t, MPI_COMBINER_INDEXED, "i 0 ");
    types[1] = MPI_DATATYPE_NULL;
    EXPECT_EQ(dtype_struct(2, ivec_from_int(n), ivec_from_int64(bytes), types, &t), MPI_ERR_TYPE);
    n[1] = -1;
    EXPECT_EQ(dtype_indexed(2, ivec_from_int(n), ivec_from_int(at), INT, &t), MPI_ERR_COUNT);
}

static void test_arrays(void)
{
    struct dtype *t;
    int size[2] = {4, 5}, sub[2] = {2, 3}, at[2] = {1, 2};
    MPI_Count wsize[2] = {4, 5}, wsub[2] = {2, 3}, wat[2] = {1, 2};
    EXPECT_EQ(
        dtype_subarray(2, ivec_from_int(size), ivec_from_int(sub), ivec_from_int(at), MPI_ORDER_C, INT, &t),
        0);
    expect_envelope(t, MPI_COMBINER_SUBARRAY, "i 2 4 5 2 3 1 2 12 ");
    EXPECT_EQ(dtype_subarray(2, ivec_from_int64(wsize), ivec_from_int64(wsub), ivec_from_int64(wat),
                             MPI_ORDER_C, INT, &t),
              0);
    expect_envelope(t, MPI_COMBINER_SUBARRAY, "i 2 12 c 4 5 2 3 1 2 ");
    int how[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arg[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
    int grid[2] = {2, 3};
    struct darray d = {6, 4, 2, ivec_from_int(size), how, arg, grid, MPI_ORDER_FORTRAN};
    EXPECT_EQ(dtype_darray(&d, INT, &t), 0);
    expect_envelope(t, MPI_COMBINER_DARRAY, "i 6 4 2 4 5 17 18 19 2 2 3 15 ");
    d.gsizes = ivec_from_int64(wsize);
    EXPECT_EQ(dtype_darray(&d, INT, &t), 0);
    expect_envelope(t, MPI_COMBINER_DARRAY, "i 6 4 2 17 18 19 2 2 3 15 c 4 5 ");
}

static void test_invalid_arrays(void)
{
    struct dtype *t;
    int size[1] = {4}, sub[1] = {3}, at[1] = {2}, how[1] = {MPI_DISTRIBUTE_BLOCK}, arg[1] = {1},
        grid[1] = {2};
    EXPECT_EQ(
        dtype_subarray(1, ivec_from_int(size), ivec_from_int(sub), ivec_from_int(at), MPI_ORDER_C, INT, &t),
        MPI_ERR_ARG);
    EXPECT_EQ(
        dtype_subarray(0, ivec_from_int(size), ivec_from_int(sub), ivec_from_int(at), MPI_ORDER_C, INT, &t),
        MPI_ERR_ARG);
    at[0] = 0;
    EXPECT_EQ(dtype_subarray(1, ivec_from_int(size), ivec_from_int(sub), ivec_from_int(at), 99, INT, &t),
              MPI_ERR_ARG);
    struct darray d = {2, 0, 1, ivec_from_int(size), how, arg, grid, MPI_ORDER_C};
    /* Invalid: two blocks of one element do not cover four elements. */
    EXPECT_EQ(dtype_darray(&d, INT, &t), MPI_ERR_ARG);
    arg[0] = 2;
    d.rank = 2;
    EXPECT_EQ(dtype_darray(&d, INT, &t), MPI_ERR_ARG);
    d.rank = 0;
    d.size = 3;
    EXPECT_EQ(dtype_darray(&d, INT, &t), MPI_ERR_ARG);
    d.size = 2;
    how[0] = MPI_DISTRIBUTE_NONE;
    EXPECT_EQ(dtype_darray(&d, INT, &t), MPI_ERR_ARG);
    how[0] = 99;
    EXPECT_EQ(dtype_darray(&d, INT, &t), MPI_ERR_ARG);
}

static void test_fortran_kinds(void)
{
    struct dtype *a, *b;
    EXPECT_EQ(dtype_f90_real(6, 30, &a), 0);
    EXPECT_EQ(dtype_f90_real(6, 30, &b), 0);
    EXPECT(a == b && a->obj.predefined && a->committed);
    EXPECT_EQ(a->size, 4);
    EXPECT_EQ(a->recipe->combiner, MPI_COMBINER_F90_REAL);
    EXPECT(a->recipe->integer[0] == 6 && a->recipe->integer[1] == 30);
    EXPECT_EQ(op_check(op_from_handle(MPI_SUM), a), 0);
    EXPECT_EQ(dtype_f90_real(MPI_UNDEFINED, 300, &b), 0);
    EXPECT(b->size == 8 && a != b);
    EXPECT_EQ(dtype_f90_real(33, MPI_UNDEFINED, &b), 0);
    EXPECT_EQ(b->size, 16);
    EXPECT_EQ(dtype_f90_real(40, MPI_UNDEFINED, &b), MPI_ERR_ARG);
    EXPECT_EQ(dtype_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &b), MPI_ERR_ARG);
    EXPECT_EQ(dtype_f90_complex(15, 300, &b), 0);
    EXPECT_EQ(b->size, 16);
    static const int sizes[][2] = {{1, 1}, {2, 1}, {4, 2}, {9, 4}, {18, 8}, {19, 16}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        EXPECT_EQ(dtype_f90_integer(sizes[i][0], &b), 0);
        EXPECT_EQ(b->size, sizes[i][1]);
    }
    EXPECT_EQ(dtype_f90_integer(39, &b), MPI_ERR_ARG);
}

static void test_value_index_types(void)
{
    struct dtype *t, *u;
    dtype_value_index(dtype_from_handle(MPI_DOUBLE), INT, &t);
    EXPECT(t == dtype_from_handle(MPI_DOUBLE_INT));
    dtype_value_index(dtype_from_handle(MPI_REAL), dtype_from_handle(MPI_REAL), &t);
    EXPECT(t == dtype_from_handle(MPI_2REAL));
    dtype_value_index(dtype_from_handle(MPI_SHORT), dtype_from_handle(MPI_INT64_T), &t);
    dtype_value_index(dtype_from_handle(MPI_SHORT), dtype_from_handle(MPI_INT64_T), &u);
    EXPECT(t && t == u && !t->handle && t->obj.predefined);
    EXPECT(t->size == 10 && t->extent == 16 && t->recipe->combiner == MPI_COMBINER_VALUE_INDEX);
    dtype_value_index(dtype_from_handle(MPI_C_FLOAT_COMPLEX), INT, &t);
    EXPECT(!t);
    dtype_value_index(dtype_from_handle(MPI_CHAR), INT, &t);
    EXPECT(!t);
}

static void test_match_size(void)
{
    struct dtype *t;
    EXPECT_EQ(dtype_match_size(MPI_TYPECLASS_REAL, 8, &t), 0);
    EXPECT(t == dtype_from_handle(MPI_REAL8));
    EXPECT_EQ(dtype_match_size(MPI_TYPECLASS_INTEGER, 2, &t), 0);
    EXPECT(t == dtype_from_handle(MPI_INTEGER2));
    EXPECT_EQ(dtype_match_size(MPI_TYPECLASS_COMPLEX, 32, &t), 0);
    EXPECT(t == dtype_from_handle(MPI_COMPLEX32));
    EXPECT_EQ(dtype_match_size(MPI_TYPECLASS_REAL, 5, &t), MPI_ERR_ARG);
    EXPECT_EQ(dtype_match_size(7, 8, &t), MPI_ERR_ARG);
}

int main(void)
{
    TEST_RUN(test_strided);
    TEST_RUN(test_indexed);
    TEST_RUN(test_arrays);
    TEST_RUN(test_invalid_arrays);
    TEST_RUN(test_fortran_kinds);
    TEST_RUN(test_value_index_types);
    TEST_RUN(test_match_size);
    return test_result();
}
