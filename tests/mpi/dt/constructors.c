/* Sizes, bounds and names of types made by every constructor, through the MPI interface.
 *
 * ranks: 1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "mpitest.h"

static void expect_type(MPI_Datatype *t, long long size, long long lb, long long extent, long long true_lb,
                        long long true_extent)
{
    int n;
    MPI_Count nx, lx, ex;
    MPI_Aint a, b;
    EXPECT_EQ(MPI_Type_commit(t), MPI_SUCCESS);
    MPI_Type_size(*t, &n);
    EXPECT_EQ(n, size > INT_MAX ? MPI_UNDEFINED : size);
    MPI_Type_size_c(*t, &nx);
    EXPECT_EQ(nx, size);
    MPI_Type_size_x(*t, &nx);
    EXPECT_EQ(nx, size);
    MPI_Type_get_extent(*t, &a, &b);
    EXPECT_EQ(a, lb);
    EXPECT_EQ(b, extent);
    MPI_Type_get_extent_c(*t, &lx, &ex);
    EXPECT_EQ(lx, lb);
    EXPECT_EQ(ex, extent);
    MPI_Type_get_extent_x(*t, &lx, &ex);
    EXPECT_EQ(ex, extent);
    MPI_Type_get_true_extent(*t, &a, &b);
    EXPECT_EQ(a, true_lb);
    EXPECT_EQ(b, true_extent);
    MPI_Type_get_true_extent_c(*t, &lx, &ex);
    EXPECT_EQ(ex, true_extent);
    MPI_Type_get_true_extent_x(*t, &lx, &ex);
    EXPECT_EQ(lx, true_lb);
    MPI_Type_free(t);
    EXPECT(*t == MPI_DATATYPE_NULL);
}

static void strided(void)
{
    MPI_Datatype t;
    MPI_Type_contiguous(7, MPI_INT, &t);
    expect_type(&t, 28, 0, 28, 0, 28);
    MPI_Type_contiguous(0, MPI_INT, &t);
    expect_type(&t, 0, 0, 0, 0, 0);
    MPI_Type_contiguous_c((MPI_Count)1 << 33, MPI_INT, &t);
    expect_type(&t, (long long)1 << 35, 0, (long long)1 << 35, 0, (long long)1 << 35);
    MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &t);
    expect_type(&t, 48, 0, 80, 0, 80);
    MPI_Type_vector(3, 2, -4, MPI_DOUBLE, &t);
    expect_type(&t, 48, -64, 80, -64, 80);
    MPI_Type_vector_c(3, 2, 4, MPI_DOUBLE, &t);
    expect_type(&t, 48, 0, 80, 0, 80);
    MPI_Type_create_hvector(4, 1, 10, MPI_SHORT, &t);
    expect_type(&t, 8, 0, 32, 0, 32);
    MPI_Type_create_hvector_c(4, 1, 10, MPI_SHORT, &t);
    expect_type(&t, 8, 0, 32, 0, 32);
}

static void indexed(void)
{
    MPI_Datatype t, types[2] = {MPI_CHAR, MPI_DOUBLE};
    int n[2] = {2, 1}, at[2] = {5, 1};
    MPI_Aint bytes[2] = {0, 8};
    MPI_Count wn[2] = {2, 1}, wat[2] = {0, 8};
    MPI_Type_indexed(2, n, at, MPI_INT, &t);
    expect_type(&t, 12, 4, 24, 4, 24);
    MPI_Type_create_hindexed(2, n, bytes, MPI_INT, &t);
    expect_type(&t, 12, 0, 12, 0, 12);
    MPI_Type_create_indexed_block(2, 2, at, MPI_INT, &t);
    expect_type(&t, 16, 4, 24, 4, 24);
    MPI_Type_create_hindexed_block(2, 2, bytes, MPI_INT, &t);
    expect_type(&t, 16, 0, 16, 0, 16);
    MPI_Type_create_struct(2, n, bytes, types, &t);
    expect_type(&t, 10, 0, 16, 0, 16);
    MPI_Type_create_struct_c(2, wn, wat, types, &t);
    expect_type(&t, 10, 0, 16, 0, 16);
    MPI_Type_create_resized(MPI_INT, -3, 100, &t);
    expect_type(&t, 4, -3, 100, 0, 4);
}

static void arrays(void)
{
    MPI_Datatype t;
    int sizes[2] = {6, 8}, sub[2] = {2, 3}, at[2] = {1, 4};
    MPI_Type_create_subarray(2, sizes, sub, at, MPI_ORDER_C, MPI_INT, &t);
    expect_type(&t, 24, 0, 192, (1 * 8 + 4) * 4, (1 * 8 + 3) * 4);
    MPI_Type_create_subarray(2, sizes, sub, at, MPI_ORDER_FORTRAN, MPI_INT, &t);
    expect_type(&t, 24, 0, 192, (4 * 6 + 1) * 4, (2 * 6 + 2) * 4);
    int how[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE}, grid[2] = {3, 1};
    int arg[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Type_create_darray(3, 1, 2, sizes, how, arg, grid, MPI_ORDER_C, MPI_INT, &t);
    expect_type(&t, 64, 0, 192, 64, 64);
}

static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME], longer[2 * MPI_MAX_OBJECT_NAME];
    int n;
    MPI_Datatype t;
    MPI_Type_get_name(MPI_DOUBLE, name, &n);
    EXPECT(strcmp(name, "MPI_DOUBLE") == 0 && n == 10);
    MPI_Type_contiguous(2, MPI_INT, &t);
    MPI_Type_get_name(t, name, &n);
    EXPECT(n == 0 && name[0] == '\0');
    MPI_Type_set_name(t, "two integers");
    MPI_Type_get_name(t, name, &n);
    EXPECT(strcmp(name, "two integers") == 0 && n == 12);
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    MPI_Type_set_name(t, longer);
    MPI_Type_get_name(t, name, &n);
    EXPECT_EQ(n, MPI_MAX_OBJECT_NAME - 1);
    MPI_Type_free(&t);
}

static void without_names(void)
{
    MPI_Datatype a, b;
    int size;
    MPI_Type_create_f90_real(15, 300, &a);
    MPI_Type_create_f90_real(15, 300, &b);
    EXPECT(a == b);
    MPI_Type_size(a, &size);
    EXPECT_EQ(size, 8);
    MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 8, &a);
    EXPECT(a == MPI_INTEGER8);
    MPI_Type_get_value_index(MPI_FLOAT, MPI_INT, &a);
    EXPECT(a == MPI_FLOAT_INT);
    MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT64_T, &a);
    EXPECT(a != MPI_DATATYPE_NULL);
    MPI_Type_size(a, &size);
    EXPECT_EQ(size, 16);
    MPI_Type_get_value_index(MPI_CHAR, MPI_INT, &a);
    EXPECT(a == MPI_DATATYPE_NULL);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    strided();
    indexed();
    arrays();
    names();
    without_names();
    return mpitest_end();
}
