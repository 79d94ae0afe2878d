/* neighbor.c: neighbourhood collectives on Cartesian grids (also with one or two ranks in a periodic
 * dimension, where both neighbours are the same rank), on graphs, and on distributed graphs with duplicate
 * edges.
 *
 * ranks: 1 2 3 4 5 6 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

#define NEIGHBORS_MAX 16

/* Runs MPI_Neighbor_allgather and MPI_Neighbor_alltoall in the blocking, nonblocking or persistent form. */
static void exchange_both(int form, MPI_Comm comm, int *send, int *recv, int *me, int *all)
{
    MPI_Request r[2];
    if (form == 0) {
        MPI_Neighbor_alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, comm);
        MPI_Neighbor_allgather(me, 1, MPI_INT, all, 1, MPI_INT, comm);
        return;
    }
    if (form == 1) {
        MPI_Ineighbor_alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, comm, &r[0]);
        MPI_Ineighbor_allgather(me, 1, MPI_INT, all, 1, MPI_INT, comm, &r[1]);
    } else {
        MPI_Neighbor_alltoall_init(send, 1, MPI_INT, recv, 1, MPI_INT, comm, MPI_INFO_NULL, &r[0]);
        MPI_Neighbor_allgather_init(me, 1, MPI_INT, all, 1, MPI_INT, comm, MPI_INFO_NULL, &r[1]);
        MPI_Startall(2, r);
    }
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2 && form == 2; i++)
        MPI_Request_free(&r[i]);
}

/* Tests a grid, in which data sent in one direction arrives from the opposite one. */
static void test_cart(int ndims, int periodic)
{
    int dims[3] = {0}, periods[3] = {periodic, periodic, periodic}, source, dest;
    int send[NEIGHBORS_MAX], recv[NEIGHBORS_MAX], want[NEIGHBORS_MAX], all[NEIGHBORS_MAX];
    MPI_Comm cart;
    MPI_Dims_create(mpitest_size, ndims, dims);
    MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &cart);
    int me;
    MPI_Comm_rank(cart, &me);
    for (int i = 0; i < 2 * ndims; i++) {
        send[i] = me * 100 + i;
        recv[i] = want[i] = all[i] = -1;
    }
    for (int d = 0; d < ndims; d++) {
        MPI_Cart_shift(cart, d, 1, &source, &dest);
        if (source != MPI_PROC_NULL)
            want[2 * d] = source * 100 + 2 * d + 1;
        if (dest != MPI_PROC_NULL)
            want[2 * d + 1] = dest * 100 + 2 * d;
    }
    for (int form = 0; form < 3; form++) {
        exchange_both(form, cart, send, recv, &me, all);
        for (int i = 0; i < 2 * ndims; i++) {
            EXPECT_EQ(recv[i], want[i]);
            EXPECT_EQ(all[i], want[i] < 0 ? -1 : want[i] / 100);
            recv[i] = all[i] = -1;
        }
    }
    MPI_Comm_free(&cart);
}

/* Tests a graph in which every rank sends to the next three, to the next one twice, blocks of different
 * sizes. */
static void test_dist_graph(void)
{
    enum { EDGES = 4 };
    static const int hops[EDGES] = {1, 2, 3, 1};
    const int n = mpitest_size, me = mpitest_rank;
    int sources[EDGES], dests[EDGES], scounts[EDGES], rcounts[EDGES], sdispls[EDGES], rdispls[EDGES];
    MPI_Aint sbytes[EDGES], rbytes[EDGES];
    MPI_Datatype types[EDGES];
    int send[NEIGHBORS_MAX], recv[NEIGHBORS_MAX], mine[2] = {me, me + 1000};
    for (int i = 0; i < EDGES; i++) {
        dests[i] = (me + hops[i]) % n;
        sources[i] = ((me - hops[i]) % n + n) % n;
        scounts[i] = rcounts[i] = i % 3;
        sdispls[i] = rdispls[i] = 3 * i;
        sbytes[i] = rbytes[i] = 12 * i;
        types[i] = MPI_INT;
    }
    /* Edges between two ranks match in the order of the lists; with few ranks edges of different distances
     * connect the same ranks. */
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, EDGES, sources, MPI_UNWEIGHTED, EDGES, dests,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    for (int form = 0; form < 4; form++) {
        MPI_Request r = MPI_REQUEST_NULL;
        for (int i = 0; i < NEIGHBORS_MAX; i++) {
            send[i] = me * 100 + i;
            recv[i] = -1;
        }
        if (form == 0)
            MPI_Neighbor_alltoallv(send, scounts, sdispls, MPI_INT, recv, rcounts, rdispls, MPI_INT, graph);
        else if (form == 3)
            MPI_Neighbor_alltoallw(send, scounts, sbytes, types, recv, rcounts, rbytes, types, graph);
        else if (form == 1)
            MPI_Ineighbor_alltoallw(send, scounts, sbytes, types, recv, rcounts, rbytes, types, graph, &r);
        else
            MPI_Neighbor_alltoallv_init(send, scounts, sdispls, MPI_INT, recv, rcounts, rdispls, MPI_INT,
                                        graph, MPI_INFO_NULL, &r);
        if (form == 2)
            MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        if (form == 2)
            MPI_Request_free(&r);
        for (int i = 0; i < EDGES; i++)
            for (int k = 0; k < rcounts[i]; k++)
                EXPECT_EQ(recv[rdispls[i] + k], sources[i] * 100 + sdispls[i] + k);
    }
    int got[2 * EDGES], counts[EDGES], displs[EDGES];
    for (int i = 0; i < EDGES; i++) {
        counts[i] = 2;
        displs[i] = 2 * (EDGES - 1 - i);
    }
    MPI_Neighbor_allgatherv(mine, 2, MPI_INT, got, counts, displs, MPI_INT, graph);
    for (int i = 0; i < EDGES; i++)
        EXPECT(got[displs[i]] == sources[i] && got[displs[i] + 1] == sources[i] + 1000);
    MPI_Comm_free(&graph);
}

static void test_graph(void)
{
    const int n = mpitest_size;
    int ends[64], edges[128], got[2] = {-1, -1};
    if (n < 3)
        return;
    for (int r = 0; r < n; r++) {
        ends[r] = 2 * (r + 1);
        edges[2 * r] = (r + n - 1) % n;
        edges[2 * r + 1] = (r + 1) % n;
    }
    MPI_Comm graph;
    MPI_Graph_create(MPI_COMM_WORLD, n, ends, edges, 0, &graph);
    MPI_Neighbor_allgather(&mpitest_rank, 1, MPI_INT, got, 1, MPI_INT, graph);
    EXPECT_EQ(got[0], (mpitest_rank + n - 1) % n);
    EXPECT_EQ(got[1], (mpitest_rank + 1) % n);
    MPI_Comm_free(&graph);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (int ndims = 1; ndims <= 3; ndims++)
        for (int periodic = 0; periodic < 2; periodic++)
            test_cart(ndims, periodic);
    if (mpitest_size > 3 || mpitest_size == 1)
        test_dist_graph();
    test_graph();
    return mpitest_end();
}
