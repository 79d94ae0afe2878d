/* reach.h: finds an address that reaches a port of another node. A port may have several addresses. From
 * this machine some are unreachable (a container bridge, another network) and some belong to another
 * machine (many machines have the address 172.17.0.1). Therefore all are tried at the same time, and the
 * process that answers must authenticate. Of the addresses at which the right process answers, the first
 * port of a node uses the first one, the second port the second one, and so on.
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
    uint8_t hello[HELLO_BYTES], in[HELLO_ACK_BYTES]; /* the HELLO that was sent, and the answer */
    size_t have;
};

struct reach {
    /* Called when the search ends; fd < 0: the port cannot be reached. */
    void (*done)(struct conn *c, int fd, const struct in_addr *me);
    struct attempt a[FAB_ADDRS]; /* one for each address of the port */
    uint64_t since;              /* start of the attempts */
    uint64_t decide_at;          /* time until which other addresses may answer after the first one */
    bool remembered;             /* only the address that answered last time is tried */
};

/* Searches an address and calls `done` once, possibly before it returns. False: c is broken already. */
bool reach_begin(struct conn *c, void (*done)(struct conn *c, int fd, const struct in_addr *me));
void reach_tick(struct conn *c, uint64_t now);
void reach_cancel_attempts(struct conn *c);

bool reach_has_connection(const struct conn *c); /* true if an address has accepted a TCP connection */

#endif
