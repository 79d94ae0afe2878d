/* short.c: calls of a few bytes, which ranks on one node execute by a short path without a schedule. Every
 * rank chooses the path by its own arguments, and here the ranks differ: some use a type with gaps, which
 * takes the general path, while others use contiguous bytes; some calls are in place. Both paths must
 * agree on steps and offsets, for lengths below, at and above every limit.
 *
 * ranks: 3 2 5
 * also: FISHPLATE_COLL=bcast=binomial,reduce=binomial
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "mpitest.h"

#define BYTES_MAX 8300
static unsigned char in[16 * BYTES_MAX], out[16 * BYTES_MAX], wide[2 * BYTES_MAX];

/* Byte i of the data that rank `from` has for rank `to`. */
static unsigned char data_byte(int from, int to, int i, int call)
{
    return (unsigned char)(from * 31 + to * 17 + i * 7 + call);
}

/* A type of every second byte, which takes the general path. */
static MPI_Datatype gaps;
static bool has_gaps(int rank, int call)
{
    return ((call >> rank) & 3) == 1;
}

static void fill_input(int to, int n, int call)
{
    for (int i = 0; i < n; i++)
        in[to * n + i] = data_byte(mpitest_rank, to, i, call);
}

static void expect_data(const unsigned char *block, int from, int to, int n, int call)
{
    for (int i = 0; i < n; i++)
        if (block[i] != data_byte(from, to, i, call)) {
            EXPECT_EQ(block[i], data_byte(from, to, i, call));
            return;
        }
}

static void spread_bytes(const unsigned char *from, int n)
{
    for (int i = 0; i < n; i++)
        wide[2 * i] = from[i];
}

static void collect_bytes(unsigned char *to, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = wide[2 * i];
}

/* A broadcast of one element whose extent exceeds its bytes: it takes the general path, but is contiguous,
 * so others can read it in place. */
static void test_bcast_padded(int root, int n, int call)
{
    MPI_Datatype row, padded;
    MPI_Type_contiguous(n, MPI_BYTE, &row);
    MPI_Type_create_resized(row, 0, n + 8, &padded);
    MPI_Type_commit(&padded);
    for (int i = 0; i < n; i++)
        out[i] = data_byte(root, 0, i, call);
    MPI_Bcast(out, 1, padded, root, MPI_COMM_WORLD);
    MPI_Type_free(&padded);
    MPI_Type_free(&row);
}

static void test_bcast(int root, int n, int call)
{
    const bool odd = has_gaps(mpitest_rank, call);
    if (mpitest_rank == root && call % 5 == 0) {
        test_bcast_padded(root, n, call);
        return;
    }
    if (mpitest_rank == root)
        for (int i = 0; i < n; i++)
            out[i] = data_byte(root, 0, i, call);
    spread_bytes(out, n);
    MPI_Bcast(odd ? wide : out, n, odd ? gaps : MPI_BYTE, root, MPI_COMM_WORLD);
    if (odd)
        collect_bytes(out, n);
    expect_data(out, root, 0, n, call);
}

static void test_gather(int root, int n, int call)
{
    const bool odd = has_gaps(mpitest_rank, call), place = mpitest_rank == root && call % 3 == 0;
    fill_input(0, n, call);
    spread_bytes(in, n);
    if (place)
        memcpy(out + root * n, in, (size_t)n);
    MPI_Gather(place ? MPI_IN_PLACE
               : odd ? wide
                     : in,
               n, odd ? gaps : MPI_BYTE, out, n, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int r = 0; mpitest_rank == root && r < mpitest_size; r++)
        expect_data(out + r * n, r, 0, n, call);
}

static void test_scatter(int root, int n, int call)
{
    const bool odd = has_gaps(mpitest_rank, call), place = mpitest_rank == root && call % 3 == 0;
    for (int r = 0; r < mpitest_size; r++)
        fill_input(r, n, call);
    MPI_Scatter(in, n, MPI_BYTE,
                place ? MPI_IN_PLACE
                : odd ? wide
                      : out,
                n, odd ? gaps : MPI_BYTE, root, MPI_COMM_WORLD);
    if (odd)
        collect_bytes(out, n);
    if (!place)
        expect_data(out, root, mpitest_rank, n, call);
}

static void test_allgather(int n, int call)
{
    const bool odd = has_gaps(mpitest_rank, call), place = call % 3 == 0;
    fill_input(0, n, call);
    spread_bytes(in, n);
    memcpy(out + mpitest_rank * n, in, (size_t)n);
    MPI_Allgather(place ? MPI_IN_PLACE
                  : odd ? wide
                        : in,
                  n, odd ? gaps : MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < mpitest_size; r++)
        expect_data(out + r * n, r, 0, n, call);
}

static void test_alltoall(int n, int call)
{
    const bool place = call % 3 == 0;
    for (int r = 0; r < mpitest_size; r++)
        fill_input(r, n, call);
    memcpy(out, in, (size_t)(n * mpitest_size));
    MPI_Alltoall(place ? MPI_IN_PLACE : in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < mpitest_size; r++)
        expect_data(out + r * n, r, mpitest_rank, n, call);
}

/* An operator whose result is the first operand, so that the order of operands matters. */
static void keep_left_operand(void *left, void *right, int *n, MPI_Datatype *type)
{
    (void)type;
    memcpy(right, left, (size_t)*n);
}

static MPI_Op ordered;

static unsigned char expected_reduction(int i, int call, bool by_user)
{
    unsigned char sum = 0;
    for (int r = 0; r < (by_user ? 1 : mpitest_size); r++)
        sum = (unsigned char)(sum + data_byte(r, 0, i, call));
    return sum;
}

static void test_reduce(int root, int n, int call, bool all)
{
    const bool by_user = call % 4 == 2, place = call % 3 == 0 && (all || mpitest_rank == root);
    MPI_Op op = by_user ? ordered : MPI_SUM;
    fill_input(0, n, call);
    memcpy(out, in, (size_t)n);
    if (all)
        MPI_Allreduce(place ? MPI_IN_PLACE : in, out, n, MPI_UINT8_T, op, MPI_COMM_WORLD);
    else
        MPI_Reduce(place ? MPI_IN_PLACE : in, out, n, MPI_UINT8_T, op, root, MPI_COMM_WORLD);
    for (int i = 0; (all || mpitest_rank == root) && i < n; i++)
        EXPECT_EQ(out[i], expected_reduction(i, call, by_user));
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1,   2,  3,    4,    7,    8,    12,   16,   24,   27,   28,
                                  29,  33, 48,   49,   55,   56,   57,   64,   111,  112,  113,
                                  128, 0,  1024, 1025, 2048, 2731, 4096, 4097, 7169, 8192, 8193};
    const int count = (int)(sizeof(lengths) / sizeof(lengths[0]));
    MPI_Datatype one;
    mpitest_begin(&argc, &argv);
    MPI_Op_create(keep_left_operand, 0, &ordered);
    MPI_Type_create_resized(MPI_BYTE, 0, 2, &one);
    MPI_Type_dup(one, &gaps);
    MPI_Type_commit(&gaps);
    for (int call = 0; call < 40 * count; call++) {
        const int n = lengths[call % count], root = call / count % mpitest_size;
        switch (call / count % 8) {
        case 0:
            test_bcast(root, n, call);
            break;
        case 1:
            test_gather(root, n, call);
            break;
        case 2:
            test_scatter(root, n, call);
            break;
        case 3:
            test_allgather(n, call);
            break;
        case 4:
            test_alltoall(n, call);
            break;
        case 5:
            test_reduce(root, n, call, false);
            break;
        case 6:
            test_reduce(0, n, call, true);
            break;
        default:
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    MPI_Op_free(&ordered);
    MPI_Type_free(&gaps);
    MPI_Type_free(&one);
    return mpitest_end();
}
