/* empty.c: the shortest MPI program; bench/peers measures its run time under mpiexec.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
