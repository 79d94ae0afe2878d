/* plain.h: the machine whose times are easy to add up, with several rails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_SIM_PLAIN_H
#define FP_TESTS_SIM_PLAIN_H

#include "machine.h"

static struct machine plain_machine(int rails)
{
    struct machine m = machine_plain;
    m.rails = rails;
    return m;
}

#endif
