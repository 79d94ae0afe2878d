/* pages.h: status pages of this host's ranks, for an agent; `fishplate ps --pages` collects them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_PAGES_H
#define FP_LAUNCHER_PAGES_H

#include <stddef.h>

#include "core/loop.h"

/* `done` is called now or later, with no bytes if there is no reply. `job` must stay valid until then. */
void pages_read(struct loop *l, const char *job, uint32_t question,
                void (*done)(void *ctx, uint32_t question, const char *data, size_t len), void *ctx);

#endif
