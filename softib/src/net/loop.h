/* loop.h: the lock of this wire, the set of its sockets, and its timer. The lock protects all state of
 * net/ unless a comment states otherwise; it is acquired after a QP's lock. Polling threads of the program
 * and the engine thread execute the same code; the one that holds the lock reads the sockets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_LOOP_H
#define SOFTIB_LOOP_H

#include "engine/engine.h"

void net_lock(void);
bool net_try_lock(void);
void net_unlock(void);

/* ready: called by the engine thread, without the lock, when a socket is ready. tick: see
 * net_schedule_tick. */
bool loop_start(void (*ready)(struct watch *w, uint32_t events), void (*tick)(uint64_t now));
void loop_reset_after_fork(void);

bool net_watch(int fd, struct watch *w, uint32_t events);
void net_watch_change(int fd, struct watch *w, uint32_t events);
int loop_run(void); /* calls the watches of sockets that are ready, without waiting; returns their number */
bool loop_has_ready_sockets(void);    /* true if a socket is ready */
void loop_set_watching(bool on);      /* starts or ends watching of the sockets by the engine thread */
void net_schedule_tick(uint64_t due); /* calls `tick` at that time or soon after, under the lock */

/* True while polling threads of the program read the sockets instead of the engine thread, which checks again
 * after a millisecond. */
extern atomic_bool loop_aside;

static inline bool net_loop_is_aside(void)
{
    return atomic_load_explicit(&loop_aside, memory_order_relaxed);
}

#endif
