/* poll.h: see poll.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_POLL_H
#define SOFTIB_POLL_H

#include "engine/engine.h"

/* Called by the engine thread when a socket is ready. */
void net_handle_ready(struct watch *w, uint32_t events);
void net_poll(void);
void net_on_cq_armed(void);
int net_sleep(uint64_t until);
void net_after_wakeup(void);

#endif
