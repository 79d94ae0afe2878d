/* pmpi_tool.c: the smallest profiling tool: it takes the place of MPI_Comm_rank and MPI_Finalize, counts, and
 * calls the library under its other name. Preloaded, and linked into a program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>

static int calls;

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    calls++;
    return PMPI_Comm_rank(comm, rank);
}

int MPI_Finalize(void)
{
    printf("the tool saw %d calls\n", calls);
    fflush(stdout);
    return PMPI_Finalize();
}
