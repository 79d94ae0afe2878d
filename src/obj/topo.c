/* topo.c: creates topologies and computes coordinates, ranks and neighbours, without communication.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/topo.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "obj/comm.h"

/* Allocates a topology followed by tables of `words` ints. */
static int topology_alloc(int kind, size_t words, struct topology **out, int **table)
{
    struct topology *t = malloc(sizeof(*t) + words * sizeof(int));
    if (!t)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a topology");
    memset(t, 0, sizeof(*t));
    t->refs = 1;
    t->kind = kind;
    *table = (int *)(void *)(t + 1);
    *out = t;
    return MPI_SUCCESS;
}

/* Copies n ints to *at, advances *at, and returns the copy. */
static int *topo_copy_ints(int **at, const int *from, int n)
{
    int *to = *at;
    if (n > 0 && from)
        memcpy(to, from, (size_t)n * sizeof(int));
    *at += n;
    return to;
}

struct topology *topology_retain(struct topology *t)
{
    if (t)
        t->refs++;
    return t;
}

void topology_release(struct topology *t)
{
    if (t && --t->refs == 0)
        free(t);
}

int topology_cart(int ndims, const int *dims, const int *periods, struct topology **out)
{
    int *at;
    int rc = topology_alloc(MPI_CART, 2 * (size_t)ndims, out, &at);
    if (rc)
        return rc;
    struct topology *t = *out;
    t->u.cart.ndims = ndims;
    t->u.cart.dims = topo_copy_ints(&at, dims, ndims);
    t->u.cart.periods = topo_copy_ints(&at, periods, ndims);
    for (int i = 0; i < ndims; i++)
        t->u.cart.periods[i] = periods[i] != 0;
    return MPI_SUCCESS;
}

int topology_graph(int nodes, const int *ends, const int *neighbors, struct topology **out)
{
    int edges = nodes ? ends[nodes - 1] : 0;
    int *at;
    int rc = topology_alloc(MPI_GRAPH, (size_t)nodes + (size_t)edges, out, &at);
    if (rc)
        return rc;
    struct topology *t = *out;
    t->u.graph.nodes = nodes;
    t->u.graph.edges = edges;
    t->u.graph.ends = topo_copy_ints(&at, ends, nodes);
    t->u.graph.neighbors = topo_copy_ints(&at, neighbors, edges);
    return MPI_SUCCESS;
}

int topology_dist(int indegree, const int *sources, const int *source_weights, int outdegree,
                  const int *destinations, const int *destination_weights, struct topology **out)
{
    int *at;
    int rc = topology_alloc(MPI_DIST_GRAPH, 2 * ((size_t)indegree + (size_t)outdegree), out, &at);
    if (rc)
        return rc;
    struct topology *t = *out;
    t->u.dist.indegree = indegree;
    t->u.dist.outdegree = outdegree;
    t->u.dist.weighted = source_weights || destination_weights;
    t->u.dist.sources = topo_copy_ints(&at, sources, indegree);
    t->u.dist.source_weights = topo_copy_ints(&at, source_weights, indegree);
    t->u.dist.destinations = topo_copy_ints(&at, destinations, outdegree);
    t->u.dist.destination_weights = topo_copy_ints(&at, destination_weights, outdegree);
    return MPI_SUCCESS;
}

void cart_coords_of(const struct topology *t, int rank, int maxdims, int *coords)
{
    for (int i = t->u.cart.ndims; i-- > 0;) {
        if (i < maxdims)
            coords[i] = rank % t->u.cart.dims[i];
        rank /= t->u.cart.dims[i];
    }
}

int cart_rank_of(const struct topology *t, const int *coords)
{
    int rank = 0;
    for (int i = 0; i < t->u.cart.ndims; i++) {
        int extent = t->u.cart.dims[i], c = coords[i];
        if (c < 0 || c >= extent) {
            if (!t->u.cart.periods[i])
                return MPI_PROC_NULL;
            c %= extent;
            c += c < 0 ? extent : 0;
        }
        rank = rank * extent + c;
    }
    return rank;
}

/* Returns the rank at distance `disp` in one dimension. Only this coordinate changes. */
static int topo_rank_along(const struct topology *t, int rank, int direction, int64_t disp)
{
    int extent = t->u.cart.dims[direction], stride = 1;
    for (int i = direction + 1; i < t->u.cart.ndims; i++)
        stride *= t->u.cart.dims[i];
    int here = rank / stride % extent;
    int64_t there = here + disp;
    if (there < 0 || there >= extent) {
        if (!t->u.cart.periods[direction])
            return MPI_PROC_NULL;
        there %= extent;
        there += there < 0 ? extent : 0;
    }
    return rank + ((int)there - here) * stride;
}

void cart_shift(const struct topology *t, int rank, int direction, int disp, int *source, int *dest)
{
    *source = topo_rank_along(t, rank, direction, -(int64_t)disp);
    *dest = topo_rank_along(t, rank, direction, disp);
}

static int no_topology(const struct comm *c)
{
    return err_set(MPI_ERR_TOPOLOGY, "%s has no topology", comm_label(c));
}

static int graph_first_edge(const struct topology *t, int rank)
{
    return rank ? t->u.graph.ends[rank - 1] : 0;
}

int topology_degrees(const struct comm *c, int *indegree, int *outdegree)
{
    const struct topology *t = c->topology;
    if (!t)
        return no_topology(c);
    switch (t->kind) {
    case MPI_CART:
        *indegree = *outdegree = 2 * t->u.cart.ndims;
        break;
    case MPI_GRAPH:
        *indegree = *outdegree = t->u.graph.ends[c->rank] - graph_first_edge(t, c->rank);
        break;
    default:
        *indegree = t->u.dist.indegree;
        *outdegree = t->u.dist.outdegree;
    }
    return MPI_SUCCESS;
}

int topology_neighbors(const struct comm *c, int *sources, int *destinations)
{
    const struct topology *t = c->topology;
    int indegree, outdegree;
    int rc = topology_degrees(c, &indegree, &outdegree);
    if (rc)
        return rc;
    if (t->kind == MPI_DIST_GRAPH) {
        topo_copy_ints(&sources, t->u.dist.sources, indegree);
        topo_copy_ints(&destinations, t->u.dist.destinations, outdegree);
        return MPI_SUCCESS;
    }
    if (t->kind == MPI_GRAPH)
        memcpy(sources, t->u.graph.neighbors + graph_first_edge(t, c->rank), (size_t)indegree * sizeof(int));
    else
        for (int i = 0; i < t->u.cart.ndims; i++)
            cart_shift(t, c->rank, i, 1, &sources[2 * i], &sources[2 * i + 1]);
    memcpy(destinations, sources, (size_t)outdegree * sizeof(int));
    return MPI_SUCCESS;
}
