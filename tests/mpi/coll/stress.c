/* stress.c: consecutive small collectives of all kinds with ranks that arrive at random times and sleep at
 * once: slots are reused while other ranks still read, and no rank may sleep forever.
 *
 * ranks: 2 3 5 8
 * env: FISHPLATE_LAB=YIELDS=0 FISHPLATE_SPIN_US=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "mpitest.h"

#define LONG_VECTOR 3000

static long vector[LONG_VECTOR];

static void test_bcast(int root, long n, int round)
{
    for (long i = 0; i < n; i++)
        vector[i] = mpitest_rank == root ? round + i : -1;
    MPI_Bcast(vector, (int)n, MPI_LONG, root, MPI_COMM_WORLD);
    for (long i = 0; i < n; i++)
        EXPECT_EQ(vector[i], round + i);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    const long n = mpitest_size;
    srand((unsigned)mpitest_rank + 1);
    for (int round = 0; round < 6000; round++) {
        const int root = round % mpitest_size;
        long mine = mpitest_rank + round, sum = -1, want = n * (n - 1) / 2 + n * round, all[64];
        if (rand() % 50 == 0)
            usleep((useconds_t)(rand() % 300));
        switch (round * 7919 % 6) {
        case 0:
            MPI_Barrier(MPI_COMM_WORLD);
            break;
        case 1:
            test_bcast(root, 1, round);
            break;
        case 2:
            test_bcast(root, LONG_VECTOR, round);
            break;
        case 3:
            MPI_Reduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
            if (mpitest_rank == root)
                EXPECT_EQ(sum, want);
            break;
        case 4:
            MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
            EXPECT_EQ(sum, want);
            break;
        default:
            MPI_Allgather(&mine, 1, MPI_LONG, all, 1, MPI_LONG, MPI_COMM_WORLD);
            for (int r = 0; r < n; r++)
                EXPECT_EQ(all[r], r + round);
        }
    }
    return mpitest_end();
}
