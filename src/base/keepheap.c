/* keepheap.c: configures malloc. The settings affect the C library's malloc only.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/keepheap.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#ifdef M_MMAP_THRESHOLD
/* True if the user has configured malloc by its environment variables. */
static bool malloc_is_configured(void)
{
    static const char *const names[] = {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_",
                                        "MALLOC_MMAP_MAX_", "MALLOC_TOP_PAD_"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i]))
            return true;
    const char *tunables = getenv("GLIBC_TUNABLES");
    return tunables && strstr(tunables, "glibc.malloc");
}

bool keepheap_set_thresholds(void)
{
    if (malloc_is_configured())
        return false;
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the maximum that mallopt accepts */
    mallopt(M_TRIM_THRESHOLD, 128 << 20);
    mallopt(M_TOP_PAD,
            4 << 20); /* memory behind the last block, so that huge pages contain that block, too */
    return true;
}
#else
bool keepheap_set_thresholds(void)
{
    return false;
}
#endif
