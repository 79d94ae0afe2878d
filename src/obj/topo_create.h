/* topo_create.h: communicators with a topology.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_TOPO_CREATE_H
#define FP_OBJ_TOPO_CREATE_H

#include "obj/comm.h"
#include "obj/topo.h"

int cart_create(struct comm *parent, int ndims, const int *dims, const int *periods, bool reorder,
                struct comm **out);
int cart_sub(struct comm *cart, const int *remain, struct comm **out);
int graph_create(struct comm *parent, int nodes, const int *ends, const int *neighbors, bool reorder,
                 struct comm **out);
int graph_check(const struct comm *parent, int nodes, const int *ends, const int *neighbors);
int cart_check(const struct comm *parent, int ndims, const int *dims, const int *periods, int *size);

/* Creates the graph from the adjacent edges of each process. Weights are the user's pointers, as in
 * MPI_Dist_graph_create_adjacent. */
int dist_graph_create_adjacent(struct comm *parent, int indegree, const int *sources,
                               const int *source_weights, int outdegree, const int *destinations,
                               const int *destination_weights, struct info *info, struct comm **out);
/* Creates the graph from edges that any process may declare, each edge once. */
int dist_graph_create(struct comm *parent, int n, const int *sources, const int *degrees,
                      const int *destinations, const int *weights, struct info *info, struct comm **out);

/* Reorders the ranks of a grid so that neighbours are on the same node: order[new rank] = old rank.
 * Returns false if no reordering helps. */
bool cart_reorder(const struct comm *parent, int ndims, const int *dims, int *order);

#endif
