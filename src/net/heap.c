/* heap.c: see heap.h. Only the C library's own malloc listens; with another one this does nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/heap.h"

#include <malloc.h>
#include <stdbool.h>
#include <string.h>

#include "base/tunable.h"

enum { MALLOC_KEEP, MALLOC_LEAVE };
static TUNABLE_CHOICE(policy, "MALLOC", MALLOC_KEEP, "keep|leave",
                      "Whether malloc is told to keep freed memory, up to 128 MiB at the end of the heap, so "
                      "that buffers that are freed and allocated again stay registered (keep; only where a "
                      "network adapter is used), or is left alone (leave).");

/* The user has an opinion. */
static bool malloc_set(void)
{
    static const char *const names[] = {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_",
                                        "MALLOC_MMAP_MAX_", "MALLOC_TOP_PAD_"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (env_get(names[i]))
            return true;
    const char *tunables = env_get("GLIBC_TUNABLES");
    return tunables && strstr(tunables, "glibc.malloc");
}

void heap_keep(void)
{
#ifdef M_MMAP_THRESHOLD
    if (policy.value != MALLOC_KEEP || malloc_set())
        return;
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most it takes */
    mallopt(M_TRIM_THRESHOLD, 128 << 20);
    mallopt(M_TOP_PAD, 4 << 20); /* room at the end, so that the last block too can lie in huge pages */
#endif
}
