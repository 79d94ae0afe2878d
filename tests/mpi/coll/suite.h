/* suite.h: every blocking collective, over lengths that reach each algorithm. Programs that include it differ
 * in the algorithms that their environment selects.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "data_movement.h"
#include "reduce.h"

static void run_all_collectives(MPI_Comm comm)
{
    static const long lengths[] = {0, 6, 12, 600, 12000};
    static const long counts[] = {0, 1, 3, 17, 1000, 9001};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        MPI_Barrier(comm);
        test_all_data_movement(comm, &layouts[PLAIN], &layouts[PLAIN], lengths[i]);
        test_all_data_movement(comm, &layouts[PLAIN], &layouts[TRIPLE], lengths[i]);
        test_all_data_movement(comm, &layouts[STRIDED], &layouts[PLAIN], lengths[i]);
        test_all_data_movement(comm, &layouts[SHIFTED], &layouts[STRIDED], lengths[i]);
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        MPI_Barrier(comm);
        test_all_reductions(comm, counts[i]);
    }
}

int main(int argc, char **argv)
{
#ifdef FORCED
    setenv("FISHPLATE_COLL", FORCED, 1);
#endif
    mpitest_begin(&argc, &argv);
    layouts_create();
    run_all_collectives(MPI_COMM_WORLD);
    MPI_Comm other;
    MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank % 2, -mpitest_rank, &other);
    run_all_collectives(other);
    MPI_Comm_free(&other);
    layouts_free();
    return mpitest_end();
}
