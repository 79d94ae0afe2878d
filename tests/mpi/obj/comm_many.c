/* comm_many.c: context ids are reused: far more communicators one after the other than there are ids,
 * thousands of communicators at once, and an error when no id is left.
 *
 * ranks: 1 2 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum { AT_ONCE = 5000 };

int main(int argc, char **argv)
{
    static MPI_Comm c[AT_ONCE];
    mpitest_begin(&argc, &argv);
    for (int i = 0; i < 6000; i++) {
        MPI_Comm_dup(MPI_COMM_SELF, &c[0]);
        MPI_Comm_free(&c[0]);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int n = 0, rc = MPI_SUCCESS;
    while (n < AT_ONCE && (rc = MPI_Comm_dup(MPI_COMM_WORLD, &c[n])) == MPI_SUCCESS)
        n++;
    EXPECT_EQ(rc, MPI_ERR_OTHER);
    EXPECT(n > 4000);
    for (int i = 0; i < n; i++)
        MPI_Comm_free(&c[i]);
    EXPECT_EQ(MPI_Comm_dup(MPI_COMM_WORLD, &c[0]), MPI_SUCCESS);
    MPI_Comm_free(&c[0]);
    return mpitest_end();
}
