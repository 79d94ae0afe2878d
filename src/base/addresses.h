/* addresses.h: the addresses of this machine at which others may reach it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_ADDRESSES_H
#define FP_BASE_ADDRESSES_H

#include <stddef.h>

/* At most `most` IPv4 addresses of interfaces that are up, without the loopback, separated by commas. One that has no room
 * in `out` is left out; "" when there is none. */
void own_addresses(char *out, size_t size, int most);

#endif
