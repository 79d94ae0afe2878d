/* counter.c: finds the counters that the linker has collected in one section.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/counter.h"

extern struct counter *const __start_fp_counters[] __attribute__((weak, visibility("hidden")));
extern struct counter *const __stop_fp_counters[] __attribute__((weak, visibility("hidden")));

size_t counters_count(void)
{
    return (size_t)(__stop_fp_counters - __start_fp_counters);
}

struct counter *counters_get(size_t index)
{
    return __start_fp_counters[index];
}
