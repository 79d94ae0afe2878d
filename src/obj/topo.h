/* topo.h: virtual topologies: which processes of a communicator are neighbours. A topology is immutable, so
 * that duplicates of a communicator can share it.
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
            int *sources, *source_weights, *destinations, *destination_weights; /* in this block */
        } dist;
    } u;
};

struct topology *topology_retain(struct topology *t); /* NULL is allowed, also in topology_release() */
void topology_release(struct topology *t);

int topology_cart(int ndims, const int *dims, const int *periods, struct topology **out);
int topology_graph(int nodes, const int *ends, const int *neighbors, struct topology **out);
/* Creates a distributed-graph topology. All arrays are copied. Weights NULL: unweighted. */
int topology_dist(int indegree, const int *sources, const int *source_weights, int outdegree,
                  const int *destinations, const int *destination_weights, struct topology **out);

/* Computes the coordinates of a rank in row-major order: the last dimension varies fastest. */
void cart_coords_of(const struct topology *t, int rank, int maxdims, int *coords);
/* Returns the rank at these coordinates, which wrap in periodic dimensions; MPI_PROC_NULL if outside. */
int cart_rank_of(const struct topology *t, const int *coords);
void cart_shift(const struct topology *t, int rank, int direction, int disp, int *source, int *dest);

/* Return the numbers of neighbours and the neighbours in the order of neighbourhood collectives
 * (MPI_PROC_NULL at the edges of a cartesian grid). Return MPI_ERR_TOPOLOGY if the communicator has no
 * topology. */
int topology_degrees(const struct comm *c, int *indegree, int *outdegree);
int topology_neighbors(const struct comm *c, int *sources, int *destinations);

/* Replaces the zeros in dims so that the product of all entries is `nodes` and the new entries are as
 * equal as possible, in descending order. */
int dims_create(int nodes, int ndims, int *dims);

#endif
