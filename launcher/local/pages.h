/* pages.h: what the ranks of this host tell about themselves, for an agent: `fishplate ps --pages` collects it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_PAGES_H
#define FP_LAUNCHER_PAGES_H

#include <stddef.h>

#include "core/loop.h"

/* `done` comes later or at once, with no bytes when there is no answer. `job` must stay. */
void pages_read(struct loop *l, const char *job, uint32_t question,
                void (*done)(void *ctx, uint32_t question, const char *data, size_t len), void *ctx);

#endif
