/* topologies.c: Cartesian, graph and distributed graph topologies: coordinates and neighbours.
 *
 * ranks: 1 2 3 4 5 6 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

/* gcc warns about constant small addresses as arrays without elements; volatile variables hide the
 * constants. */
static int *volatile unweighted = MPI_UNWEIGHTED, *volatile weights_empty = MPI_WEIGHTS_EMPTY;

static void test_grid(void)
{
    int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], got_dims[2], got_periods[2], rank, source, dest,
        kind, ndims;
    MPI_Comm c, twin, row;
    MPI_Dims_create(mpitest_size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &c);
    MPI_Topo_test(c, &kind);
    EXPECT_EQ(kind, MPI_CART);
    MPI_Comm_rank(c, &rank);
    MPI_Comm_dup(c, &twin); /* the topology is copied too */
    MPI_Cartdim_get(twin, &ndims);
    EXPECT_EQ(ndims, 2);
    MPI_Cart_get(twin, 2, got_dims, got_periods, coords);
    EXPECT(got_dims[0] == dims[0] && got_dims[1] == dims[1] && got_periods[0] == 1 && got_periods[1] == 0);
    EXPECT_EQ(coords[0] * dims[1] + coords[1], rank);
    MPI_Cart_shift(c, 1, 1, &source, &dest);
    EXPECT_EQ(source, coords[1] == 0 ? MPI_PROC_NULL : rank - 1);
    EXPECT_EQ(dest, coords[1] == dims[1] - 1 ? MPI_PROC_NULL : rank + 1);
    MPI_Cart_shift(c, 0, -1, &source, &dest);
    EXPECT_EQ(dest, (coords[0] + dims[0] - 1) % dims[0] * dims[1] + coords[1]);
    EXPECT_EQ(source, (coords[0] + 1) % dims[0] * dims[1] + coords[1]);
    int far[2] = {coords[0] - 3 * dims[0], coords[1]}, found;
    MPI_Cart_rank(c, far, &found);
    EXPECT_EQ(found, rank);
    int remain[2] = {0, 1}, size, sub_rank;
    MPI_Cart_sub(c, remain, &row);
    MPI_Comm_size(row, &size);
    MPI_Comm_rank(row, &sub_rank);
    EXPECT(size == dims[1] && sub_rank == coords[1]);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    far[1] = dims[1];
    EXPECT_EQ(MPI_Cart_rank(c, far, &found), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Graphdims_get(c, &size, &kind), MPI_ERR_TOPOLOGY);
    MPI_Comm_free(&row);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&c);
}

static void test_small_grids(void)
{
    MPI_Comm c;
    int dims[1] = {1}, periods[1] = {0}, ndims = -1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &c);
    EXPECT_EQ(c == MPI_COMM_NULL, mpitest_rank != 0);
    if (c != MPI_COMM_NULL)
        MPI_Comm_free(&c);
    MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &c);
    EXPECT_EQ(c == MPI_COMM_NULL, mpitest_rank != 0);
    if (c != MPI_COMM_NULL) {
        MPI_Cartdim_get(c, &ndims);
        EXPECT_EQ(ndims, 0);
        MPI_Comm_free(&c);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    dims[0] = mpitest_size + 1;
    EXPECT_EQ(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &c), MPI_ERR_DIMS);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void test_graph(void)
{
    int n = mpitest_size, nodes, edges, count, neighbors[2], kind;
    int *ends = malloc((size_t)n * sizeof(int)), *next = malloc(2 * (size_t)n * sizeof(int));
    MPI_Comm c;
    for (int i = 0; i < n; i++) {
        ends[i] = 2 * (i + 1);
        next[2 * i] = (i + n - 1) % n;
        next[2 * i + 1] = (i + 1) % n;
    }
    MPI_Graph_create(MPI_COMM_WORLD, n, ends, next, 0, &c);
    MPI_Topo_test(c, &kind);
    EXPECT_EQ(kind, MPI_GRAPH);
    MPI_Graphdims_get(c, &nodes, &edges);
    EXPECT(nodes == n && edges == 2 * n);
    MPI_Graph_neighbors_count(c, mpitest_rank, &count);
    EXPECT_EQ(count, 2);
    MPI_Graph_neighbors(c, mpitest_rank, 2, neighbors);
    EXPECT(neighbors[0] == (mpitest_rank + n - 1) % n && neighbors[1] == (mpitest_rank + 1) % n);
    MPI_Comm_free(&c);
    free(ends);
    free(next);
}

/* Rank 0 specifies all edges: from each rank i to every higher rank j, with weight 10 i + j. */
static void test_edges_from_one_rank(void)
{
    int n = mpitest_size, tellers = mpitest_rank == 0 ? n : 0, at = 0, in, out, weighted;
    int *sources = malloc((size_t)n * sizeof(int)), *degrees = malloc((size_t)n * sizeof(int));
    int *targets = malloc((size_t)(n * n) * sizeof(int)), *weights = malloc((size_t)(n * n) * sizeof(int));
    MPI_Comm c;
    for (int i = 0; i < tellers; i++) {
        sources[i] = i;
        degrees[i] = n - 1 - i;
        for (int j = i + 1; j < n; j++, at++) {
            targets[at] = j;
            weights[at] = 10 * i + j;
        }
    }
    MPI_Dist_graph_create(MPI_COMM_WORLD, tellers, sources, degrees, targets, weights, MPI_INFO_NULL, 0, &c);
    MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted);
    EXPECT_EQ(in, mpitest_rank);
    EXPECT_EQ(out, n - 1 - mpitest_rank);
    EXPECT(weighted);
    int *lists = malloc(4 * (size_t)n * sizeof(int));
    MPI_Dist_graph_neighbors(c, in, lists, lists + n, out, lists + 2 * n, lists + 3 * n);
    for (int i = 0; i < in; i++)
        EXPECT(lists[i] == i && lists[n + i] == 10 * i + mpitest_rank);
    for (int i = 0; i < out; i++)
        EXPECT(lists[2 * n + i] == mpitest_rank + 1 + i &&
               lists[3 * n + i] == 10 * mpitest_rank + lists[2 * n + i]);
    MPI_Comm_free(&c);
    free(lists);
    free(sources);
    free(degrees);
    free(targets);
    free(weights);
}

/* Every rank specifies the edge of its right neighbour, several times. */
static void test_edges_from_neighbours(void)
{
    for (int round = 0; round < 10; round++) {
        int n = mpitest_size, source = (mpitest_rank + 1) % n, dest = (mpitest_rank + 2) % n, one = 1;
        int in, out, weighted, from, to;
        MPI_Comm c;
        MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &one, &dest, unweighted, MPI_INFO_NULL, 1, &c);
        MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted);
        EXPECT(in == 1 && out == 1 && !weighted);
        MPI_Dist_graph_neighbors(c, 1, &from, unweighted, 1, &to, unweighted);
        EXPECT_EQ(from, (mpitest_rank + n - 1) % n);
        EXPECT_EQ(to, (mpitest_rank + 1) % n);
        MPI_Comm_free(&c);
    }
}

static void test_adjacent(void)
{
    int n = mpitest_size, left = (mpitest_rank + n - 1) % n, right = (mpitest_rank + 1) % n;
    int in_weight = 5 + left, out_weight = 5 + mpitest_rank, in, out, weighted, from, to, w[2];
    MPI_Comm c;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, &in_weight, 1, &right, &out_weight,
                                   MPI_INFO_NULL, 0, &c);
    MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted);
    EXPECT(in == 1 && out == 1 && weighted);
    MPI_Dist_graph_neighbors(c, 1, &from, &w[0], 1, &to, &w[1]);
    EXPECT(from == left && to == right && w[0] == in_weight && w[1] == out_weight);
    MPI_Comm_free(&c);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, weights_empty, 0, NULL, weights_empty,
                                   MPI_INFO_NULL, 0, &c);
    MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted);
    EXPECT(in == 0 && out == 0 && weighted);
    MPI_Comm_free(&c);
}

/* Missing lists are an error at every rank. */
static void test_dist_graph_errors(void)
{
    int *const empty = MPI_WEIGHTS_EMPTY, *const unweighted = MPI_UNWEIGHTED, zero = 0, one = 1, wrong = -1;
    MPI_Comm c;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &zero, &one, &zero, empty, MPI_INFO_NULL, 0, &c),
              MPI_ERR_ARG);
    EXPECT_EQ(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &zero, &one, NULL, unweighted, MPI_INFO_NULL, 0, &c),
              MPI_ERR_ARG);
    EXPECT_EQ(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &zero, &one, &zero, &wrong, MPI_INFO_NULL, 0, &c),
              MPI_ERR_ARG);
    EXPECT_EQ(
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &zero, empty, 0, NULL, empty, MPI_INFO_NULL, 0, &c),
        MPI_ERR_ARG);
    EXPECT(c == MPI_COMM_NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    test_grid();
    test_small_grids();
    test_graph();
    test_edges_from_one_rank();
    test_edges_from_neighbours();
    test_adjacent();
    test_dist_graph_errors();
    return mpitest_end();
}
