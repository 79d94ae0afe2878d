/* loop.h: the basis of this wire: its lock, the set of its sockets, its clock. The lock protects all state of
 * net/ unless a comment states otherwise; it is taken after a QP's lock. A polling program thread and the
 * engine thread run the same code; the one that holds the lock drains the sockets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_LOOP_H
#define SOFTIB_LOOP_H

#include "engine/engine.h"

void net_lock(void);
bool net_try_lock(void);
void net_unlock(void);

/* `ready`: a socket has something, called by the engine thread without the lock; `tick`: see net_schedule_tick. */
bool loop_start(void (*ready)(struct watch *w, uint32_t events), void (*tick)(uint64_t now));
void loop_reset_after_fork(void);

bool net_watch(int fd, struct watch *w, uint32_t events);
void net_watch_change(int fd, struct watch *w, uint32_t events);
int loop_run(void); /* runs the watches of sockets that have something, without waiting; returns how many */
bool loop_pending(void);              /* some socket has something */
void loop_set_watching(bool on);      /* whether the engine thread watches the sockets */
void net_schedule_tick(uint64_t due); /* the clock ticks then or soon after, under the lock */

/* The engine thread leaves the sockets to a polling program, and looks again in a millisecond. */
extern atomic_bool loop_aside;

static inline bool net_loop_is_aside(void)
{
    return atomic_load_explicit(&loop_aside, memory_order_relaxed);
}

#endif
