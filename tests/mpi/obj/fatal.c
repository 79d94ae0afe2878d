/* fatal.c: the default error handler ends the job.
 *
 * ranks: 1 2
 * expect: ended the job with code 6: dest is 999.* MPI_Send failed on MPI_COMM_WORLD
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

int main(int argc, char **argv)
{
    int x = 0;
    mpitest_begin(&argc, &argv);
    MPI_Send(&x, 1, MPI_INT, 999, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0; /* not reached */
}
