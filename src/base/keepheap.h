/* keepheap.h: sets malloc to take blocks of up to 32 MiB from the heap and to keep up to 128 MiB of freed
 * memory. A block from the heap lies in whole huge pages, and is still registered when it is freed and
 * allocated again; a block that malloc maps on its own is neither. It needs libc alone, because softib
 * compiles it too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_KEEPHEAP_H
#define FP_BASE_KEEPHEAP_H

#include <stdbool.h>

/* False: malloc was left unchanged, because the user has set one of its own variables, or it has no such
 * settings. */
bool keepheap_set_thresholds(void);

#endif
