/* address.h: records the addresses at which connections have reached a port. Readers need no lock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_NET_ADDRESS_H
#define SOFTIB_NET_ADDRESS_H

#include "fabric/proc.h"

/* The address for a datagram to that port: the one that answered last, else the first. */
struct in_addr address_of_port(uint32_t linear);
bool address_is_known(uint32_t linear);
bool address_is_registered(uint32_t linear, unsigned *n); /* *n: index of the address that answered last */
void address_register(uint32_t linear, unsigned n);
void address_drop(uint32_t linear);

#endif
