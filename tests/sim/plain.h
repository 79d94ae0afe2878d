/* plain.h: a machine whose times are easy to add up: 1 byte a nanosecond, no headers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_SIM_PLAIN_H
#define FP_TESTS_SIM_PLAIN_H

#include "machine.h"

static struct machine plain_machine(int rails)
{
    return (struct machine){.copy_rate = 1,
                            .reduce_rate = 1,
                            .link_rate = 1,
                            .link_ns = 10,
                            .switch_ns = 100,
                            .mtu = 1000,
                            .buffers = 16,
                            .radix = 8,
                            .rails = rails};
}

#endif
