/* plain.h: the test machine machine_simple with a given number of rails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_SIM_PLAIN_H
#define FP_TESTS_SIM_PLAIN_H

#include "machine.h"

static struct machine make_simple_machine(int rails)
{
    struct machine m = machine_simple;
    m.rails = rails;
    return m;
}

#endif
