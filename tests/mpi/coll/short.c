/* short.c: calls of a few bytes, which ranks on one node do without describing them first. Every rank chooses by
 * its own arguments whether it can: here ranks differ. Some describe their data by a type with gaps, which
 * takes the general path, while others describe the same data by plain bytes; some are in place. Both paths must agree on steps and
 * places, below, at and above every limit of length.
 *
 * ranks: 3 2 5
 * also: FISHPLATE_COLL=bcast=binomial,reduce=binomial
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "mpitest.h"

#define MOST 8300
static unsigned char in[16 * MOST], out[16 * MOST], wide[2 * MOST];

/* The byte at place i of the data that rank `from` has for rank `to`. */
static unsigned char short_value(int from, int to, int i, int call)
{
    return (unsigned char)(from * 31 + to * 17 + i * 7 + call);
}

/* Every second byte: general. Otherwise a row of bytes. */
static MPI_Datatype gaps;
static bool short_general(int rank, int call)
{
    return ((call >> rank) & 3) == 1;
}

static void short_fill(int to, int n, int call)
{
    for (int i = 0; i < n; i++)
        in[to * n + i] = short_value(mpitest_rank, to, i, call);
}

static void short_expect(const unsigned char *block, int from, int to, int n, int call)
{
    for (int i = 0; i < n; i++)
        if (block[i] != short_value(from, to, i, call)) {
            EXPECT_EQ(block[i], short_value(from, to, i, call));
            return;
        }
}

static void test_spread(const unsigned char *from, int n)
{
    for (int i = 0; i < n; i++)
        wide[2 * i] = from[i];
}

static void short_collect(unsigned char *to, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = wide[2 * i];
}

/* One element of a type that ends behind its bytes: general too, but in one piece, so that others could read it where it is. */
static void bcast_long(int root, int n, int call)
{
    MPI_Datatype row, padded;
    MPI_Type_contiguous(n, MPI_BYTE, &row);
    MPI_Type_create_resized(row, 0, n + 8, &padded);
    MPI_Type_commit(&padded);
    for (int i = 0; i < n; i++)
        out[i] = short_value(root, 0, i, call);
    MPI_Bcast(out, 1, padded, root, MPI_COMM_WORLD);
    MPI_Type_free(&padded);
    MPI_Type_free(&row);
}

static void test_bcast(int root, int n, int call)
{
    const bool odd = short_general(mpitest_rank, call);
    if (mpitest_rank == root && call % 5 == 0) {
        bcast_long(root, n, call);
        return;
    }
    if (mpitest_rank == root)
        for (int i = 0; i < n; i++)
            out[i] = short_value(root, 0, i, call);
    test_spread(out, n);
    MPI_Bcast(odd ? wide : out, n, odd ? gaps : MPI_BYTE, root, MPI_COMM_WORLD);
    if (odd)
        short_collect(out, n);
    short_expect(out, root, 0, n, call);
}

static void test_gather(int root, int n, int call)
{
    const bool odd = short_general(mpitest_rank, call), place = mpitest_rank == root && call % 3 == 0;
    short_fill(0, n, call);
    test_spread(in, n);
    if (place)
        memcpy(out + root * n, in, (size_t)n);
    MPI_Gather(place ? MPI_IN_PLACE
               : odd ? wide
                     : in,
               n, odd ? gaps : MPI_BYTE, out, n, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int r = 0; mpitest_rank == root && r < mpitest_size; r++)
        short_expect(out + r * n, r, 0, n, call);
}

static void test_scatter(int root, int n, int call)
{
    const bool odd = short_general(mpitest_rank, call), place = mpitest_rank == root && call % 3 == 0;
    for (int r = 0; r < mpitest_size; r++)
        short_fill(r, n, call);
    MPI_Scatter(in, n, MPI_BYTE,
                place ? MPI_IN_PLACE
                : odd ? wide
                      : out,
                n, odd ? gaps : MPI_BYTE, root, MPI_COMM_WORLD);
    if (odd)
        short_collect(out, n);
    if (!place)
        short_expect(out, root, mpitest_rank, n, call);
}

static void test_allgather(int n, int call)
{
    const bool odd = short_general(mpitest_rank, call), place = call % 3 == 0;
    short_fill(0, n, call);
    test_spread(in, n);
    memcpy(out + mpitest_rank * n, in, (size_t)n);
    MPI_Allgather(place ? MPI_IN_PLACE
                  : odd ? wide
                        : in,
                  n, odd ? gaps : MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < mpitest_size; r++)
        short_expect(out + r * n, r, 0, n, call);
}

static void test_alltoall(int n, int call)
{
    const bool place = call % 3 == 0;
    for (int r = 0; r < mpitest_size; r++)
        short_fill(r, n, call);
    memcpy(out, in, (size_t)(n * mpitest_size));
    MPI_Alltoall(place ? MPI_IN_PLACE : in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < mpitest_size; r++)
        short_expect(out + r * n, r, mpitest_rank, n, call);
}

/* Makes the order of operands visible: the first one is the result. */
static void first_of(void *left, void *right, int *n, MPI_Datatype *type)
{
    (void)type;
    memcpy(right, left, (size_t)*n);
}

static MPI_Op ordered;

static unsigned char short_reduced(int i, int call, bool by_user)
{
    unsigned char sum = 0;
    for (int r = 0; r < (by_user ? 1 : mpitest_size); r++)
        sum = (unsigned char)(sum + short_value(r, 0, i, call));
    return sum;
}

static void test_reduce(int root, int n, int call, bool all)
{
    const bool by_user = call % 4 == 2, place = call % 3 == 0 && (all || mpitest_rank == root);
    MPI_Op op = by_user ? ordered : MPI_SUM;
    short_fill(0, n, call);
    memcpy(out, in, (size_t)n);
    if (all)
        MPI_Allreduce(place ? MPI_IN_PLACE : in, out, n, MPI_UINT8_T, op, MPI_COMM_WORLD);
    else
        MPI_Reduce(place ? MPI_IN_PLACE : in, out, n, MPI_UINT8_T, op, root, MPI_COMM_WORLD);
    for (int i = 0; (all || mpitest_rank == root) && i < n; i++)
        EXPECT_EQ(out[i], short_reduced(i, call, by_user));
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1,   2,  3,    4,    7,    8,    12,   16,   24,   27,   28,
                                  29,  33, 48,   49,   55,   56,   57,   64,   111,  112,  113,
                                  128, 0,  1024, 1025, 2048, 2731, 4096, 4097, 7169, 8192, 8193};
    const int count = (int)(sizeof(lengths) / sizeof(lengths[0]));
    MPI_Datatype one;
    mpitest_begin(&argc, &argv);
    MPI_Op_create(first_of, 0, &ordered);
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
