/*
 * The engine: one thread per process that sleeps until work cannot be done by the caller: a timer of a
 * deferred send (retry, rate, latency), an event a peer left in the arena, the death of a peer, bytes
 * on a socket.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SOFTIB_ENGINE_H
#define SOFTIB_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

struct peer;
struct qp;

/* Something the engine's epoll watches. */
struct watch {
    void (*ready)(struct watch *w, uint32_t events);
};

bool engine_start(void);
void engine_forget(void); /* in a forked child */
bool engine_listen(uint32_t slot);
void engine_watch_peer(struct peer *p);
bool engine_add(int fd, struct watch *w, uint32_t events);
void engine_mod(int fd, struct watch *w, uint32_t events);
void engine_del(int fd);

/* Runs the QP's send queue again at `due` (or sooner: a poller may). */
void engine_defer(struct qp *qp, uint64_t due);
/* Takes the QP out of the engine's list and waits until nobody works on it. */
void engine_forsake(struct qp *qp);

/* For pollers: runs what is due. Cheap when there is nothing. */
void engine_poll(void);
/* A completion queue was armed or disarmed: while one is armed the engine watches the sockets itself. */
void engine_armed(void);
void engine_wake(void);
/* Wire (b): has wire_tick called at that time or soon after. */
void engine_tick_at(uint64_t due);
bool engine_aside(
    void); /* the engine leaves the sockets to a polling program, and looks again in a millisecond */

#endif
