/* softib.h: describes the job's nodes to softib, the software adapter, when neither the user nor mpiexec has
 * done so. softib carries messages between nodes that have no InfiniBand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_SOFTIB_H
#define FP_BOOT_SOFTIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/boot.h"

/*
 * In three steps around two fences that the caller needs anyway, before softib's library is loaded; each does nothing
 * where the fabric is described already (by mpiexec or the user). All ranks: what the node has; fence. Rank 0: the
 * description of all nodes, and one line that says what the messages travel on, unless the user asked for it; fence.
 * All ranks: sets SOFTIB_FABRIC and SOFTIB_NODE in the environment. A fabric over TCP, described or not, also gets a
 * key that rank 0 makes (SOFTIB_KEY), unless the user gave one.
 */
int boot_softib_publish_key(struct boot *b);
int boot_softib_describe(struct boot *b, bool asked_for);
int boot_softib_fetch_key(struct boot *b);

/* What a node publishes for softib's fabric. */
struct softib_node {
    char machine[160];   /* the same for nodes that share a machine, its network and its process ids */
    char addresses[160]; /* separated by commas; may be empty */
};

/* The text of SOFTIB_FABRIC for these nodes, allocated; NULL: no memory. Pure. */
char *softib_describe(const struct softib_node *nodes, uint32_t n, uint64_t job);

#endif
