/* reduce.c: predefined and user operators through MPI_Allreduce and MPI_Reduce_local.
 *
 * ranks: 1 2 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

#define N 37

#define CHECK_TYPE(type, ctype)                                                                            \
    do {                                                                                                   \
        ctype in[N], sum[N], max[N], min[N];                                                               \
        for (int i = 0; i < N; i++)                                                                        \
            in[i] = (ctype)(i % 5 + mpitest_rank);                                                         \
        EXPECT_EQ(MPI_Allreduce(in, sum, N, type, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);                  \
        MPI_Allreduce(in, max, N, type, MPI_MAX, MPI_COMM_WORLD);                                          \
        MPI_Allreduce(in, min, N, type, MPI_MIN, MPI_COMM_WORLD);                                          \
        int p = mpitest_size, wrong = 0;                                                                   \
        for (int i = 0; i < N; i++)                                                                        \
            wrong += sum[i] != (ctype)(i % 5 * p + p * (p - 1) / 2) || max[i] != (ctype)(i % 5 + p - 1) || \
                     min[i] != (ctype)(i % 5);                                                             \
        EXPECT_EQ(wrong, 0);                                                                               \
    } while (0)

static void test_arithmetic(void)
{
    CHECK_TYPE(MPI_INT, int);
    CHECK_TYPE(MPI_LONG, long);
    CHECK_TYPE(MPI_SHORT, short);
    CHECK_TYPE(MPI_UNSIGNED, unsigned);
    CHECK_TYPE(MPI_UINT8_T, unsigned char);
    CHECK_TYPE(MPI_CHAR, char);
    CHECK_TYPE(MPI_INT64_T, long long);
    CHECK_TYPE(MPI_FLOAT, float);
    CHECK_TYPE(MPI_DOUBLE, double);
    CHECK_TYPE(MPI_LONG_DOUBLE, long double);
    CHECK_TYPE(MPI_AINT, MPI_Aint);
    CHECK_TYPE(MPI_COUNT, MPI_Count);
    CHECK_TYPE(MPI_INTEGER, int);
    CHECK_TYPE(MPI_DOUBLE_PRECISION, double);
}

static void test_logical_and_bitwise(void)
{
    int mine = 1 << mpitest_rank, all, truth = mpitest_rank == 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    EXPECT_EQ(all, (1 << mpitest_size) - 1);
    MPI_Allreduce(&truth, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    EXPECT_EQ(all, mpitest_size == 1);
    MPI_Allreduce(&truth, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    EXPECT_EQ(all, 1);
    MPI_Allreduce(&truth, &all, 1, MPI_INT, MPI_LXOR, MPI_COMM_WORLD);
    EXPECT_EQ(all, 1);
    unsigned char byte = (unsigned char)(0xf0 | mpitest_rank), out;
    MPI_Allreduce(&byte, &out, 1, MPI_BYTE, MPI_BAND, MPI_COMM_WORLD);
    EXPECT_EQ(out, 0xf0);
}

static void test_locations(void)
{
    struct {
        double v;
        int i;
    } in = {mpitest_rank % 2, mpitest_rank}, low, high;
    MPI_Allreduce(&in, &low, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
    MPI_Allreduce(&in, &high, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    EXPECT(low.v == 0 && low.i == 0);
    EXPECT(high.v == (mpitest_size > 1) && high.i == (mpitest_size > 1));
    struct {
        short v;
        int i;
    } shorts = {(short)-mpitest_rank, mpitest_rank}, least;
    MPI_Allreduce(&shorts, &least, 1, MPI_SHORT_INT, MPI_MINLOC, MPI_COMM_WORLD);
    EXPECT(least.v == 1 - mpitest_size && least.i == mpitest_size - 1);
}

/* The user function multiplies 2 x 2 matrices, which is associative and not commutative. It must receive the
 * derived type itself. */
static MPI_Datatype matrix;

static void multiply(void *in, void *inout, int *len, MPI_Datatype *type)
{
    EXPECT(*type == matrix);
    for (int k = 0; k < *len; k++) {
        long *a = (long *)in + 4 * k, *b = (long *)inout + 4 * k;
        long c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                     a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof(c));
    }
}

static void multiply_large(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
    int n = (int)*len;
    multiply(in, inout, &n, type);
}

static void test_user_operators(void)
{
    MPI_Op op[2];
    int commute;
    MPI_Type_contiguous(4, MPI_LONG, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(multiply, 0, &op[0]);
    MPI_Op_create_c(multiply_large, 0, &op[1]);
    MPI_Op_commutative(op[0], &commute);
    EXPECT_EQ(commute, 0);
    MPI_Op_commutative(MPI_SUM, &commute);
    EXPECT_EQ(commute, 1);
    MPI_Op_commutative(MPI_REPLACE, &commute);
    EXPECT_EQ(commute, 0);
    MPI_Op_commutative(MPI_NO_OP, &commute);
    EXPECT_EQ(commute, 0);
    long mine[4] = {1, mpitest_rank + 1, 1, 2}, wanted[4] = {1, 0, 0, 1}, got[4];
    for (int r = 0; r < mpitest_size; r++) {
        long b[4] = {1, r + 1, 1, 2};
        int one = 1;
        multiply(wanted, b, &one, &matrix);
        memcpy(wanted, b, sizeof(b));
    }
    for (int i = 0; i < 2; i++) {
        MPI_Allreduce(mine, got, 1, matrix, op[i], MPI_COMM_WORLD);
        EXPECT(memcmp(got, wanted, sizeof(got)) == 0);
        MPI_Op_free(&op[i]);
        EXPECT(op[i] == MPI_OP_NULL);
    }
    MPI_Type_free(&matrix);
}

static void test_local(void)
{
    int in[3] = {1, 2, 3}, inout[3] = {10, 20, 30};
    MPI_Reduce_local(in, inout, 3, MPI_INT, MPI_SUM);
    EXPECT(inout[0] == 11 && inout[1] == 22 && inout[2] == 33);
    MPI_Reduce_local_c(in, inout, 3, MPI_INT, MPI_MIN);
    EXPECT(inout[0] == 1 && inout[2] == 3);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    test_arithmetic();
    test_logical_and_bitwise();
    test_locations();
    test_user_operators();
    test_local();
    return mpitest_end();
}
