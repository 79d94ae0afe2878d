/* keepheap.h: configures malloc to allocate blocks of up to 32 MiB from the heap and to retain up to 128
 * MiB of freed memory. A block of the heap lies in whole huge pages and stays registered when it is freed
 * and allocated again; a block that malloc maps separately has neither property. Depends on libc alone,
 * because softib compiles it, too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_KEEPHEAP_H
#define FP_BASE_KEEPHEAP_H

#include <stdbool.h>

/* False: malloc was not changed, because the user has set an environment variable of malloc, or because
 * the C library has no such settings. */
bool keepheap_set_thresholds(void);

#endif
