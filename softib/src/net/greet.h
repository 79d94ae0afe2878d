/* greet.h: see greet.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_GREET_H
#define SOFTIB_GREET_H

#include <stdbool.h>
#include <stdint.h>

/* Listens on the addresses of this node. Returns false if the port number is in use. */
bool greet_listen(uint16_t port);
bool greet_start(void);
void greet_tick(uint64_t now);
void greet_free_finished(void); /* frees closed callers; called when no event is being handled */
void greet_reset_after_fork(void);

#endif
