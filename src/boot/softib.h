/* softib.h: describes the job's nodes to softib, the software adapter for nodes without InfiniBand, if
 * neither the user nor mpiexec has described them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_SOFTIB_H
#define FP_BOOT_SOFTIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/boot.h"

/* Three steps before softib's library is loaded, with a fence after the first and the second one. If
 * mpiexec or the user has described the fabric, only the key is handled.
 * 1. All ranks: the first rank of each node publishes the node's addresses.
 * 2. Rank 0 publishes the description of all nodes and, for a fabric over TCP without a key of the user, a
 * new key.
 *    Unless asked_for, logs which network carries the messages.
 * 3. All ranks set SOFTIB_FABRIC, SOFTIB_NODE and SOFTIB_KEY in the environment. */
int boot_softib_publish_node(struct boot *b);
int boot_softib_publish_fabric(struct boot *b, bool asked_for);
int boot_softib_set_environment(struct boot *b);

/* The value that a node publishes for softib's fabric. */
struct softib_node {
    char machine[160];   /* equal for nodes on one machine with one network and one process namespace */
    char addresses[160]; /* separated by commas; may be empty */
};

/* The text of SOFTIB_FABRIC for these nodes, allocated; NULL: no memory. Pure. */
char *softib_describe(const struct softib_node *nodes, uint32_t n, uint64_t job);

#endif
