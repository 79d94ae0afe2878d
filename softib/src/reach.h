/*
 * Finding a way to a port of another node. A port may have several addresses; from here some lead nowhere
 * (the bridge of somebody's containers, another network) and some to the wrong machine (many have a
 * 172.17.0.1 of their own). None is believed: all are tried at once and asked to prove who they are. Of those
 * that do, and so are the process we want, the first port of a node takes the first, the second port the second, and so
 * on. SPDX-License-Identifier: Apache-2.0
 */
#ifndef SOFTIB_REACH_H
#define SOFTIB_REACH_H

#include "engine.h"
#include "greet.h"
#include "shm.h"

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
    struct attempt a[FAB_ADDRS]; /* one for each address of the port */
    uint64_t since, decide_at;   /* the others have so long after the first answer */
    bool remembered;             /* only the address that answered last time is tried */
};

bool reach_begin(struct conn *c); /* false: no way at all; else conn_reached or conn_break follows */
void reach_tick(struct conn *c, uint64_t now);
void reach_end(struct conn *c);

bool reach_alive(const struct conn *c); /* somebody took the connection, if only its kernel so far */

/* The address a datagram for that port is sent to: the one that answered last, else the first. */
struct in_addr reach_addr(uint32_t linear);
bool reach_known(uint32_t linear);

#endif
