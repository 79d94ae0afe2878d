/* mg_grid.h: the grids of the multigrid kernel: one rank's block of each, with a layer of its neighbours'
 * points around it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_KERNELS_MG_GRID_H
#define FP_LAB_KERNELS_MG_GRID_H

#include "kernels.h"

enum { MG_LEVELS_MAX = 16 };

/* Partition of the cube among ranks; dimension 0 is contiguous in memory. */
struct mg_ranks {
    struct kernel_run *run;
    int count[3], at[3];    /* ranks in each dimension, position of this rank */
    int lower[3], upper[3]; /* neighbouring ranks, periodic */
    int capacity;           /* doubles of each buffer */
    double *out[2], *in[2]; /* faces in flight */
};

/* A level with 2^k points in each dimension. If a coarse level has too few points for all ranks, the level
 * is `whole`: every rank holds and computes all points. */
struct mg_grid {
    struct mg_ranks *ranks;
    bool whole;
    int points;         /* points of the whole level in one dimension */
    int n[3], first[3]; /* points of this block */
    size_t row, plane;  /* distance in memory to the next point of dimension 1 and 2 */
};

/* Index of a point of the block; -1 and n are the layers of the neighbours. */
static inline size_t mg_index(const struct mg_grid *g, int x, int y, int z)
{
    return (size_t)(x + 1) + g->row * (size_t)(y + 1) + g->plane * (size_t)(z + 1);
}

size_t mg_block_doubles(const struct mg_grid *g); /* doubles in the block and its layer */
void mg_ranks_make(struct mg_ranks *r, struct kernel_run *run, int points);
void mg_ranks_free(struct mg_ranks *r);
void mg_grid_make(struct mg_grid *g, struct mg_ranks *ranks, int points);

/* Fetches the layers around v from the neighbours. */
void mg_exchange(const struct mg_grid *g, double *v);

/* Fills v of a `whole` level from the blocks of n points that the ranks have computed. */
void mg_gather(const struct mg_grid *g, const int n[3], double *v);

#endif
