/* pipeline.c: blocks of numbers pass through the ranks, and each rank does its share of the work on every block.
 * While a rank works on a block, the next block is received and the previous one is sent, by nonblocking calls and
 * two alternating buffers. The work is the series of the exponential function by Horner's rule, one step for each
 * term.
 *
 *     mpicc pipeline.c -o pipeline -lm
 *     mpiexec -n 4 ./pipeline
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

enum { BLOCKS = 100, LENGTH = 1000, STEPS = 12 };

struct block {
    double x[LENGTH], y[LENGTH]; /* y approaches exp(x) from rank to rank */
};

/* Executes steps; step k of STEPS, STEPS - 1 ... 1: y becomes 1 + y x / k. */
static void do_steps(struct block *b, int from, int to)
{
    for (int k = from; k > to; k--)
        for (int i = 0; i < LENGTH; i++)
            b->y[i] = 1 + b->y[i] * b->x[i] / k;
}

/* Fills a block on the first rank: points between 0 and 1. */
static void fill_block(struct block *b, int number)
{
    for (int i = 0; i < LENGTH; i++) {
        b->x[i] = (number * LENGTH + i + 0.5) / (BLOCKS * LENGTH);
        b->y[i] = 1;
    }
}

/* Checks the result at the last stage. */
static void check_block(const struct block *b, double *sum, double *worst)
{
    for (int i = 0; i < LENGTH; i++) {
        *sum += b->y[i];
        *worst = fmax(*worst, fabs(b->y[i] - exp(b->x[i])));
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    double sum = 0, worst = 0;
    static struct block blocks[2];
    MPI_Request in[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, out[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    /* The first and last rank communicate with MPI_PROC_NULL, which transfers no data. */
    const int before = rank > 0 ? rank - 1 : MPI_PROC_NULL,
              after = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    /* This rank does the steps `from`, from - 1 ... to + 1. */
    const int from = STEPS - STEPS * rank / size, to = STEPS - STEPS * (rank + 1) / size;

    MPI_Irecv(&blocks[0], 2 * LENGTH, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, &in[0]);
    for (int n = 0; n < BLOCKS; n++) {
        const int here = n % 2, other = 1 - here;
        /* The buffer of the next block is free when the block before it has been sent. */
        if (n + 1 < BLOCKS) {
            MPI_Wait(&out[other], MPI_STATUS_IGNORE);
            MPI_Irecv(&blocks[other], 2 * LENGTH, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, &in[other]);
        }
        MPI_Wait(&in[here], MPI_STATUS_IGNORE);
        if (rank == 0)
            fill_block(&blocks[here], n);
        do_steps(&blocks[here], from, to);
        if (rank == size - 1)
            check_block(&blocks[here], &sum, &worst);
        MPI_Isend(&blocks[here], 2 * LENGTH, MPI_DOUBLE, after, 0, MPI_COMM_WORLD, &out[here]);
    }
    MPI_Waitall(2, out, MPI_STATUSES_IGNORE);

    if (rank == size - 1)
        printf("%d blocks through %d steps: mean of exp %.6f, largest error %.1e\n", BLOCKS, STEPS,
               sum / (BLOCKS * LENGTH), worst);
    MPI_Finalize();
    return 0;
}
