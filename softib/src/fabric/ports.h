/* ports.h: see ports.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_PORTS_H
#define SOFTIB_PORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Applies the planned changes of port states up to now and reports ports of this node's HCAs that changed.
 * Returns the time of the next change, or NEVER. One thread at a time. */
uint64_t ports_report_changes(void (*changed)(uint32_t linear, bool up));

/* Reports removed adapters of this node, each once. One thread at a time. */
void ports_report_removed_adapters(void (*removed)(uint32_t hca));

#endif
