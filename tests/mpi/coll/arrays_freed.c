/* arrays_freed.c: nonblocking and persistent v and w collectives whose arrays of counts, displacements and
 * types are overwritten as soon as the call has returned. The standard requires the caller to retain the
 * arrays; language bindings that build them for one call do not.
 *
 * ranks: 3 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum form { NONBLOCKING, PERSISTENT, NONBLOCKING_C, PERSISTENT_C, FORMS };

#define RANKS_MAX 8

/* The layout of one buffer in all array types of the bindings. Block i has i + 1 integers. */
struct arrays {
    int counts[RANKS_MAX], displs[RANKS_MAX], bytes[RANKS_MAX];
    MPI_Count wide_counts[RANKS_MAX];
    MPI_Aint wide_displs[RANKS_MAX], wide_bytes[RANKS_MAX];
    MPI_Datatype types[RANKS_MAX];
};

static struct arrays *make_arrays(int blocks, int same)
{
    struct arrays *a = malloc(sizeof(*a));
    int at = 0;
    for (int i = 0; i < blocks; i++) {
        const int count = same >= 0 ? same : i + 1;
        a->wide_counts[i] = a->counts[i] = count;
        a->wide_displs[i] = a->displs[i] = at;
        a->wide_bytes[i] = a->bytes[i] = at * (int)sizeof(int);
        a->types[i] = MPI_INT;
        at += count;
    }
    return a;
}

/* Overwrites the arrays, as a program does that frees and reuses them. */
static void overwrite_arrays(struct arrays *a)
{
    memset(a, 0x5a, sizeof(*a));
    free(a);
}

/* Persistent requests run twice, so that the second start reads the description again. */
static void complete_request(enum form form, MPI_Request *q)
{
    const int rounds = form == PERSISTENT || form == PERSISTENT_C ? 2 : 1;
    for (int i = 0; i < rounds; i++) {
        if (form == PERSISTENT || form == PERSISTENT_C)
            MPI_Start(q);
        MPI_Wait(q, MPI_STATUS_IGNORE);
    }
    if (*q != MPI_REQUEST_NULL)
        MPI_Request_free(q);
}

/* Fills the send buffer: rank r sends r + 1 integers of value 100 r + i; they follow one another. */
static void fill_send_buffer(int *buf, int rank, int n)
{
    for (int i = 0; i < n; i++)
        buf[i] = 100 * rank + i;
}

static void check_gathered(const int *buf, int blocks)
{
    for (int r = 0, at = 0; r < blocks; r++)
        for (int i = 0; i <= r; i++)
            EXPECT_EQ(buf[at++], 100 * r + i);
}

/* Buffers and arrays of an operation that gathers all blocks at every rank. */
struct gather_test {
    int send[RANKS_MAX], recv[RANKS_MAX * RANKS_MAX], n;
    struct arrays *arrays;
    MPI_Request q;
};

static const struct arrays *begin_gather(struct gather_test *g)
{
    *g = (struct gather_test){
        .n = mpitest_rank + 1, .arrays = make_arrays(mpitest_size, -1), .q = MPI_REQUEST_NULL};
    fill_send_buffer(g->send, mpitest_rank, g->n);
    return g->arrays;
}

static void finish_gather(struct gather_test *g, enum form form)
{
    overwrite_arrays(g->arrays);
    complete_request(form, &g->q);
    check_gathered(g->recv, mpitest_size);
}

static void test_allgatherv(enum form form)
{
    struct gather_test g;
    const struct arrays *a = begin_gather(&g);
    if (form == NONBLOCKING)
        MPI_Iallgatherv(g.send, g.n, MPI_INT, g.recv, a->counts, a->displs, MPI_INT, MPI_COMM_WORLD, &g.q);
    else if (form == PERSISTENT)
        MPI_Allgatherv_init(g.send, g.n, MPI_INT, g.recv, a->counts, a->displs, MPI_INT, MPI_COMM_WORLD,
                            MPI_INFO_NULL, &g.q);
    else if (form == NONBLOCKING_C)
        MPI_Iallgatherv_c(g.send, g.n, MPI_INT, g.recv, a->wide_counts, a->wide_displs, MPI_INT,
                          MPI_COMM_WORLD, &g.q);
    else
        MPI_Allgatherv_init_c(g.send, g.n, MPI_INT, g.recv, a->wide_counts, a->wide_displs, MPI_INT,
                              MPI_COMM_WORLD, MPI_INFO_NULL, &g.q);
    finish_gather(&g, form);
}

static void test_gatherv(enum form form)
{
    int send[RANKS_MAX], recv[RANKS_MAX * RANKS_MAX];
    const int n = mpitest_rank + 1, root = mpitest_size - 1;
    struct arrays *a = make_arrays(mpitest_size, -1);
    MPI_Request q = MPI_REQUEST_NULL;
    fill_send_buffer(send, mpitest_rank, n);
    memset(recv, 0, sizeof(recv));
    if (form == NONBLOCKING)
        MPI_Igatherv(send, n, MPI_INT, recv, a->counts, a->displs, MPI_INT, root, MPI_COMM_WORLD, &q);
    else if (form == PERSISTENT)
        MPI_Gatherv_init(send, n, MPI_INT, recv, a->counts, a->displs, MPI_INT, root, MPI_COMM_WORLD,
                         MPI_INFO_NULL, &q);
    else if (form == NONBLOCKING_C)
        MPI_Igatherv_c(send, n, MPI_INT, recv, a->wide_counts, a->wide_displs, MPI_INT, root, MPI_COMM_WORLD,
                       &q);
    else
        MPI_Gatherv_init_c(send, n, MPI_INT, recv, a->wide_counts, a->wide_displs, MPI_INT, root,
                           MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    overwrite_arrays(a);
    complete_request(form, &q);
    if (mpitest_rank == root)
        check_gathered(recv, mpitest_size);
}

static void test_scatterv(enum form form)
{
    int send[RANKS_MAX * RANKS_MAX], recv[RANKS_MAX] = {0};
    const int n = mpitest_rank + 1, root = mpitest_size - 1;
    struct arrays *a = make_arrays(mpitest_size, -1);
    MPI_Request q = MPI_REQUEST_NULL;
    for (int r = 0, at = 0; r < mpitest_size; at += ++r)
        fill_send_buffer(send + at, r, r + 1);
    if (form == NONBLOCKING)
        MPI_Iscatterv(send, a->counts, a->displs, MPI_INT, recv, n, MPI_INT, root, MPI_COMM_WORLD, &q);
    else if (form == PERSISTENT)
        MPI_Scatterv_init(send, a->counts, a->displs, MPI_INT, recv, n, MPI_INT, root, MPI_COMM_WORLD,
                          MPI_INFO_NULL, &q);
    else if (form == NONBLOCKING_C)
        MPI_Iscatterv_c(send, a->wide_counts, a->wide_displs, MPI_INT, recv, n, MPI_INT, root, MPI_COMM_WORLD,
                        &q);
    else
        MPI_Scatterv_init_c(send, a->wide_counts, a->wide_displs, MPI_INT, recv, n, MPI_INT, root,
                            MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    overwrite_arrays(a);
    complete_request(form, &q);
    for (int i = 0; i < n; i++)
        EXPECT_EQ(recv[i], 100 * mpitest_rank + i);
}

/* Rank r sends s + 1 integers of value 100 r + i to rank s, and receives r + 1 from every rank. */
static void prepare_alltoall(int *send, int *recv)
{
    for (int s = 0, at = 0; s < mpitest_size; at += ++s)
        fill_send_buffer(send + at, mpitest_rank, s + 1);
    memset(recv, 0, RANKS_MAX * RANKS_MAX * sizeof(int));
}

static void check_alltoall(const int *recv)
{
    const int n = mpitest_rank + 1;
    for (int r = 0; r < mpitest_size; r++)
        for (int i = 0; i < n; i++)
            EXPECT_EQ(recv[r * n + i], 100 * r + i);
}

static void test_alltoallv(enum form form, MPI_Comm comm, int neighbors)
{
    int send[RANKS_MAX * RANKS_MAX], recv[RANKS_MAX * RANKS_MAX];
    struct arrays *s = make_arrays(mpitest_size, -1), *r = make_arrays(mpitest_size, mpitest_rank + 1);
    MPI_Request q = MPI_REQUEST_NULL;
    prepare_alltoall(send, recv);
    if (form == NONBLOCKING)
        (neighbors ? MPI_Ineighbor_alltoallv : MPI_Ialltoallv)(send, s->counts, s->displs, MPI_INT, recv,
                                                               r->counts, r->displs, MPI_INT, comm, &q);
    else if (form == PERSISTENT)
        (neighbors ? MPI_Neighbor_alltoallv_init : MPI_Alltoallv_init)(send, s->counts, s->displs, MPI_INT,
                                                                       recv, r->counts, r->displs, MPI_INT,
                                                                       comm, MPI_INFO_NULL, &q);
    else if (form == NONBLOCKING_C)
        (neighbors ? MPI_Ineighbor_alltoallv_c : MPI_Ialltoallv_c)(send, s->wide_counts, s->wide_displs,
                                                                   MPI_INT, recv, r->wide_counts,
                                                                   r->wide_displs, MPI_INT, comm, &q);
    else
        (neighbors ? MPI_Neighbor_alltoallv_init_c
                   : MPI_Alltoallv_init_c)(send, s->wide_counts, s->wide_displs, MPI_INT, recv,
                                           r->wide_counts, r->wide_displs, MPI_INT, comm, MPI_INFO_NULL, &q);
    overwrite_arrays(s);
    overwrite_arrays(r);
    complete_request(form, &q);
    check_alltoall(recv);
}

static void test_alltoallw(enum form form)
{
    int send[RANKS_MAX * RANKS_MAX], recv[RANKS_MAX * RANKS_MAX];
    struct arrays *s = make_arrays(mpitest_size, -1), *r = make_arrays(mpitest_size, mpitest_rank + 1);
    MPI_Request q = MPI_REQUEST_NULL;
    prepare_alltoall(send, recv);
    if (form == NONBLOCKING)
        MPI_Ialltoallw(send, s->counts, s->bytes, s->types, recv, r->counts, r->bytes, r->types,
                       MPI_COMM_WORLD, &q);
    else if (form == PERSISTENT)
        MPI_Alltoallw_init(send, s->counts, s->bytes, s->types, recv, r->counts, r->bytes, r->types,
                           MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    else if (form == NONBLOCKING_C)
        MPI_Ialltoallw_c(send, s->wide_counts, s->wide_bytes, s->types, recv, r->wide_counts, r->wide_bytes,
                         r->types, MPI_COMM_WORLD, &q);
    else
        MPI_Alltoallw_init_c(send, s->wide_counts, s->wide_bytes, s->types, recv, r->wide_counts,
                             r->wide_bytes, r->types, MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    overwrite_arrays(s);
    overwrite_arrays(r);
    complete_request(form, &q);
    check_alltoall(recv);
}

static void test_neighbor_alltoallw(enum form form, MPI_Comm comm)
{
    int send[RANKS_MAX * RANKS_MAX], recv[RANKS_MAX * RANKS_MAX];
    struct arrays *s = make_arrays(mpitest_size, -1), *r = make_arrays(mpitest_size, mpitest_rank + 1);
    MPI_Request q = MPI_REQUEST_NULL;
    prepare_alltoall(send, recv);
    if (form == NONBLOCKING)
        MPI_Ineighbor_alltoallw(send, s->counts, s->wide_bytes, s->types, recv, r->counts, r->wide_bytes,
                                r->types, comm, &q);
    else if (form == PERSISTENT)
        MPI_Neighbor_alltoallw_init(send, s->counts, s->wide_bytes, s->types, recv, r->counts, r->wide_bytes,
                                    r->types, comm, MPI_INFO_NULL, &q);
    else if (form == NONBLOCKING_C)
        MPI_Ineighbor_alltoallw_c(send, s->wide_counts, s->wide_bytes, s->types, recv, r->wide_counts,
                                  r->wide_bytes, r->types, comm, &q);
    else
        MPI_Neighbor_alltoallw_init_c(send, s->wide_counts, s->wide_bytes, s->types, recv, r->wide_counts,
                                      r->wide_bytes, r->types, comm, MPI_INFO_NULL, &q);
    overwrite_arrays(s);
    overwrite_arrays(r);
    complete_request(form, &q);
    check_alltoall(recv);
}

static void test_neighbor_allgatherv(enum form form, MPI_Comm comm)
{
    struct gather_test g;
    const struct arrays *a = begin_gather(&g);
    if (form == NONBLOCKING)
        MPI_Ineighbor_allgatherv(g.send, g.n, MPI_INT, g.recv, a->counts, a->displs, MPI_INT, comm, &g.q);
    else if (form == PERSISTENT)
        MPI_Neighbor_allgatherv_init(g.send, g.n, MPI_INT, g.recv, a->counts, a->displs, MPI_INT, comm,
                                     MPI_INFO_NULL, &g.q);
    else if (form == NONBLOCKING_C)
        MPI_Ineighbor_allgatherv_c(g.send, g.n, MPI_INT, g.recv, a->wide_counts, a->wide_displs, MPI_INT,
                                   comm, &g.q);
    else
        MPI_Neighbor_allgatherv_init_c(g.send, g.n, MPI_INT, g.recv, a->wide_counts, a->wide_displs, MPI_INT,
                                       comm, MPI_INFO_NULL, &g.q);
    finish_gather(&g, form);
}

static void test_reduce_scatter(enum form form)
{
    int send[RANKS_MAX * RANKS_MAX], recv[RANKS_MAX] = {0};
    struct arrays *a = make_arrays(mpitest_size, -1);
    MPI_Request q = MPI_REQUEST_NULL;
    for (int i = 0; i < RANKS_MAX * RANKS_MAX; i++)
        send[i] = i;
    if (form == NONBLOCKING)
        MPI_Ireduce_scatter(send, recv, a->counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q);
    else if (form == PERSISTENT)
        MPI_Reduce_scatter_init(send, recv, a->counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    else if (form == NONBLOCKING_C)
        MPI_Ireduce_scatter_c(send, recv, a->wide_counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q);
    else
        MPI_Reduce_scatter_init_c(send, recv, a->wide_counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                                  &q);
    overwrite_arrays(a);
    complete_request(form, &q);
    for (int i = 0; i <= mpitest_rank; i++)
        EXPECT_EQ(recv[i], mpitest_size * (mpitest_rank * (mpitest_rank + 1) / 2 + i));
}

/* A communicator in which all ranks are neighbours of each other, in the order of ranks. */
static MPI_Comm create_all_neighbors(void)
{
    int ranks[RANKS_MAX];
    MPI_Comm comm;
    for (int i = 0; i < mpitest_size; i++)
        ranks[i] = i;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, mpitest_size, ranks, MPI_UNWEIGHTED, mpitest_size, ranks,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm neighbors = create_all_neighbors();
    for (enum form form = NONBLOCKING; form < FORMS; form++) {
        test_allgatherv(form);
        test_gatherv(form);
        test_scatterv(form);
        test_alltoallv(form, MPI_COMM_WORLD, 0);
        test_alltoallw(form);
        test_reduce_scatter(form);
        test_alltoallv(form, neighbors, 1);
        test_neighbor_alltoallw(form, neighbors);
        test_neighbor_allgatherv(form, neighbors);
    }
    MPI_Comm_free(&neighbors);
    return mpitest_end();
}
