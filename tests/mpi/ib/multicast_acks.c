/* multicast_acks.c: the paths of acknowledgements and packets between a root, a co-root and leaves:
 * acknowledgements are written to the memory of the root and the co-root, or piggybacked on packets; with
 * deliver=1 the co-root also receives every packet over its connection, and sends only the
 * acknowledgements that its room requires. Every byte is checked.
 *
 * ranks: 4
 * nodes: only 4
 * env: FISHPLATE_COLL=bcast=multicast:coroots=2
 * also: FISHPLATE_COLL=bcast=multicast:coroots=2:deliver=1
 * also: FISHPLATE_COLL=bcast=multicast:coroots=2:deliver=1:window=8 SOFTIB_FABRIC=ud_loss=0.3,seed=4
 * also: FISHPLATE_COLL=bcast=multicast:coroots=4:deliver=1:window=1
 * also: FISHPLATE_COLL=bcast=multicast:coroots=2:piggyback=1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"

enum { TIMES = 200, COROOT = 2 };

static MPI_T_pvar_handle delivered, written, by_write, by_message, carried;

static int sum_of_counter(MPI_T_pvar_handle handle, int before)
{
    int mine = (int)read_counter(handle) - before, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void broadcast_from(int root, int round)
{
    int data[100];
    for (int i = 0; i < 100; i++)
        data[i] = mpitest_rank == root ? round * 1000 + i : -1;
    MPI_Bcast(data, 100, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(data[i], round * 1000 + i);
}

/* Rank 2 collects the acknowledgements of rank 3. */
static void test_one_root(bool deliver)
{
    for (int i = 0; i < TIMES; i++)
        broadcast_from(0, i);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == COROOT && !strstr(getenv("FISHPLATE_COLL"), "coroots=4"))
        EXPECT(read_counter(by_write) > 0);
    EXPECT_EQ(read_counter(by_message), 0);
    const int packets = sum_of_counter(delivered, 0);
    EXPECT(deliver ? packets >= TIMES : packets == 0);
}

static void test_alternating_roots(bool piggyback)
{
    for (int i = 0; i < TIMES; i++)
        broadcast_from(i % mpitest_size, i);
    const int packets = sum_of_counter(carried, 0);
    EXPECT(piggyback ? packets > 0 : packets == 0);
}

int main(int argc, char **argv)
{
    counters_begin();
    delivered = counter_open("mcast_delivered");
    written = counter_open("mcast_acks_written");
    by_write = counter_open("mcast_acks_by_write");
    by_message = counter_open("mcast_acks_by_message");
    carried = counter_open("mcast_acks_carried");
    mpitest_begin(&argc, &argv);
    const char *how = getenv("FISHPLATE_COLL");
    const bool piggyback = strstr(how, "piggyback") != NULL;
    if (!piggyback)
        test_one_root(strstr(how, "deliver") != NULL);
    test_alternating_roots(piggyback);
    EXPECT(piggyback || sum_of_counter(written, 0) > 0);
    counters_end();
    return mpitest_end();
}
