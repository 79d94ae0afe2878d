/* addresses.h: network addresses of this machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_ADDRESSES_H
#define FP_BASE_ADDRESSES_H

#include <netinet/in.h>
#include <stddef.h>

/* Lists at most `most` IPv4 addresses of interfaces that are up, without the loopback. Returns their
 * number. */
int addresses_list_ipv4(struct in_addr *out, int most);

/* Formats the addresses of addresses_list_ipv4 as text, separated by commas; "" without addresses. Omits
 * addresses that do not fit in `out`. */
void addresses_format_list(char *out, size_t size, int most);

#endif
