/* addresses.h: the addresses of this machine at which others may reach it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_ADDRESSES_H
#define FP_BASE_ADDRESSES_H

#include <netinet/in.h>
#include <stddef.h>

/* Lists IPv4 addresses of interfaces that are up, without the loopback, at most `most`. Returns their number. */
int addresses_list_ipv4(struct in_addr *out, int most);

/* The same as text, separated by commas; "" if there is none. Addresses for which `out` has no room are omitted. */
void addresses_format_list(char *out, size_t size, int most);

#endif
