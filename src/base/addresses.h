/* addresses.h: the addresses of this machine at which others may reach it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_ADDRESSES_H
#define FP_BASE_ADDRESSES_H

#include <netinet/in.h>
#include <stddef.h>

/* At most `most` IPv4 addresses of interfaces that are up, without the loopback. Returns their number. */
int own_address_list(struct in_addr *out, int most);

/* The same as text, separated by commas. An address that has no room in `out` is left out; "" if there is none. */
void own_addresses(char *out, size_t size, int most);

#endif
