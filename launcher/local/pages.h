/* pages.h: status pages of this host's ranks, for an agent; `fishplate ps --pages` collects them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_PAGES_H
#define FP_LAUNCHER_PAGES_H

#include <stddef.h>

#include "core/loop.h"

/* Reads the pages of a job; `done` is called before or after this function returns, with no bytes if there
 * is no reply. `job` must stay valid until then. */
void pages_read(struct loop *l, const char *job, uint32_t number,
                void (*done)(void *ctx, uint32_t number, const char *data, size_t len), void *ctx);

#endif
