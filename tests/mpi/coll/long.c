/* long.c: collectives whose data needs many steps of the node's shared memory, by copying and by reading
 * the owner's memory, for all powers of two up to 16 MiB: a call with exactly as many steps as there are
 * flags once deadlocked.
 *
 * ranks: 3 2 4
 * nodes: no
 * also: FISHPLATE_COLL=copy=read
 * also: FISHPLATE_COLL=copy=split
 * also: FISHPLATE_COLL=copy=slots
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

#include <stdint.h>

enum { LARGEST = 16 << 20, ROUNDS = 3 };

static uint32_t *in, *out;

static uint32_t element_value(int rank, size_t i)
{
    return (uint32_t)(rank + 1) * 2654435761u + (uint32_t)i;
}

static void fill_input(size_t n)
{
    for (size_t i = 0; i < n; i++)
        in[i] = element_value(mpitest_rank, i);
    memset(out, 0xff, n * sizeof(*out));
}

/* The next position to check: positions are far apart and include the first and the last one. */
static size_t get_next_checked_position(size_t i, size_t n)
{
    return i + 1 == n ? n : i + 509 < n ? i + 509 : n - 1;
}

static void check_allreduce(size_t n)
{
    fill_input(n);
    MPI_Allreduce(in, out, (int)n, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < n; i = get_next_checked_position(i, n)) {
        uint32_t sum = 0;
        for (int r = 0; r < mpitest_size; r++)
            sum += element_value(r, i);
        EXPECT(out[i] == sum);
    }
}

static void check_bcast(size_t n, int root)
{
    fill_input(n);
    MPI_Bcast(in, (int)n, MPI_UINT32_T, root, MPI_COMM_WORLD);
    for (size_t i = 0; i < n; i = get_next_checked_position(i, n))
        EXPECT(in[i] == element_value(root, i));
}

/* Tests reductions in which the ranks that only send use all flags in one call. After the preceding barrier
 * some steps of earlier calls are not reported as done yet. */
static void check_reduce(size_t n, int root)
{
    fill_input(n);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(in, out, (int)n, MPI_UINT32_T, MPI_SUM, root, MPI_COMM_WORLD);
    for (size_t i = 0; mpitest_rank == root && i < n; i = get_next_checked_position(i, n)) {
        uint32_t sum = 0;
        for (int r = 0; r < mpitest_size; r++)
            sum += element_value(r, i);
        EXPECT(out[i] == sum);
    }
}

static void check_gather(size_t n, int root)
{
    const size_t block = n / (size_t)mpitest_size;
    fill_input(n);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Gather(in, (int)block, MPI_UINT32_T, out, (int)block, MPI_UINT32_T, root, MPI_COMM_WORLD);
    for (int r = 0; mpitest_rank == root && r < mpitest_size; r++)
        for (size_t i = 0; i < block; i = get_next_checked_position(i, block))
            EXPECT(out[(size_t)r * block + i] == element_value(r, i));
}

/* Tests an allgather or alltoall with n elements in all, one block per rank. */
static void check_blocks(size_t n, int alltoall)
{
    const size_t block = n / (size_t)mpitest_size;
    fill_input(n);
    if (alltoall)
        MPI_Alltoall(in, (int)block, MPI_UINT32_T, out, (int)block, MPI_UINT32_T, MPI_COMM_WORLD);
    else
        MPI_Allgather(in, (int)block, MPI_UINT32_T, out, (int)block, MPI_UINT32_T, MPI_COMM_WORLD);
    for (int r = 0; r < mpitest_size; r++)
        for (size_t i = 0; i < block; i = get_next_checked_position(i, block))
            EXPECT(out[(size_t)r * block + i] ==
                   element_value(r, (alltoall ? (size_t)mpitest_rank * block : 0) + i));
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    in = malloc(LARGEST);
    out = malloc(LARGEST);
    for (size_t bytes = 4096; bytes <= LARGEST; bytes *= 2)
        for (int round = 0; round < ROUNDS; round++) {
            const size_t n = bytes / sizeof(uint32_t);
            check_allreduce(n);
            check_bcast(n, round % mpitest_size);
            check_reduce(n, round % mpitest_size);
            check_gather(n, round % mpitest_size);
            check_blocks(n, 0);
            check_blocks(n, 1);
        }
    free(in);
    free(out);
    return mpitest_end();
}
