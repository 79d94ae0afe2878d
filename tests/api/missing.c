/* missing.c: calls functions that are not there, with error handlers that return. tests/api/missing.sh reads what is
 * said about it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>

#include "expect.h"

int main(void)
{
    MPI_Comm children = MPI_COMM_WORLD;
    int codes[1] = {0};
    char port[MPI_MAX_PORT_NAME];
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes),
              MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(children == MPI_COMM_NULL);
    EXPECT_EQ(MPI_Open_port(MPI_INFO_NULL, port), MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Barrier(MPI_COMM_WORLD); /* a process that has ended cannot keep the others from saying it again */
    MPI_Finalize();
    return expect_done();
}
