/* graph_part.h: between graph.c, which reads, and graph_routes.c, which finds the ways.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_GRAPH_PART_H
#define FP_SIM_GRAPH_PART_H

#include "graph.h"

/* Fills first, ways, up, down_first, down. NULL, or why not. */
const char *graph_routes(struct graph *g);

#endif
