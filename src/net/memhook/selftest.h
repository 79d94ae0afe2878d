/* selftest.h: tests whether the hooks report every release of memory. Only for memhook.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMHOOK_SELFTEST_H
#define FP_NET_MEMHOOK_SELFTEST_H

#include <stddef.h>
#include <stdint.h>

/* A listener that must be installed while the test runs. */
void selftest_record_notification(void *ctx, uintptr_t start, size_t length);

/* Returns NULL if every release of memory was reported, else a description of the one that was not. */
const char *selftest_run(void);

#endif
