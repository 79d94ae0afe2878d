/* devlist.h: the user's list of adapters, FISHPLATE_IB_DEVICES, as a pure function of its text.
 *
 *     mlx5_0,mlx5_1:2     only these: all ports of the first, then port 2 of the second
 *     ^mlx5_2,^mlx5_0:1   all but these
 *     mlx5_0,^mlx5_0:1    only these, less those: an exclusion always wins, at any position
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_DEVLIST_H
#define FP_NET_IB_DEVLIST_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the position of this port among the listed ones (0 first), or -1: excluded. An empty list, or one
 * with only exclusions, allows every port at position 0. */
int devlist_find_position(const char *list, const char *device, int port);

/* Returns the next entry of the list without its ^, and its length, and advances *at. NULL at the end. */
const char *devlist_next(const char **at, size_t *len);

/* True if an entry of `len` bytes, "name" or "name:port", matches this port. */
bool devlist_entry_matches(const char *entry, size_t len, const char *device, int port);

#endif
