/* iotest.h: the framework of the file tests: a file name that all ranks of the job use and no other job,
 * and checked opening of the file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IOTEST_H
#define FP_IOTEST_H

#include <unistd.h>

#include "../mpitest.h"

static char iotest_name[512];

/* Starts the test and returns the name of a file in the working folder, which iotest_end removes if a test
 * left it. */
static inline const char *iotest_begin(int *argc, char ***argv)
{
    int number = (int)getpid();
    mpitest_begin(argc, argv);
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(iotest_name, sizeof(iotest_name), "iotest-%d.tmp", number);
    return iotest_name;
}

static inline int iotest_end(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0)
        unlink(iotest_name);
    return mpitest_end();
}

static inline int get_count(MPI_Status *status, MPI_Datatype type)
{
    int n = -1;
    MPI_Get_count(status, type, &n);
    return n;
}

static inline int iotest_one_node(void)
{
    MPI_Comm node;
    int n;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &n);
    MPI_Comm_free(&node);
    return n == mpitest_size;
}

/* Opens the file for reading and writing, creates it if necessary, and must succeed. */
static inline MPI_File iotest_open(MPI_Comm comm, MPI_Info info)
{
    MPI_File f = MPI_FILE_NULL;
    EXPECT_EQ(MPI_File_open(comm, iotest_name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &f), MPI_SUCCESS);
    return f;
}

#endif
