/* nodemap.h: the map from ranks to nodes in the text format that PMI-1 servers publish as
 * PMI_process_mapping: `(vector,(first node,nodes,ranks per node),...)`, repeated cyclically. Fishplate's
 * mpiexec puts it into the environment, too, so that a rank needs no message to learn the layout. Depends
 * on libc alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_NODEMAP_H
#define FP_BOOT_NODEMAP_H

#include <stdbool.h>
#include <stdint.h>

/* Limit of ranks on a node: numbers of senders in shared memory have 12 bits (src/net/shm/ring.h). */
#define NODE_RANKS_MAX 4096u

/*
 * Fills node_of[size] and *nnodes. Nodes are renumbered in the order of their first ranks; nodes without
 * ranks are not counted. False: the text is no map; the outputs are then undefined.
 */
bool nodemap_parse(const char *text, uint32_t size, uint32_t *node_of, uint32_t *nnodes);

/* The text of a map, as short as this encoder can make it; the caller frees it. NULL: out of memory. */
char *nodemap_format(const uint32_t *node_of, uint32_t size);

#endif
