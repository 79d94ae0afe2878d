/* devlist.h: the user's list of adapters, FISHPLATE_IB_DEVICES, as a pure function of its text.
 *
 *     mlx5_0,mlx5_1:2     only these: all ports of the first, then port 2 of the second
 *     ^mlx5_2,^mlx5_0:1   all but these
 *     mlx5_0,^mlx5_0:1    only these, less those: an exclusion always wins, wherever it stands
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_DEVLIST_H
#define FP_NET_IB_DEVLIST_H

#include <stdbool.h>
#include <stddef.h>

/* The place of this port among the wanted (0 first), or -1: not wanted. An empty list wants every port, all
 * at place 0, and so does one that only excludes. */
int devlist_find_position(const char *list, const char *device, int port);

/* The next entry of the list without its ^, and its length; *at moves on. NULL at the end. */
const char *devlist_next(const char **at, size_t *len);

/* True if an entry of `len` bytes, "name" or "name:port", names this port. */
bool devlist_entry_matches(const char *entry, size_t len, const char *device, int port);

#endif
