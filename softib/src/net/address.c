/* address.c: records addresses that have reached a port.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/address.h"

/* Index of the address of each port that answered last, + 1; 0: none. */
static _Atomic uint8_t taken[FAB_MAX_PORTS];

struct in_addr address_of_port(uint32_t linear)
{
    uint8_t t = taken[linear];
    return proc.fab.port[linear].addr[t ? t - 1 : 0];
}

bool address_is_known(uint32_t linear)
{
    return proc.fab.port[linear].addrs == 1 || taken[linear];
}

bool address_is_registered(uint32_t linear, unsigned *n)
{
    uint8_t t = taken[linear];
    *n = t ? t - 1u : 0;
    return t != 0;
}

void address_register(uint32_t linear, unsigned n)
{
    taken[linear] = (uint8_t)(n + 1);
}

void address_drop(uint32_t linear)
{
    taken[linear] = 0;
}
