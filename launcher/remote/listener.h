/* listener.h: the listening socket for agents, and the callers that have not yet proved that they know the
 * cookie. Anybody can connect, so unproved callers get little memory and a time limit, and cannot keep an
 * agent out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_LISTENER_H
#define FP_LAUNCHER_LISTENER_H

#include "remote/link.h"

struct listener;

struct listener_events {
    /* True if an agent of that name has been started and has not connected yet. */
    bool (*expected)(void *ctx, const char *who);
    /* The agent has proved that it knows the cookie. The receiver now owns the link, and sets its events
     * before it returns. */
    void (*entered)(void *ctx, const char *who, const char *version, struct link *k);
};

/* Opens the listener for about `agents` agents that know this cookie. at: addresses of this host,
 * separated by commas; NULL: all. `cookie` must stay valid. */
struct listener *listener_open(struct loop *l, uint32_t agents, const char *at, const char *cookie,
                               const struct listener_events *ev, void *ctx);

/* Returns the port number as text. */
const char *listener_port(const struct listener *d);

/* Stops accepting agents. */
void listener_close(struct listener *d);

#endif
