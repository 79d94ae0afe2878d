/* vis_extract.c: the surface on which a block has a given value, by tetrahedra: each cell is cut into six
 * around one diagonal, the same in all cells, so that the cuts of neighbouring cells coincide; a tetrahedron
 * contains no triangle, one or two.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vis.h"

#include <string.h>

struct corner {
    float at[3], value;
};

/* The point where the edge from a (below the value) to b (not below the value) crosses the surface. All
 * cells that share an edge pass a and b in this order and so compute the same point. */
static void vis_edge_crossing(const struct corner *a, const struct corner *b, float value, float out[3])
{
    float part = (value - a->value) / (b->value - a->value);
    for (int d = 0; d < 3; d++)
        out[d] = a->at[d] + part * (b->at[d] - a->at[d]);
}

/* Orders the corners so that the normal points away from `inside`, a point below the value. */
static void vis_orient_triangle(float t[VIS_TRIANGLE], const struct corner *inside)
{
    float a[3], b[3], c[3], volume = 0;
    for (int d = 0; d < 3; d++) {
        a[d] = t[3 + d] - t[d];
        b[d] = t[6 + d] - t[d];
        c[d] = inside->at[d] - t[d];
    }
    for (int d = 0; d < 3; d++)
        volume += (a[(d + 1) % 3] * b[(d + 2) % 3] - a[(d + 2) % 3] * b[(d + 1) % 3]) * c[d];
    for (int d = 0; volume > 0 && d < 3; d++) {
        const float second = t[3 + d];
        t[3 + d] = t[6 + d];
        t[6 + d] = second;
    }
}

/* Returns the number of triangles. */
static int vis_extract_tetrahedron(const struct corner *const corners[4], float value, float *out)
{
    const struct corner *below[4], *above[4];
    int b = 0, a = 0;
    for (int i = 0; i < 4; i++) {
        if (corners[i]->value < value)
            below[b++] = corners[i];
        else
            above[a++] = corners[i];
    }
    if (b == 0 || a == 0)
        return 0;
    if (b == 2) { /* four edges cross the surface, which is a quadrilateral: two triangles */
        float p[4][3];
        for (int i = 0; i < 4; i++)
            vis_edge_crossing(below[i / 2], above[(i == 1 || i == 2) ? 1 : 0], value, p[i]);
        for (int t = 0; t < 2; t++, out += VIS_TRIANGLE) {
            memcpy(out, p[0], sizeof(p[0]));
            memcpy(out + 3, p[1 + t], sizeof(p[0]));
            memcpy(out + 6, p[2 + t], sizeof(p[0]));
            vis_orient_triangle(out, below[t]);
        }
        return 2;
    }
    for (int i = 0; i < 3; i++)
        vis_edge_crossing(below[b == 1 ? 0 : i], above[a == 1 ? 0 : i], value, out + 3 * i);
    vis_orient_triangle(out, below[0]);
    return 1;
}

/* Bits of a corner's number in cell (x, y, z): 1 for x, 2 for y, 4 for z. */
static int vis_extract_cell(const struct vis_block *v, int cells, const int at[3], float *out)
{
    /* Two corners of each tetrahedron; corners 0 and 7 belong to all six tetrahedra. */
    static const int between[6][2] = {{1, 3}, {3, 2}, {2, 6}, {6, 4}, {4, 5}, {5, 1}};
    const int points = cells + 1;
    struct corner corners[8];
    int below = 0, found = 0;
    for (int i = 0; i < 8; i++) {
        int p[3] = {at[0] + (i & 1), at[1] + (i >> 1 & 1), at[2] + (i >> 2 & 1)};
        for (int d = 0; d < 3; d++)
            corners[i].at[d] = (float)(v->first[d] + p[d]);
        corners[i].value = v->points[(p[2] * points + p[1]) * points + p[0]];
        below += corners[i].value < v->value;
    }
    for (int t = 0; t < 6 && below != 0 && below != 8; t++) {
        const struct corner *four[4] = {&corners[0], &corners[between[t][0]], &corners[between[t][1]],
                                        &corners[7]};
        found += vis_extract_tetrahedron(four, v->value, out + found * VIS_TRIANGLE);
    }
    return found;
}

int vis_extract(const struct vis_block *block, int cells, float *triangles)
{
    int found = 0, at[3];
    for (at[2] = 0; at[2] < cells; at[2]++)
        for (at[1] = 0; at[1] < cells; at[1]++)
            for (at[0] = 0; at[0] < cells; at[0]++)
                found += vis_extract_cell(block, cells, at, triangles + (size_t)found * VIS_TRIANGLE);
    return found;
}
