/* constructors.c: sizes, bounds and names of datatypes created by every constructor, through the MPI
 * interface.
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

static void test_strided(void)
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

/* MPI 5.0, 5.1 and 5.1.6: lb and ub of a new type are the lowest lb and the highest ub of a copy of the
 * old type, plus the smallest epsilon that makes the extent a multiple of the strictest alignment of the
 * basic types. A copy spans the old type's extent: the inner type's data ends at 66 and its extent is 68;
 * the outer type's data ends at 273 + 2 * 68 + 66 = 475, its last copy at 273 + 3 * 68 = 477, and its
 * extent is 480. */
static void test_unaligned(void)
{
    MPI_Datatype inner, outer, two;
    unsigned char memory[2 * 480], packed[2 * 2 * 3 * 3 * 4 * 4], wanted[sizeof(packed)];
    int at = 0, n = 0;
    MPI_Type_create_hvector(3, 4, 25, MPI_INT, &inner);
    MPI_Type_create_hvector(2, 3, 273, inner, &outer);
    MPI_Type_contiguous(2, outer, &two);
    MPI_Type_commit(&outer);
    for (size_t i = 0; i < sizeof(memory); i++)
        memory[i] = (unsigned char)(i * 7 + i / 251);
    /* Fills the offsets of the integers that the constructors define, element by element. */
    for (int element = 0; element < 2; element++)
        for (int block = 0; block < 2; block++)
            for (int copy = 0; copy < 3; copy++)
                for (int row = 0; row < 3; row++, n += 16)
                    memcpy(wanted + n, memory + element * 480 + block * 273 + copy * 68 + row * 25, 16);
    EXPECT_EQ(n, (int)sizeof(packed));
    MPI_Pack(memory, 2, outer, packed, sizeof(packed), &at, MPI_COMM_SELF);
    EXPECT_EQ(at, n);
    EXPECT(memcmp(packed, wanted, sizeof(packed)) == 0);
    expect_type(&inner, 48, 0, 68, 0, 66);
    expect_type(&outer, 288, 0, 480, 0, 475);
    expect_type(&two, 576, 0, 960, 0, 955);
    MPI_Type_create_hvector(2, 1, 3, MPI_DOUBLE, &outer); /* 11 bytes of data, alignment 8 */
    expect_type(&outer, 16, 0, 16, 0, 11);
    /* 17 bytes from the first to the end of the last copy; a program that adds up extents gets 9 + 8. */
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, sizeof(int)};
    const MPI_Datatype parts[] = {MPI_INT, MPI_CHAR};
    MPI_Type_create_struct(2, lengths, places, parts, &inner);
    MPI_Type_create_hvector(2, 1, 9, inner, &outer);
    expect_type(&inner, 5, 0, 8, 0, 5);
    expect_type(&outer, 10, 0, 20, 0, 14);
}

static void test_indexed(void)
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

static void test_arrays(void)
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

static void test_names(void)
{
    char name[MPI_MAX_OBJECT_NAME], longer[2 * MPI_MAX_OBJECT_NAME];
    int n;
    MPI_Datatype t;
    MPI_Type_get_name(MPI_DOUBLE, name, &n);
    EXPECT(strcmp(name, "MPI_DOUBLE") == 0 && n == 10);
    /* Null handles have names since MPI 4.1. */
    MPI_Type_get_name(MPI_DATATYPE_NULL, name, &n);
    EXPECT(strcmp(name, "MPI_DATATYPE_NULL") == 0 && n == 17);
    MPI_Comm_get_name(MPI_COMM_NULL, name, &n);
    EXPECT(strcmp(name, "MPI_COMM_NULL") == 0 && n == 13);
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

/* MPI_Abi_get_fortran_info agrees with MPI_Type_size and MPI_Type_match_size about the types with a size
 * in their name. */
static void test_fortran_sizes(void)
{
    static const struct {
        const char *key;
        int typeclass, size;
        MPI_Datatype type;
    } known[] = {
        {"mpi_real2_supported", MPI_TYPECLASS_REAL, 2, MPI_REAL2},
        {"mpi_real4_supported", MPI_TYPECLASS_REAL, 4, MPI_REAL4},
        {"mpi_real8_supported", MPI_TYPECLASS_REAL, 8, MPI_REAL8},
        {"mpi_real16_supported", MPI_TYPECLASS_REAL, 16, MPI_REAL16},
        {"mpi_complex4_supported", MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4},
        {"mpi_complex8_supported", MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},
        {"mpi_complex16_supported", MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16},
        {"mpi_complex32_supported", MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32},
        {"mpi_integer1_supported", MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},
        {"mpi_integer2_supported", MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
        {"mpi_integer4_supported", MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},
        {"mpi_integer8_supported", MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
        {"mpi_integer16_supported", MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16},
    };
    MPI_Info info;
    EXPECT_EQ(MPI_Abi_get_fortran_info(&info), MPI_SUCCESS);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char value[8] = "";
        int len = sizeof(value), flag, size;
        MPI_Datatype found = MPI_DATATYPE_NULL;
        MPI_Info_get_string(info, known[i].key, &len, value, &flag);
        EXPECT(flag && strcmp(value, "true") == 0);
        MPI_Type_size(known[i].type, &size);
        EXPECT_EQ(size, known[i].size);
        MPI_Type_match_size(known[i].typeclass, known[i].size, &found);
        EXPECT(found == known[i].type);
    }
    MPI_Info_free(&info);
}

static void test_sized_types_without_names(void)
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
    test_strided();
    test_unaligned();
    test_indexed();
    test_arrays();
    test_names();
    test_fortran_sizes();
    test_sized_types_without_names();
    return mpitest_end();
}
