/* vis.h: a block of a volume, and the surface in it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_VIS_H
#define FP_LAB_VIS_H

#include <stddef.h>

enum { VIS_TRIANGLE = 9 }; /* floats: three corners */

/* A block as sent. `points` holds (cells + 1)^3 values; x varies fastest. */
struct vis_block {
    int first[3];
    float value; /* value of the surface */
    float points[];
};

static inline size_t vis_block_bytes(int cells)
{
    size_t points = (size_t)(cells + 1);
    return sizeof(struct vis_block) + points * points * points * sizeof(float);
}

/* Upper limit: six tetrahedra for each cell, two triangles for each. */
static inline size_t vis_triangles_max(int cells)
{
    return (size_t)cells * (size_t)cells * (size_t)cells * 12;
}

/* vis_extract.c: returns the number of triangles; their normals point to larger values. */
int vis_extract(const struct vis_block *block, int cells, float *triangles);

#endif
