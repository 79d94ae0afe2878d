/* topo.h: virtual topologies: which processes of a communicator are neighbours. A topology never changes once
 * made, so that duplicates of a communicator share it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_TOPO_H
#define FP_OBJ_TOPO_H

#include <mpi.h>
#include <stdbool.h>

struct comm;

struct topology {
    int refs;
    int kind; /* MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH */
    union {
        struct {
            int ndims;
            int *dims; /* [ndims], then periods [ndims] in the same block */
            int *periods;
        } cart;
        struct {
            int nodes, edges;
            int *ends; /* [nodes]: cumulative numbers of neighbours, then neighbours [edges] in the same block
                        */
            int *neighbors;
        } graph;
        struct {
            int indegree, outdegree;
            bool weighted;
            int *sources, *source_weights, *destinations, *destination_weights; /* one block */
        } dist;
    } u;
};

struct topology *topology_retain(struct topology *t); /* NULL is allowed, here and in release */
void topology_release(struct topology *t);

int topology_cart(int ndims, const int *dims, const int *periods, struct topology **out);
int topology_graph(int nodes, const int *ends, const int *neighbors, struct topology **out);
/* Weights are copied when given; NULL: unweighted. */
int topology_dist(int indegree, const int *sources, const int *source_weights, int outdegree,
                  const int *destinations, const int *destination_weights, struct topology **out);

/* Row-major order: the last dimension varies fastest. */
void cart_coords_of(const struct topology *t, int rank, int maxdims, int *coords);
/* The rank at these coordinates, wrapped where periodic; MPI_PROC_NULL when outside. */
int cart_rank_of(const struct topology *t, const int *coords);
void cart_shift(const struct topology *t, int rank, int direction, int disp, int *source, int *dest);

/* The numbers of neighbours, and the neighbours in the order that neighbourhood collectives use; they may be MPI_PROC_NULL in cartesian
 * topologies. MPI_ERR_TOPOLOGY if the communicator has none. */
int topology_degrees(const struct comm *c, int *indegree, int *outdegree);
int topology_neighbors(const struct comm *c, int *sources, int *destinations);

/* Fills the zeros of dims so that the product is `nodes` and the dimensions are as close to each other as possible, in
 * descending order. */
int dims_create(int nodes, int ndims, int *dims);

#endif
