/* graph_part.h: between graph.c, which reads, and graph_routes.c, which finds the routes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_GRAPH_PART_H
#define FP_SIM_GRAPH_PART_H

#include "graph.h"

/* Fills first, next_links, up, down_first, down. NULL, or the reason of a failure. */
const char *graph_routes(struct graph *g);

#endif
