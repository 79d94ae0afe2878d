/* reach.h: finds an address that reaches a port of another node. A port may have several addresses. From
 * here, some lead nowhere (a container bridge, another network) and some to the wrong machine (many machines
 * have a 172.17.0.1 of their own). Therefore none is trusted: all are tried at once and must prove who
 * answers. Among the addresses that belong to the wanted process, the first port of a node takes the first,
 * the second port the second, and so on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_REACH_H
#define SOFTIB_REACH_H

#include "engine/engine.h"
#include "fabric/shm.h"
#include "net/hello.h"

struct conn;

struct attempt {
    struct watch w;
    struct conn *c;
    int fd; /* -1: not tried, or ended */
    bool connected, good;
    uint8_t hello[HELLO_BYTES], in[HELLO_ACK_BYTES]; /* what we said, and the answer */
    size_t have;
};

struct reach {
    void (*done)(struct conn *c, int fd, const struct in_addr *me); /* fd below 0: there is no way */
    struct attempt a[FAB_ADDRS];                                    /* one for each address of the port */
    uint64_t since, decide_at; /* the others have so long after the first answer */
    bool remembered;           /* only the address that answered last time is tried */
};

/* Calls `done` once, perhaps before it returns. False: the connection is broken already. */
bool reach_begin(struct conn *c, void (*done)(struct conn *c, int fd, const struct in_addr *me));
void reach_tick(struct conn *c, uint64_t now);
void reach_cancel_attempts(struct conn *c);

bool reach_has_connection(const struct conn *c); /* somebody took the connection, if only its kernel so far */

#endif
