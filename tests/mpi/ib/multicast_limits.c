/* multicast_limits.c: more communicators than the fabric has multicast groups. Communicators without a
 * group broadcast by messages, and every byte arrives; freeing a communicator frees its group. The
 * argument is the number of groups (default of softib: 512).
 *
 * ranks: 3
 * nodes: only 3
 * env: FISHPLATE_COLL=bcast=multicast:window=2 SOFTIB_FABRIC=groups=24
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "counters.h"

enum { GROUPS_MAX = 520, EXTRA = 8, BYTES = 3000 };

static int broadcast_and_count_wrong(MPI_Comm c, int root, int seed)
{
    static unsigned char data[BYTES];
    int wrong = 0;
    for (int i = 0; i < BYTES; i++)
        data[i] = mpitest_rank == root ? (unsigned char)(seed + i * 3) : 0;
    MPI_Bcast(data, BYTES, MPI_BYTE, root, c);
    for (int i = 0; i < BYTES; i++)
        wrong += data[i] != (unsigned char)(seed + i * 3);
    return wrong;
}

int main(int argc, char **argv)
{
    static MPI_Comm comm[GROUPS_MAX];
    counters_begin();
    MPI_T_pvar_handle done = counter_open("coll_bcast_multicast");
    mpitest_begin(&argc, &argv);
    const int groups = argc > 1 ? atoi(argv[1]) : 24, comms = groups + EXTRA;
    for (int i = 0; i < comms; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
        EXPECT_EQ(broadcast_and_count_wrong(comm[i], i % mpitest_size, i), 0);
    }
    EXPECT_EQ(read_counter(done), groups);
    for (int i = 0; i < comms; i++)
        EXPECT_EQ(broadcast_and_count_wrong(comm[i], i % mpitest_size, i + 1), 0);
    EXPECT_EQ(read_counter(done), 2 * groups);
    for (int i = 0; i < EXTRA; i++) {
        MPI_Comm_free(&comm[i]);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
        EXPECT_EQ(broadcast_and_count_wrong(comm[i], i % mpitest_size, i + 2), 0);
    }
    EXPECT_EQ(read_counter(done), 2 * groups + EXTRA);
    for (int i = 0; i < comms; i++)
        MPI_Comm_free(&comm[i]);
    counters_end();
    return mpitest_end();
}
