/* topo_create.c: cartesian and graph communicators: contain the first processes of the parent, reordered by
 * node if the program permits reordering.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/topo_create.h"

#include <stdlib.h>

#include "obj/create.h"

/* Creates a communicator with topology `t` of the first `size` processes in the given order (NULL: rank
 * order). Takes ownership of `t`. */
static int create_with_topology(struct comm *parent, int size, const int *order, struct topology *t,
                                struct comm **out)
{
    struct group *g = NULL;
    uint32_t *table = malloc(((size_t)size + 1) * sizeof(*table));
    int rc = table ? MPI_SUCCESS : err_set(MPI_ERR_NO_MEM, "out of memory for a group of %d processes", size);
    for (int i = 0; i < size && !rc; i++)
        table[i] = group_job_rank(parent->group, order ? order[i] : i);
    if (!rc)
        rc = group_from_table(parent->proc->rank, table, size, &g);
    free(table);
    if (!rc)
        rc = comm_create(parent, g, out);
    group_release(g);
    if (!rc && *out) {
        (*out)->topology = t;
        return MPI_SUCCESS;
    }
    topology_release(t);
    return rc;
}

int cart_check(const struct comm *parent, int ndims, const int *dims, const int *periods, int *size)
{
    int64_t product = 1;
    int rc = comm_check_intra(parent);
    if (rc)
        return rc;
    if (ndims < 0)
        return err_set(MPI_ERR_DIMS, "ndims is %d; it must not be negative", ndims);
    if (ndims > 0 && (!dims || !periods))
        return err_set(MPI_ERR_ARG, "dims or periods is a null pointer");
    for (int i = 0; i < ndims; i++) {
        if (dims[i] <= 0)
            return err_set(MPI_ERR_DIMS, "dims[%d] is %d; it must be positive", i, dims[i]);
        product *= dims[i];
        if (product > parent->size)
            return err_set(MPI_ERR_DIMS, "the grid is larger than %s, which has %d processes",
                           comm_label(parent), parent->size);
    }
    *size = (int)product;
    return MPI_SUCCESS;
}

int cart_create(struct comm *parent, int ndims, const int *dims, const int *periods, bool reorder,
                struct comm **out)
{
    int size;
    int rc = cart_check(parent, ndims, dims, periods, &size);
    if (rc)
        return rc;
    struct topology *t;
    int *order = malloc(((size_t)size + 1) * sizeof(*order));
    rc =
        order ? topology_cart(ndims, dims, periods, &t) : err_set(MPI_ERR_NO_MEM, "out of memory for a grid");
    if (!rc) {
        bool moved = reorder && size == parent->size && cart_reorder(parent, ndims, dims, order);
        rc = create_with_topology(parent, size, moved ? order : NULL, t, out);
    }
    free(order);
    return rc;
}

int cart_sub(struct comm *cart, const int *remain, struct comm **out)
{
    const struct topology *t = cart->topology;
    int ndims = t->u.cart.ndims, kept = 0, color = 0, key = 0;
    size_t words = (size_t)ndims + 1;
    int *dims = malloc(3 * words * sizeof(*dims));
    if (!dims)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a grid");
    int *periods = dims + words, *coords = periods + words;
    cart_coords_of(t, cart->rank, ndims, coords);
    for (int i = 0; i < ndims; i++) {
        int extent = t->u.cart.dims[i];
        if (remain[i]) {
            dims[kept] = extent;
            periods[kept++] = t->u.cart.periods[i];
            key = key * extent + coords[i];
        } else {
            color = color * extent + coords[i];
        }
    }
    struct topology *sub;
    int rc = topology_cart(kept, dims, periods, &sub);
    free(dims);
    if (rc)
        return rc;
    rc = comm_split(cart, color, key, out);
    if (rc) {
        topology_release(sub);
        return rc;
    }
    (*out)->topology = sub;
    return MPI_SUCCESS;
}

int graph_check(const struct comm *parent, int nodes, const int *ends, const int *neighbors)
{
    int rc = comm_check_intra(parent);
    if (rc)
        return rc;
    if (nodes < 0 || nodes > parent->size)
        return err_set(MPI_ERR_ARG, "nnodes is %d; %s has %d processes", nodes, comm_label(parent),
                       parent->size);
    if (nodes > 0 && !ends)
        return err_set(MPI_ERR_ARG, "index is a null pointer");
    for (int i = 0; i < nodes; i++)
        if (ends[i] < (i ? ends[i - 1] : 0))
            return err_set(MPI_ERR_ARG, "index[%d] is %d, which is less than the one before", i, ends[i]);
    int edges = nodes ? ends[nodes - 1] : 0;
    if (edges > 0 && !neighbors)
        return err_set(MPI_ERR_ARG, "edges is a null pointer");
    for (int i = 0; i < edges; i++)
        if (neighbors[i] < 0 || neighbors[i] >= nodes)
            return err_set(MPI_ERR_ARG, "edges[%d] is %d; the graph's nodes are 0 to %d", i, neighbors[i],
                           nodes - 1);
    return MPI_SUCCESS;
}

int graph_create(struct comm *parent, int nodes, const int *ends, const int *neighbors, bool reorder,
                 struct comm **out)
{
    (void)reorder; /* reordering a general graph is not implemented */
    struct topology *t;
    int rc = graph_check(parent, nodes, ends, neighbors);
    if (!rc)
        rc = topology_graph(nodes, ends, neighbors, &t);
    return rc ? rc : create_with_topology(parent, nodes, NULL, t, out);
}
