/* nodemap.h: which rank is on which node, in the text form that PMI-1 servers publish as PMI_process_mapping:
 * `(vector,(first node,nodes,ranks per node),...)`, repeated cyclically. Our mpiexec also puts it into the
 * environment, so that a job learns its layout without a message. It depends on libc alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_NODEMAP_H
#define FP_BOOT_NODEMAP_H

#include <stdbool.h>
#include <stdint.h>

/* Ranks of one node: numbers of senders in shared memory have 12 bits (src/net/shm/ring.h). */
#define NODE_RANKS_MAX 4096u

/*
 * Fills node_of[size] and *nnodes. Nodes are renumbered in order of first use, so that a node without
 * ranks never counts. False when the text is not a map; the outputs are then undefined.
 */
bool nodemap_parse(const char *text, uint32_t size, uint32_t *node_of, uint32_t *nnodes);

/* The shortest text we know for that map, or NULL when memory is out; the caller frees it. */
char *nodemap_format(const uint32_t *node_of, uint32_t size);

#endif
