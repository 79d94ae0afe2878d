/* fatal.c: a job whose program sets no error handler ends when a rank dies, although the job could continue.
 *
 * ranks: 4
 * mpiexec: -enable-recovery
 * expect: ended the job with code 1: .*MPIX_ERR_PROC_FAILED.* MPI_Barrier failed on MPI_COMM_WORLD
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "mpitest.h"

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    if (mpitest_rank == 3)
        raise(SIGKILL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
