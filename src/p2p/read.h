/* read.h: one read from the peer's memory, retried when the transport refuses it for a while. The receiver's
 * half of every protocol that reads (GETCQE, GET, SPLIT).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_READ_H
#define FP_P2P_READ_H

#include "net/peer.h"

struct read {
    struct net_op op;
    struct net_pending pending;
    struct peer *peer;
    char *to;
    struct net_mem *mem; /* the registration of `to` */
    uint64_t remote;     /* address in the peer's memory */
    struct net_key key;
    uint64_t bytes;
    void (*done)(struct read *read, int status); /* the read is not used afterwards */
    bool (*seen)(const struct read *read);       /* true if the last byte has arrived; NULL: not polled */
};

/* True for the operation of a read; *seen: all data has arrived, though the transport has not reported it. */
bool read_is_op(const struct net_op *op, bool *seen);

/* Starts a read. `done` is called in any case, perhaps before this returns. */
void read_start(struct read *read);

#endif
