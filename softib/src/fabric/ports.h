/* ports.h: see ports.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_PORTS_H
#define SOFTIB_PORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Does what the plan says up to this moment and reports ports of our own HCAs that changed. Returns when the plan goes on,
 * NEVER: it does not. One thread at a time. */
uint64_t ports_check(void (*changed)(uint32_t linear, bool up));

/* Reports adapters of our own that were taken out, each once. One thread at a time. */
void ports_removed(void (*removed)(uint32_t hca));

#endif
