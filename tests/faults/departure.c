/* departure.c: a rank dies in the agreement of MPI_Finalize before it has forwarded the decision (kill point
 * agree_sending). A rank below it in the tree does not get the decision, since the ranks that have the decision may
 * have left MPI already. No rank may wait for ever. Each rank prints a line after MPI_Finalize.
 *
 *   faults_departure                the ranks of the job
 *   faults_departure spawn RANKS    the ranks of a job that one process spawns
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    int rank, size, mine = 1, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (argc > 2 && strcmp(argv[1], "spawn") == 0 && parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, atoi(argv[2]), MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                       MPI_ERRCODES_IGNORE);
        MPI_Comm_disconnect(&children);
    }
    if (parent != MPI_COMM_NULL)
        MPI_Comm_disconnect(&parent);
    for (int other = 0; other < size; other++) /* every rank has a connection to every other rank */
        MPI_Sendrecv(&mine, 1, MPI_INT, other, 0, &sum, 1, MPI_INT, other, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    MPI_Finalize();
    printf("rank %d of %d left MPI_Finalize\n", rank, size);
    return 0;
}
