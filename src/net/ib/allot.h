/* allot.h: which rails a large message takes where adapters cannot send and receive at full speed at once [Coll01]:
 * FISHPLATE_IB_STRIPE=basic, local, dynamic or hybrid. net/rails decides (alloc.h, request.h, reserve.h); this carries its
 * frames to the peers (IB_RESERVE, through the connection) and keeps transfers waiting that have no rails yet.
 *
 * A process stands for a node of the paper. It keeps its own adapters for one transfer at a time, towards processes that do
 * the same. A put and a get reserve alike: an adapter that is kept is kept for both directions.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_ALLOT_H
#define FP_NET_IB_ALLOT_H

#include "net/rails/alloc.h"
#include "net/rails/frame.h"

struct ib;
struct ib_endpoint;
struct ib_head;

/* What one message can carry; frames that find no room go with the next. */
#define IB_RESERVE_MOST 8
struct ib_reserve_said {
    uint32_t count;
    uint8_t frame[IB_RESERVE_MOST][FRAME_BYTES];
};

/* Frames that wait for a message to this peer. */
#define IB_RESERVE_WAIT 64
struct ib_reserve_out {
    uint32_t count;
    struct frame frame[IB_RESERVE_WAIT];
};

int ib_allot_open(struct ib *ib, enum alloc_policy policy);
void ib_allot_close(struct ib *ib);

/* 0: a transfer of so many bytes may go over the pairs in *set, all of which are up. ERR_AGAIN: not now. */
int ib_allot(struct ib_endpoint *ep, uint64_t bytes, uint32_t *set);
/* It goes, over these. Returns those of them that are reserved for it. */
uint32_t ib_allot_begin(struct ib_endpoint *ep, uint32_t set);
/* It goes over the home after all, since no other rail is up: what it has asked for, or been granted, is for others. */
void ib_allot_forgo(struct ib_endpoint *ep);
/* It has arrived, or never will. */
void ib_allot_end(struct ib_endpoint *ep, uint32_t set, uint32_t reserved);

size_t ib_allot_say(struct ib_endpoint *ep, struct ib_reserve_said *out); /* its length */
bool ib_allot_unsaid(const struct ib_endpoint *ep);
void ib_allot_heard(struct ib_endpoint *ep, const struct ib_head *h, size_t len);
bool ib_allot_busy(const struct ib_endpoint *ep); /* something is reserved or asked for: do not close */
void ib_allot_gone(struct ib_endpoint *ep);       /* the peer has died */

#endif
