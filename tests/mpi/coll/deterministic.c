/* deterministic.c: with FISHPLATE_COLL=deterministic equal data gives bitwise equal results for any
 * placement of ranks on nodes, any order of arrival, and blocking and nonblocking calls. The numbers are
 * chosen so that the order of additions changes the result.
 *
 * ranks: 8
 * nodes: only 2
 * env: FISHPLATE_COLL=deterministic
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "mpitest.h"

enum { RUNS = 12, MEMBERS = 4, COUNT_MAX = 40000 };

static double in[COUNT_MAX], out[COUNT_MAX], first[COUNT_MAX];

static void fill_input(int member, int count)
{
    unsigned random_seed = 99u + 7u * (unsigned)member;
    for (int i = 0; i < count; i++) {
        random_seed = random_seed * 1103515245u + 12345u;
        in[i] = ((double)(random_seed >> 8) - 8e6) * (random_seed & 64 ? 1e-9 : 1e7);
    }
}

static void delay_randomly(unsigned *random_seed)
{
    *random_seed = *random_seed * 1103515245u + 12345u;
    for (volatile unsigned i = (*random_seed >> 16) % 5000; i > 0; i--)
        ;
}

/* Runs a reduction of `count` numbers on a communicator of MEMBERS ranks and returns the number of results
 * that rank 0 has. */
static int run_reduction(MPI_Comm comm, int kind, int count)
{
    MPI_Request request;
    switch (kind) {
    case 0:
        MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
        return count;
    case 1:
        MPI_Iallreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return count;
    case 2:
        MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 0, comm);
        return count;
    default:
        MPI_Reduce_scatter_block(in, out, count / MEMBERS, MPI_DOUBLE, MPI_SUM, comm);
        return count / MEMBERS;
    }
}

int main(int argc, char **argv)
{
    static const int counts[] = {4, 100, 3000, COUNT_MAX};
    MPI_Comm near, far;
    unsigned random_seed;
    mpitest_begin(&argc, &argv);
    random_seed = (unsigned)mpitest_rank;
    /* Rank 0 compares the results of two communicators: the four ranks of its node, and two ranks of each
     * node. */
    MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank / MEMBERS, mpitest_rank, &near);
    MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank / 2 % 2, mpitest_rank, &far);
    for (int kind = 0; kind < 4; kind++)
        for (int c = 0; c < 4; c++)
            for (int run = 0; run < RUNS; run++) {
                MPI_Comm comm = run % 2 ? far : near;
                int me;
                MPI_Comm_rank(comm, &me);
                fill_input(me, counts[c]);
                delay_randomly(&random_seed);
                const int n = run_reduction(comm, kind == 1 && run < 2 ? 0 : kind, counts[c]);
                if (run == 0)
                    memcpy(first, out, (size_t)n * sizeof(double));
                if (mpitest_rank == 0 && memcmp(first, out, (size_t)n * sizeof(double)) != 0 &&
                    mpitest_failures++ < 10)
                    fprintf(stderr,
                            "rank %d: kind %d of %d numbers, run %d: other bits than in the first run\n",
                            mpitest_rank, kind, counts[c], run);
            }
    MPI_Comm_free(&near);
    MPI_Comm_free(&far);
    return mpitest_end();
}
