/* test_predefined.c: every handle of a predefined datatype in mpi.h resolves to a type with the correct
 * size, alignment and name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <complex.h>
#include <stddef.h>
#include <wchar.h>

#include "dt/dtype.h"
#include "dt/kind.h"
#include "dt/layout.h"

#define CHECK_TYPE(id, bytes)                           \
    do {                                                \
        struct dtype *t = dtype_from_handle(MPI_##id);  \
        EXPECT(t != NULL);                              \
        EXPECT_STR(t->name, "MPI_" #id);                \
        EXPECT_EQ(t->size, bytes);                      \
        EXPECT(dtype_handle(t) == MPI_##id);            \
        EXPECT(t->committed && t->obj.predefined);      \
        EXPECT_STR(dt_kinds[t->kind].name, "MPI_" #id); \
    } while (0)

static void test_c_types(void)
{
    CHECK_TYPE(CHAR, 1);
    CHECK_TYPE(SIGNED_CHAR, 1);
    CHECK_TYPE(UNSIGNED_CHAR, 1);
    CHECK_TYPE(SHORT, sizeof(short));
    CHECK_TYPE(UNSIGNED_SHORT, sizeof(short));
    CHECK_TYPE(INT, sizeof(int));
    CHECK_TYPE(UNSIGNED, sizeof(int));
    CHECK_TYPE(LONG, sizeof(long));
    CHECK_TYPE(UNSIGNED_LONG, sizeof(long));
    CHECK_TYPE(LONG_LONG_INT, sizeof(long long));
    CHECK_TYPE(UNSIGNED_LONG_LONG, sizeof(long long));
    CHECK_TYPE(FLOAT, sizeof(float));
    CHECK_TYPE(DOUBLE, sizeof(double));
    CHECK_TYPE(LONG_DOUBLE, sizeof(long double));
    CHECK_TYPE(WCHAR, sizeof(wchar_t));
    CHECK_TYPE(C_BOOL, sizeof(_Bool));
    CHECK_TYPE(C_COMPLEX, sizeof(float complex));
    CHECK_TYPE(C_DOUBLE_COMPLEX, sizeof(double complex));
    CHECK_TYPE(C_LONG_DOUBLE_COMPLEX, sizeof(long double complex));
    CHECK_TYPE(INT8_T, 1);
    CHECK_TYPE(UINT8_T, 1);
    CHECK_TYPE(INT16_T, 2);
    CHECK_TYPE(UINT16_T, 2);
    CHECK_TYPE(INT32_T, 4);
    CHECK_TYPE(UINT32_T, 4);
    CHECK_TYPE(INT64_T, 8);
    CHECK_TYPE(UINT64_T, 8);
    CHECK_TYPE(AINT, sizeof(MPI_Aint));
    CHECK_TYPE(COUNT, sizeof(MPI_Count));
    CHECK_TYPE(OFFSET, sizeof(MPI_Offset));
    CHECK_TYPE(PACKED, 1);
    CHECK_TYPE(BYTE, 1);
    EXPECT(MPI_C_COMPLEX == MPI_C_FLOAT_COMPLEX && MPI_LONG_LONG_INT == MPI_LONG_LONG);
}

static void test_cxx_and_fortran_types(void)
{
    CHECK_TYPE(CXX_BOOL, 1);
    CHECK_TYPE(CXX_FLOAT_COMPLEX, 8);
    CHECK_TYPE(CXX_DOUBLE_COMPLEX, 16);
    CHECK_TYPE(CXX_LONG_DOUBLE_COMPLEX, 2 * sizeof(long double));
    CHECK_TYPE(LOGICAL, 4);
    CHECK_TYPE(INTEGER, 4);
    CHECK_TYPE(REAL, 4);
    CHECK_TYPE(COMPLEX, 8);
    CHECK_TYPE(DOUBLE_PRECISION, 8);
    CHECK_TYPE(DOUBLE_COMPLEX, 16);
    CHECK_TYPE(CHARACTER, 1);
    CHECK_TYPE(LOGICAL1, 1);
    CHECK_TYPE(LOGICAL2, 2);
    CHECK_TYPE(LOGICAL4, 4);
    CHECK_TYPE(LOGICAL8, 8);
    CHECK_TYPE(LOGICAL16, 16);
    CHECK_TYPE(INTEGER1, 1);
    CHECK_TYPE(INTEGER2, 2);
    CHECK_TYPE(INTEGER4, 4);
    CHECK_TYPE(INTEGER8, 8);
    CHECK_TYPE(INTEGER16, 16);
    CHECK_TYPE(REAL2, 2);
    CHECK_TYPE(REAL4, 4);
    CHECK_TYPE(REAL8, 8);
    CHECK_TYPE(REAL16, 16);
    CHECK_TYPE(COMPLEX4, 4);
    CHECK_TYPE(COMPLEX8, 8);
    CHECK_TYPE(COMPLEX16, 16);
    CHECK_TYPE(COMPLEX32, 32);
}

#define CHECK_PAIR(id, value, index)                                         \
    do {                                                                     \
        struct pair {                                                        \
            value v;                                                         \
            index i;                                                         \
        };                                                                   \
        CHECK_TYPE(id, sizeof(value) + sizeof(index));                       \
        struct dtype *t = dtype_from_handle(MPI_##id);                       \
        EXPECT_EQ(t->extent, sizeof(struct pair));                           \
        EXPECT_EQ(t->true_extent, offsetof(struct pair, i) + sizeof(index)); \
        EXPECT_EQ(t->align, _Alignof(struct pair));                          \
        EXPECT_EQ(t->dense, offsetof(struct pair, i) == sizeof(value));      \
        EXPECT_EQ(t->contiguous, t->size == t->extent);                      \
    } while (0)

static void test_pair_types(void)
{
    CHECK_PAIR(FLOAT_INT, float, int);
    CHECK_PAIR(DOUBLE_INT, double, int);
    CHECK_PAIR(LONG_INT, long, int);
    CHECK_PAIR(2INT, int, int);
    CHECK_PAIR(SHORT_INT, short, int);
    CHECK_PAIR(LONG_DOUBLE_INT, long double, int);
    CHECK_PAIR(2REAL, float, float);
    CHECK_PAIR(2DOUBLE_PRECISION, double, double);
    CHECK_PAIR(2INTEGER, int, int);
}

static void test_other_handles_are_no_types(void)
{
    int found = 0;
    for (uint32_t h = 0; h <= HANDLE_PREDEFINED_MAX; h++) {
        struct dtype *t = dt_predefined(h);
        found += t != NULL;
        if (t)
            EXPECT_EQ(t->handle, h);
    }
    EXPECT_EQ(found, KIND_LIMIT - 1);
    EXPECT(dtype_from_handle(MPI_DATATYPE_NULL) == NULL);
    EXPECT(dtype_from_handle((MPI_Datatype)MPI_COMM_WORLD) == NULL);
    EXPECT(dtype_from_handle(NULL) == NULL);
}

int main(void)
{
    TEST_RUN(test_c_types);
    TEST_RUN(test_cxx_and_fortran_types);
    TEST_RUN(test_pair_types);
    TEST_RUN(test_other_handles_are_no_types);
    return test_result();
}
