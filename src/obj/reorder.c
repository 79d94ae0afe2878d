/* reorder.c: placing a grid on nodes. When every node holds equally many processes, the grid is cut into
 * equal boxes, one per node, with the smallest surface, so that few neighbours are on other nodes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "obj/topo_create.h"

#define REORDER_DIMS_MAX 16

struct box {
    int ndims;
    const int *dims;
    int edge[REORDER_DIMS_MAX], best[REORDER_DIMS_MAX];
    double surface, best_surface;
};

/* Tries every box of this volume whose edges divide those of the grid. */
static void search_boxes(struct box *b, int dim, int volume)
{
    if (dim == b->ndims) {
        double surface = 0, whole = 1;
        for (int i = 0; i < b->ndims; i++)
            whole *= b->edge[i];
        for (int i = 0; i < b->ndims; i++)
            surface += b->edge[i] == b->dims[i] ? 0 : whole / b->edge[i];
        if (volume == 1 && surface < b->best_surface) {
            b->best_surface = surface;
            memcpy(b->best, b->edge, sizeof(b->best));
        }
        return;
    }
    for (int e = 1; e <= b->dims[dim] && e <= volume; e++) {
        if (b->dims[dim] % e || volume % e)
            continue;
        b->edge[dim] = e;
        search_boxes(b, dim + 1, volume / e);
    }
}

struct seat {
    uint32_t node;
    int rank;
};

static int compare_seats(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Sorts the processes by node. Returns the number per node if it is equal on all nodes and above 1, else
 * 0. */
static int sort_processes_by_node(const struct comm *c, struct seat *seats)
{
    for (int i = 0; i < c->size; i++)
        seats[i] = (struct seat){c->proc->boot->node_of[group_job_rank(c->group, i)], i};
    qsort(seats, (size_t)c->size, sizeof(*seats), compare_seats);
    int each = 1;
    while (each < c->size && seats[each].node == seats[0].node)
        each++;
    if (each == 1 || each == c->size || c->size % each)
        return 0;
    for (int i = 0; i < c->size; i++)
        if (seats[i].node != seats[i / each * each].node ||
            (i % each == 0 && i && seats[i].node == seats[i - 1].node))
            return 0;
    return each;
}

/* The grid rank of cell number `inside` in box number `which`. */
static int grid_rank(const struct box *b, int which, int inside)
{
    int rank = 0, stride = 1;
    for (int i = b->ndims; i-- > 0;) {
        int boxes = b->dims[i] / b->best[i];
        int coord = which % boxes * b->best[i] + inside % b->best[i];
        which /= boxes;
        inside /= b->best[i];
        rank += coord * stride;
        stride *= b->dims[i];
    }
    return rank;
}

bool cart_reorder(const struct comm *parent, int ndims, const int *dims, int *order)
{
    struct box b = {.ndims = ndims, .dims = dims, .best_surface = 1e300};
    if (ndims < 2 || ndims > REORDER_DIMS_MAX)
        return false;
    if (parent->guests)
        return false; /* node numbers of other jobs are not comparable */
    struct seat *seats = malloc(((size_t)parent->size + 1) * sizeof(*seats));
    int each = seats ? sort_processes_by_node(parent, seats) : 0;
    if (each)
        search_boxes(&b, 0, each);
    bool found = each && b.best_surface < 1e300;
    for (int i = 0; i < parent->size && found; i++)
        order[grid_rank(&b, i / each, i % each)] = seats[i].rank;
    free(seats);
    return found;
}
