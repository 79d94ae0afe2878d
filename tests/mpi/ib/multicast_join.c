/* multicast_join.c: groups must be joined through librdmacm, as on a real InfiniBand fabric. Where that fails, broadcasts go by messages, and
 * every byte arrives all the same. Argument: joined, where it must not fail (tests/tools/multicast_join.sh has a librdmacm for that).
 *
 * ranks: 6
 * nodes: only 3
 * env: FISHPLATE_COLL=bcast=multicast SOFTIB_FABRIC=sm=1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "counters.h"

enum { COMMS = 3, CALLS = 12, MOST = 20000 };

static int multicast_join_broadcast(MPI_Comm c, int root, int n, int seed)
{
    static unsigned char data[MOST];
    int wrong = 0;
    for (int i = 0; i < n; i++)
        data[i] = mpitest_rank == root ? (unsigned char)(seed + i * 3) : 0;
    MPI_Bcast(data, n, MPI_BYTE, root, c);
    for (int i = 0; i < n; i++)
        wrong += data[i] != (unsigned char)(seed + i * 3);
    return wrong;
}

int main(int argc, char **argv)
{
    counters_begin();
    MPI_T_pvar_handle done = counter_open("coll_bcast_multicast");
    mpitest_begin(&argc, &argv);
    const int joined = argc > 1 && strcmp(argv[1], "joined") == 0;
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int call = 0; call < CALLS; call++)
            EXPECT_EQ(multicast_join_broadcast(comm, call % mpitest_size, call % 2 ? MOST : 64, i + call), 0);
        MPI_Comm_free(&comm);
    }
    EXPECT_EQ(counter(done), joined ? COMMS * CALLS : 0);
    counters_end();
    return mpitest_end();
}
