/* sessions_and_world.c: a session that begins before MPI_Init and ends after MPI_Finalize, used together
 * with the world model.
 *
 * ranks: 1 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

int main(int argc, char **argv)
{
    MPI_Session s;
    MPI_Group g;
    MPI_Comm c;
    int result, sum = 0, flag;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
    mpitest_begin(&argc, &argv);
    MPI_Group_from_session_pset(s, "mpi://WORLD", &g);
    MPI_Comm_create_from_group(g, "beside", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &c);
    MPI_Group_free(&g);
    MPI_Comm_compare(c, MPI_COMM_WORLD, &result);
    EXPECT_EQ(result, MPI_CONGRUENT);
    int rc = mpitest_end();
    MPI_Finalized(&flag);
    MPI_Allreduce(&mpitest_rank, &sum, 1, MPI_INT, MPI_SUM, c); /* the session still works */
    if (!flag || sum != mpitest_size * (mpitest_size - 1) / 2)
        rc = 5;
    MPI_Comm_disconnect(&c);
    MPI_Session_finalize(&s);
    return rc;
}
