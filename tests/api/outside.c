/* outside.c: makes an MPI call before MPI_Init or after MPI_Finalize, selected by its argument; outside.sh
 * checks the result.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *when = argc > 1 ? argv[1] : "";
    int value = 0;
    if (strcmp(when, "before") == 0)
        MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (strcmp(when, "finalize") == 0)
        MPI_Finalize();
    MPI_Init(&argc, &argv);
    if (strcmp(when, "fatal") == 0)
        MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Finalize();
    if (strcmp(when, "twice") == 0)
        MPI_Finalize();
    if (strcmp(when, "after") == 0)
        MPI_Comm_size(MPI_COMM_WORLD, &value);
    return 0;
}
