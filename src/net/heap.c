/* heap.c: see heap.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/heap.h"

#include "base/keepheap.h"
#include "base/tunable.h"

enum { MALLOC_KEEP, MALLOC_LEAVE };
static TUNABLE_CHOICE(policy, "MALLOC", MALLOC_KEEP, "keep|leave",
                      "Whether malloc is set to keep freed memory, up to 128 MiB at the end of the heap, so "
                      "that buffers that are freed and allocated again stay registered (keep; only where a "
                      "network adapter is used), or is left alone (leave).");

void heap_keep(void)
{
    if (policy.value == MALLOC_KEEP)
        keepheap();
}
