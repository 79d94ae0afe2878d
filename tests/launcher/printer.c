/* printer.c: every rank prints a line and passes a barrier; then rank 0 ends the job by the failure that its
 * argument names. tests/launcher/output.sh checks the lines.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void end_job(const char *how)
{
    static volatile int *nowhere;
    if (strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(how, "error") == 0)
        MPI_Send(NULL, 1, MPI_INT, 1 << 20, 0, MPI_COMM_WORLD);
    if (strcmp(how, "crash") == 0)
        *nowhere = 1;
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    exit(4);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d was here\n", rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        end_job(argc > 1 ? argv[1] : "");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
