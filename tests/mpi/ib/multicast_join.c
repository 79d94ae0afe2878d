/* multicast_join.c: multicast groups must be joined through librdmacm, as on a real InfiniBand fabric. If
 * that fails, broadcasts use messages, and every byte still arrives. Argument `joined`: the join must
 * succeed (tests/tools/multicast_join.sh provides a librdmacm).
 *
 * ranks: 6
 * nodes: only 3
 * env: FISHPLATE_COLL=bcast=multicast SOFTIB_FABRIC=sm=1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "counters.h"

enum { COMMS = 3, CALLS = 12, BYTES_MAX = 20000 };

static int broadcast_and_count_wrong(MPI_Comm c, int root, int n, int seed)
{
    static unsigned char data[BYTES_MAX];
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
            EXPECT_EQ(
                broadcast_and_count_wrong(comm, call % mpitest_size, call % 2 ? BYTES_MAX : 64, i + call), 0);
        MPI_Comm_free(&comm);
    }
    EXPECT_EQ(read_counter(done), joined ? COMMS * CALLS : 0);
    counters_end();
    return mpitest_end();
}
