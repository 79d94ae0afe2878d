/* nocheck.c: FISHPLATE_CHECK=0 disables the argument checks, but not the checks of handles.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdlib.h>

#include "expect.h"

int main(void)
{
    const char *setting = getenv("FISHPLATE_CHECK");
    int checked = !setting || atoi(setting) != 0;
    char byte;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Recv(&byte, 1, MPI_BYTE, MPI_PROC_NULL, -7, MPI_COMM_SELF, MPI_STATUS_IGNORE),
              checked ? MPI_ERR_TAG : MPI_SUCCESS);
    EXPECT_EQ(MPI_Recv(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_NULL, MPI_STATUS_IGNORE), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Recv(&byte, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    MPI_Finalize();
    return expect_done();
}
