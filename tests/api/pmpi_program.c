/* pmpi_program.c: a program for the profiling tool pmpi_tool.c: makes three calls of MPI_Comm_rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank = -1;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 3; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Finalize();
    return rank != 0;
}
