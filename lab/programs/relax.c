/* relax.c: a program with many barriers, for lab/barriers: red-black relaxation of a row of cells distributed
 * over the ranks. Ranks put their edge cells into the neighbours' memory, and a barrier after each colour
 * orders the puts. Prints the seconds of all sweeps and a checksum, which depends neither on the number of
 * ranks nor on the barrier.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct row {
    int rank, ranks;
    long cells, first; /* cells of this rank; number of its first cell */
    double *cell;      /* cell[0] and cell[cells + 1] are copies of the neighbours' cells */
    MPI_Win win;
};

static long relax_first_cell(long all, int ranks, int rank)
{
    return all * rank / ranks;
}

/* Puts the edge cells of this rank into the neighbours' copies. */
static void relax_put_edges(struct row *r, long cells_before)
{
    if (r->rank > 0)
        MPI_Put(&r->cell[1], 1, MPI_DOUBLE, r->rank - 1, cells_before + 1, 1, MPI_DOUBLE, r->win);
    if (r->rank + 1 < r->ranks)
        MPI_Put(&r->cell[r->cells], 1, MPI_DOUBLE, r->rank + 1, 0, 1, MPI_DOUBLE, r->win);
    MPI_Win_flush_all(r->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Relaxes the cells of one colour; both ends of the row are fixed. */
static void relax_cells(struct row *r, long all, long colour)
{
    for (long i = 1 + (r->first + colour) % 2; i <= r->cells; i += 2)
        if (r->first + i - 1 > 0 && r->first + i - 1 < all - 1)
            r->cell[i] = 0.5 * (r->cell[i - 1] + r->cell[i + 1]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const long all = argc > 1 ? atol(argv[1]) : 1024, sweeps = argc > 2 ? atol(argv[2]) : 1000;
    struct row r;
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
    r.first = relax_first_cell(all, r.ranks, r.rank);
    r.cells = relax_first_cell(all, r.ranks, r.rank + 1) - r.first;
    const long before = r.rank > 0 ? r.first - relax_first_cell(all, r.ranks, r.rank - 1) : 0;
    MPI_Win_allocate((MPI_Aint)sizeof(double) * (r.cells + 2), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &r.cell, &r.win);
    for (long i = 0; i < r.cells + 2; i++)
        r.cell[i] = (double)((r.first + i - 1) * 7919 % 1000);
    MPI_Win_lock_all(0, r.win);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (long s = 0; s < sweeps; s++)
        for (long colour = 0; colour < 2; colour++) {
            relax_cells(&r, all, colour);
            relax_put_edges(&r, before);
        }
    const double took = MPI_Wtime() - start;
    MPI_Win_unlock_all(r.win);
    double sum = 0, whole;
    for (long i = 1; i <= r.cells; i++)
        sum += r.cell[i] * (double)((r.first + i - 1) % 17);
    MPI_Reduce(&sum, &whole, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (r.rank == 0)
        printf("%.6f %.6e\n", took, whole);
    MPI_Win_free(&r.win);
    return MPI_Finalize();
}
