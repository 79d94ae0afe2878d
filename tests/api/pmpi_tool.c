/* pmpi_tool.c: a minimal profiling tool: it replaces MPI_Comm_rank and MPI_Finalize, counts calls, and
 * calls the library's PMPI functions. Used preloaded and linked into a program.
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
