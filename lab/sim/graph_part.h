/* graph_part.h: interface between graph.c, which reads the text, and graph_routes.c, which computes the
 * routes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_GRAPH_PART_H
#define FP_SIM_GRAPH_PART_H

#include "graph.h"

/* Computes first, next_links, up, down_first, down. NULL, or the reason of a failure. */
const char *graph_make_routes(struct graph *g);

#endif
