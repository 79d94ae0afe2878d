/* window_memory.h: the memory of a window: allocated in the node's shared memory if another rank of the
 * window is on the node, registered with the adapter if other nodes access it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_RMA_WINDOW_MEMORY_H
#define FP_RMA_WINDOW_MEMORY_H

#include "rma/win.h"

/* Allocates the memory or uses the program's, and publishes its description in the directory. */
int win_memory_open(struct win *w);
/* Called when all members have called win_memory_open: maps the memory of MPI_Win_allocate_shared. */
int win_memory_map_shared(struct win *w, struct comm *parent);
/* Waits for all ranks; returns the error class of a rank that failed, or 0. */
int win_agree_on_creation(struct win *w, struct comm *parent, int rc);
void win_memory_close(struct win *w);

/* Returns the rank's memory as mapped here, or NULL. *mapping: a new mapping for net_span_unmap(). */
char *win_memory_map_target(struct win *w, int rank, const struct win_target *t, void **mapping);

/* Collective: exports windows in GPU memory to the other ranks. */
int win_device_share(struct win *w, struct comm *parent);
/* Maps the GPU memory of a rank of this node; NULL: it cannot be mapped. */
char *win_device_map(struct win_peer *p);
void win_device_close(struct win *w);

bool win_is_rank_on_node(const struct win *w, int rank);

#endif
