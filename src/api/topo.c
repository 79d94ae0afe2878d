/* topo.c: the topology functions: creation over src/obj/topo_create.h, queries over src/obj/topo.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/forward.h"
#include "impl.h"
#include "obj/handle.h"
#include "obj/topo_create.h"

static int topo_check_kind(const struct comm *comm, int kind)
{
    if (comm->topology && comm->topology->kind == kind)
        return MPI_SUCCESS;
    const char *what = kind == MPI_CART    ? "a cartesian"
                       : kind == MPI_GRAPH ? "a graph"
                                           : "a distributed graph";
    return err_set(MPI_ERR_TOPOLOGY, "%s does not have %s topology", comm_label(comm), what);
}

int impl_Dims_create(int nnodes, int ndims, int dims[])
{
    if (ndims > 0 && !dims)
        return err_set(MPI_ERR_ARG, "dims is a null pointer");
    return dims_create(nnodes, ndims, dims);
}

int impl_Cart_sub(struct comm *comm, const int remain_dims[], MPI_Comm *newcomm)
{
    struct comm *made = NULL;
    int rc = topo_check_kind(comm, MPI_CART);
    if (!rc && comm->topology->u.cart.ndims > 0 && !remain_dims)
        rc = err_set(MPI_ERR_ARG, "remain_dims is a null pointer");
    if (!rc)
        rc = cart_sub(comm, remain_dims, &made);
    return comm_return_handle(rc, made, newcomm);
}

int impl_Cart_map(struct comm *comm, int ndims, const int dims[], const int periods[], int *newrank)
{
    int size;
    int rc = cart_check(comm, ndims, dims, periods, &size);
    if (!rc)
        *newrank = comm->rank < size ? comm->rank : MPI_UNDEFINED;
    return rc;
}

int impl_Cartdim_get(struct comm *comm, int *ndims)
{
    int rc = topo_check_kind(comm, MPI_CART);
    if (!rc)
        *ndims = comm->topology->u.cart.ndims;
    return rc;
}

static int check_room(int length, int needed, const char *name)
{
    return length < needed ? err_set(MPI_ERR_ARG, "%s is %d; needed are %d", name, length, needed)
                           : MPI_SUCCESS;
}

int impl_Cart_get(struct comm *comm, int maxdims, int dims[], int periods[], int coords[])
{
    int rc = topo_check_kind(comm, MPI_CART);
    const struct topology *t = comm->topology;
    if (!rc)
        rc = check_room(maxdims, t->u.cart.ndims, "maxdims");
    if (rc || t->u.cart.ndims == 0)
        return rc;
    if (!dims || !periods || !coords)
        return err_set(MPI_ERR_ARG, "dims, periods or coords is a null pointer");
    memcpy(dims, t->u.cart.dims, (size_t)t->u.cart.ndims * sizeof(int));
    memcpy(periods, t->u.cart.periods, (size_t)t->u.cart.ndims * sizeof(int));
    cart_coords_of(t, comm->rank, maxdims, coords);
    return MPI_SUCCESS;
}

int impl_Cart_rank(struct comm *comm, const int coords[], int *rank)
{
    int rc = topo_check_kind(comm, MPI_CART);
    if (rc)
        return rc;
    const struct topology *t = comm->topology;
    if (t->u.cart.ndims > 0 && !coords)
        return err_set(MPI_ERR_ARG, "coords is a null pointer");
    int found = cart_rank_of(t, coords);
    if (found == MPI_PROC_NULL)
        return err_set(MPI_ERR_ARG, "the coordinates lie outside a dimension that is not periodic");
    *rank = found;
    return MPI_SUCCESS;
}

static int check_rank(const struct comm *comm, int rank)
{
    if (rank >= 0 && rank < comm->size)
        return MPI_SUCCESS;
    return err_set(MPI_ERR_RANK, "rank is %d; the communicator's ranks are 0 to %d", rank, comm->size - 1);
}

int impl_Cart_coords(struct comm *comm, int rank, int maxdims, int coords[])
{
    int rc = topo_check_kind(comm, MPI_CART);
    if (!rc)
        rc = check_rank(comm, rank);
    if (!rc)
        rc = check_room(maxdims, comm->topology->u.cart.ndims, "maxdims");
    if (!rc && comm->topology->u.cart.ndims > 0 && !coords)
        rc = err_set(MPI_ERR_ARG, "coords is a null pointer");
    if (!rc)
        cart_coords_of(comm->topology, rank, maxdims, coords);
    return rc;
}

int impl_Cart_shift(struct comm *comm, int direction, int disp, int *rank_source, int *rank_dest)
{
    int rc = topo_check_kind(comm, MPI_CART);
    if (rc)
        return rc;
    if (direction < 0 || direction >= comm->topology->u.cart.ndims)
        return err_set(MPI_ERR_ARG, "direction is %d; the grid has %d dimensions", direction,
                       comm->topology->u.cart.ndims);
    cart_shift(comm->topology, comm->rank, direction, disp, rank_source, rank_dest);
    return MPI_SUCCESS;
}

int impl_Graph_map(struct comm *comm, int nnodes, const int indx[], const int edges[], int *newrank)
{
    int rc = graph_check(comm, nnodes, indx, edges);
    if (!rc)
        *newrank = comm->rank < nnodes ? comm->rank : MPI_UNDEFINED;
    return rc;
}

int impl_Graphdims_get(struct comm *comm, int *nnodes, int *nedges)
{
    int rc = topo_check_kind(comm, MPI_GRAPH);
    if (rc)
        return rc;
    *nnodes = comm->topology->u.graph.nodes;
    *nedges = comm->topology->u.graph.edges;
    return MPI_SUCCESS;
}

static void copy_ints_bounded(int *to, const int *from, int room, int needed)
{
    int n = MIN(room, needed);
    if (n > 0)
        memcpy(to, from, (size_t)n * sizeof(int));
}

int impl_Graph_get(struct comm *comm, int maxindex, int maxedges, int indx[], int edges[])
{
    int rc = topo_check_kind(comm, MPI_GRAPH);
    if (rc)
        return rc;
    const struct topology *t = comm->topology;
    if ((maxindex > 0 && !indx) || (maxedges > 0 && t->u.graph.edges > 0 && !edges))
        return err_set(MPI_ERR_ARG, "index or edges is a null pointer");
    copy_ints_bounded(indx, t->u.graph.ends, maxindex, t->u.graph.nodes);
    copy_ints_bounded(edges, t->u.graph.neighbors, maxedges, t->u.graph.edges);
    return MPI_SUCCESS;
}

static int graph_neighbors(struct comm *comm, int rank, const int **begin, int *count)
{
    int rc = topo_check_kind(comm, MPI_GRAPH);
    if (!rc)
        rc = check_rank(comm, rank);
    if (rc)
        return rc;
    const struct topology *t = comm->topology;
    int first = rank ? t->u.graph.ends[rank - 1] : 0;
    *begin = t->u.graph.neighbors + first;
    *count = t->u.graph.ends[rank] - first;
    return MPI_SUCCESS;
}

int impl_Graph_neighbors_count(struct comm *comm, int rank, int *nneighbors)
{
    const int *begin;
    return graph_neighbors(comm, rank, &begin, nneighbors);
}

int impl_Graph_neighbors(struct comm *comm, int rank, int maxneighbors, int neighbors[])
{
    const int *begin;
    int count;
    int rc = graph_neighbors(comm, rank, &begin, &count);
    if (!rc)
        copy_ints_bounded(neighbors, begin, maxneighbors, count);
    return rc;
}

int impl_Dist_graph_neighbors_count(struct comm *comm, int *indegree, int *outdegree, int *weighted)
{
    int rc = topo_check_kind(comm, MPI_DIST_GRAPH);
    if (rc)
        return rc;
    *indegree = comm->topology->u.dist.indegree;
    *outdegree = comm->topology->u.dist.outdegree;
    *weighted = comm->topology->u.dist.weighted;
    return MPI_SUCCESS;
}

int impl_Dist_graph_neighbors(struct comm *comm, int maxindegree, int sources[], int sourceweights[],
                              int maxoutdegree, int destinations[], int destweights[])
{
    int rc = topo_check_kind(comm, MPI_DIST_GRAPH);
    if (rc)
        return rc;
    const struct topology *t = comm->topology;
    copy_ints_bounded(sources, t->u.dist.sources, maxindegree, t->u.dist.indegree);
    copy_ints_bounded(destinations, t->u.dist.destinations, maxoutdegree, t->u.dist.outdegree);
    if (!t->u.dist.weighted)
        return MPI_SUCCESS;
    if (sourceweights != MPI_UNWEIGHTED)
        copy_ints_bounded(sourceweights, t->u.dist.source_weights, maxindegree, t->u.dist.indegree);
    if (destweights != MPI_UNWEIGHTED)
        copy_ints_bounded(destweights, t->u.dist.destination_weights, maxoutdegree, t->u.dist.outdegree);
    return MPI_SUCCESS;
}
