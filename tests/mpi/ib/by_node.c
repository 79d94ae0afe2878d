/* by_node.c: barriers of ranks on several nodes, some of which share a node: flags in shared memory within
 * a node, and between the leaders RDMA writes, messages, the switch, the wires of a barrier network, or
 * one multicast that releases all. No rank leaves early: blocking, nonblocking and persistent barriers,
 * many in flight at once, requests started in different orders, communicators of all kinds. Counters show
 * the mechanism that was used.
 *
 * ranks: 7
 * nodes: only 3
 * env: FISHPLATE_COLL=barrier=rdma
 * also: FISHPLATE_COLL=barrier=rdma:n=2
 * also: FISHPLATE_COLL=barrier=rdma_pairwise
 * also: FISHPLATE_COLL=barrier=rdma_counter
 * also: FISHPLATE_COLL=barrier=rdma_counter SOFTIB_FABRIC=without=atomics
 * also: FISHPLATE_COLL=barrier=node+tournament
 * also: FISHPLATE_COLL=barrier=node+mcs:n=2:release=1
 * also: FISHPLATE_COLL=barrier=switch
 * also: FISHPLATE_COLL=barrier=switch SOFTIB_FABRIC=switch_loss=0.2
 * also: FISHPLATE_COLL=barrier=switch SOFTIB_FABRIC=switches=2,switch_loss=0.1
 * also: FISHPLATE_COLL=barrier=multicast
 * also: FISHPLATE_COLL=barrier=multicast:n=1 SOFTIB_FABRIC=ud_loss=0.2,ud_dup=0.1,ud_reorder=0.1,seed=5
 * also: FISHPLATE_COLL=barrier=multicast FISHPLATE_SPIN_US=0 FISHPLATE_LAB=YIELDS=0
 * also: FISHPLATE_COLL=barrier=wires SOFTIB_FABRIC=hub=1
 * also: FISHPLATE_COLL=barrier=wires
 * also: FISHPLATE_COLL=barrier=wires SOFTIB_FABRIC=hub=1 FISHPLATE_IB_DEVICES=^softwire0
 * also: FISHPLATE_COLL= FISHPLATE_COLL_TRY=0
 * also: FISHPLATE_COLL= FISHPLATE_COLL_TRY=0 FISHPLATE_LAB=BARRIER_BEFORE=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "late.h"
#include "mpitest.h"

enum { ROUNDS = 90, AT_ONCE = 5, PERSISTENT = 70, COMMS = 12, KINDS = 4 };

static double arrival_times[ROUNDS], departure_times[ROUNDS];

/* Starts several barriers: when the last one completes, all ranks have entered the first. */
static void test_many_at_once(MPI_Comm comm)
{
    MPI_Request request[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++)
        MPI_Ibarrier(comm, &request[i]);
    MPI_Barrier(comm);
    MPI_Waitall(AT_ONCE, request, MPI_STATUSES_IGNORE);
}

static void run_barrier(MPI_Comm comm, int kind, MPI_Request *persistent)
{
    MPI_Request request;
    int flag = 0;
    switch (kind) {
    case 0:
        MPI_Barrier(comm);
        return;
    case 1:
        MPI_Ibarrier(comm, &request);
        while (!flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        return;
    case 2:
        MPI_Start(persistent);
        MPI_Wait(persistent, MPI_STATUS_IGNORE);
        return;
    default:
        test_many_at_once(comm);
    }
}

static void test_nobody_is_early(MPI_Comm comm)
{
    MPI_Request persistent;
    unsigned random_seed = 77u + (unsigned)mpitest_rank;
    MPI_Barrier(comm);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &persistent);
    for (int i = 0; i < ROUNDS; i++) {
        delay_randomly(&random_seed);
        arrival_times[i] = clock_seconds(CLOCK_MONOTONIC);
        run_barrier(comm, i % KINDS, &persistent);
        departure_times[i] = clock_seconds(CLOCK_MONOTONIC);
    }
    MPI_Request_free(&persistent);
    EXPECT_EQ(count_early_departures(arrival_times, departure_times, ROUNDS, comm), 0);
}

/* Starts more requests than there are flags, in a different order at every rank. */
static void test_starts_in_any_order(void)
{
    MPI_Request request[PERSISTENT], turned[PERSISTENT];
    for (int i = 0; i < PERSISTENT; i++)
        MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request[i]);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < PERSISTENT; i++)
            turned[i] = request[(i * 3 + mpitest_rank * 11) % PERSISTENT];
        MPI_Startall(PERSISTENT, turned);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall(PERSISTENT, turned, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < PERSISTENT; i++)
        MPI_Request_free(&request[i]);
}

/* Creates and frees communicators: some within one node, some of ranks on different nodes, some whose
 * leader is not its node's lowest rank in the world. */
static void test_many_communicators(void)
{
    MPI_Comm comm;
    MPI_Request request;
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? mpitest_rank % 3 : 0, i % 3 ? mpitest_rank : -mpitest_rank,
                       &comm);
        MPI_Ibarrier(comm, &request);
        MPI_Barrier(comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(comm);
        MPI_Ibarrier(comm, &request);
        MPI_Comm_free(&comm); /* the request remains valid after the communicator is freed */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* A persistent barrier is the first barrier of the communicator: the ranks have not exchanged addresses of
 * flags yet. */
static void test_persistent_first(void)
{
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    MPI_Comm_free(&comm);
}

static bool setting_contains(const char *name, const char *part)
{
    const char *value = getenv(name);
    return value && strstr(value, part);
}

int main(int argc, char **argv)
{
    counters_begin();
    MPI_T_pvar_handle by_node = counter_open("coll_barrier_by_node"),
                      written = counter_open("coll_barrier_rdma"),
                      switched = counter_open("coll_barrier_switch"),
                      tree = counter_open("coll_barrier_multicast"),
                      wired = counter_open("coll_barrier_wires"),
                      counted = counter_open("coll_barrier_counter");
    mpitest_begin(&argc, &argv);
    test_nobody_is_early(MPI_COMM_WORLD);
    EXPECT(read_counter(by_node) >= ROUNDS);
    const bool wires = setting_contains("FISHPLATE_COLL", "wires"),
               no_hub = !setting_contains("SOFTIB_FABRIC", "hub=1") ||
                        setting_contains("FISHPLATE_IB_DEVICES", "^softwire0");
    const bool named = setting_contains("FISHPLATE_COLL", "barrier");
    EXPECT_EQ(read_counter(wired) >= ROUNDS, wires && !no_hub);
    if (named) {
        const bool counts =
            setting_contains("FISHPLATE_COLL", "counter") && !setting_contains("SOFTIB_FABRIC", "atomics");
        EXPECT_EQ(read_counter(counted) >= ROUNDS, counts);
        EXPECT_EQ(read_counter(written) >= ROUNDS,
                  (setting_contains("FISHPLATE_COLL", "rdma") && !counts) || (wires && no_hub));
        EXPECT_EQ(read_counter(switched) >= ROUNDS, setting_contains("FISHPLATE_COLL", "switch"));
    } else { /* without a set algorithm the choice depends on the number of processors */
        EXPECT_EQ(read_counter(written) >= ROUNDS, read_counter(switched) == 0);
    }
    EXPECT_EQ(read_counter(tree) >= ROUNDS, setting_contains("FISHPLATE_COLL", "multicast"));
    test_starts_in_any_order();
    test_persistent_first();
    test_many_communicators();
    counters_end();
    return mpitest_end();
}
