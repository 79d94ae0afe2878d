/* missing.c: calls functions that are not there, with error handlers that return. tests/api/missing.sh reads what is
 * said about it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>

#include "expect.h"

int main(void)
{
    MPI_File file = (MPI_File)(void *)&file;
    MPI_Comm children = MPI_COMM_WORLD;
    MPI_Win win = (MPI_Win)(void *)&win;
    MPI_Request request = (MPI_Request)(void *)&request;
    int word = 0, codes[1] = {0};
    MPI_Init(NULL, NULL);
    /* Files return errors unless told otherwise, so a program that does not look would go on. */
    EXPECT_EQ(
        MPI_File_open(MPI_COMM_WORLD, "results", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file),
        MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(file == MPI_FILE_NULL);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(MPI_File_open(MPI_COMM_SELF, "mine", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
                  MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_EQ(MPI_File_iwrite(file, &word, 1, MPI_INT, &request), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(request == MPI_REQUEST_NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes),
              MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(children == MPI_COMM_NULL);
    EXPECT_EQ(MPI_Win_create(&word, sizeof(word), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
              MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(win == MPI_WIN_NULL);
    MPI_Barrier(MPI_COMM_WORLD); /* a process that has ended cannot keep the others from saying it again */
    MPI_Finalize();
    return expect_done();
}
