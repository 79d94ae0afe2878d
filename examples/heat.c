/* heat.c: heat spreads along a rod that is hot at one end. Each rank owns a part of the rod. In every step a rank
 * exchanges edge values with its neighbours; every some steps all ranks compute the largest change. This is the
 * usual pattern of a simulation.
 *
 *     mpicc heat.c -o heat -lm
 *     mpiexec -n 4 ./heat
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 48, STEPS = 20000, CHECK_EVERY = 100 };

/* The number of cells of rank r; the first ranks take the remainder. */
static int count_cells(int r, int size)
{
    return CELLS / size + (r < CELLS % size);
}

/* Exchanges edge values: t[0] and t[n + 1] belong to the neighbours; at the ends they are fixed. */
static void swap_edges(double *t, int n, int left, int right)
{
    MPI_Sendrecv(&t[1], 1, MPI_DOUBLE, left, 0, &t[n + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&t[n], 1, MPI_DOUBLE, right, 1, &t[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static double compute_step(const double *t, double *next, int n)
{
    double change = 0;
    for (int i = 1; i <= n; i++) {
        next[i] = t[i] + 0.5 * (t[i - 1] - 2 * t[i] + t[i + 1]);
        change = fmax(change, fabs(next[i] - t[i]));
    }
    return change;
}

int main(int argc, char **argv)
{
    int rank, size, steps = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    /* The ends of the rod have no neighbour: receiving from MPI_PROC_NULL does not change the fixed value. */
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    int n = count_cells(rank, size);
    double *t = calloc((size_t)n + 2, sizeof(*t)), *next = calloc((size_t)n + 2, sizeof(*next));
    if (!t || !next || n == 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0)
        t[0] = next[0] = 100;

    for (double worst = 1; steps < STEPS && worst > 1e-6;) {
        swap_edges(t, n, left, right);
        double change = compute_step(t, next, n);
        double *swap = t;
        t = next;
        next = swap;
        if (++steps % CHECK_EVERY == 0)
            MPI_Allreduce(&change, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }

    double sum = 0, total = 0;
    for (int i = 1; i <= n; i++)
        sum += t[i];
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("settled after %d steps; mean temperature %.2f\n", steps, total / CELLS);
    free(t);
    free(next);
    MPI_Finalize();
    return 0;
}
