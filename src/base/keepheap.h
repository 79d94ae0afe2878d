/* keepheap.h: asks malloc to take blocks of up to 32 MiB from the heap and to keep up to 128 MiB that were freed. A
 * block from the heap lies in whole huge pages and is there again when it is allocated again, registered as it
 * was; a block that malloc maps by itself is neither. Needs libc alone: softib compiles it in too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_KEEPHEAP_H
#define FP_BASE_KEEPHEAP_H

#include <stdbool.h>

/* False: left alone, since the user has set one of malloc's own variables, or malloc has no such settings. */
bool keepheap(void);

#endif
