/* mpitest.h: the framework of the MPI test programs: checks that print rank, file and line on failure, and
 * the exit status of the program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_MPITEST_H
#define FP_MPITEST_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int mpitest_failures;
static int mpitest_rank, mpitest_size;

#define EXPECT(cond)                                                                                      \
    do {                                                                                                  \
        if (!(cond)) {                                                                                    \
            if (mpitest_failures++ < 20)                                                                  \
                fprintf(stderr, "rank %d: %s:%d: in %s: expected %s\n", mpitest_rank, __FILE__, __LINE__, \
                        __func__, #cond);                                                                 \
        }                                                                                                 \
    } while (0)

#define EXPECT_EQ(actual, wanted)                                                                         \
    do {                                                                                                  \
        long long mt_a = (long long)(actual), mt_w = (long long)(wanted);                                 \
        if (mt_a != mt_w && mpitest_failures++ < 20)                                                      \
            fprintf(stderr, "rank %d: %s:%d: in %s: %s is %lld, expected %lld\n", mpitest_rank, __FILE__, \
                    __LINE__, __func__, #actual, mt_a, mt_w);                                             \
    } while (0)

static inline int get_error_class(int code)
{
    int errclass = code;
    MPI_Error_class(code, &errclass);
    return errclass;
}

#define EXPECT_CLASS(call, wanted) EXPECT_EQ(get_error_class(call), wanted)

static inline void mpitest_begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpitest_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpitest_size);
}

/* Collects the failures of all ranks; the exit status of every rank is non-zero if any rank failed. */
static inline int mpitest_end(void)
{
    int total = 0;
    MPI_Allreduce(&mpitest_failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return total || mpitest_failures ? 1 : 0;
}

#endif
