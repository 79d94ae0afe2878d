/* memory.h: the memory that a process of a job of any size registers for messages, by the library's own arithmetic
 * (src/net/ib/policy/posted.h), for each way of connecting and receiving [Shipman06 6.1].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_MEMORY_H
#define FP_SIM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum memory_scheme {
    MEMORY_STATIC,    /* every process is connected to every other at the start, with buffers for each */
    MEMORY_ON_DEMAND, /* to those it has sent to */
    MEMORY_RINGS,     /* and an RDMA ring for some of them */
    MEMORY_RINGS_ALL, /* and one for each: what [Shipman06 4.2] finds in others */
    MEMORY_SHARED, /* on demand, with receive queues that all connections share, and two queue pairs for each */
    MEMORY_SCHEMES
};
extern const char *const memory_scheme_names[MEMORY_SCHEMES];

/* The settings of the library and the sizes of its frames. */
struct memory_rules {
    uint32_t buffers;                 /* for each peer */
    size_t frame, small;              /* bytes of a buffer, and of one of the small shared queue */
    uint32_t factor, base;            /* of shared queues */
    uint32_t slots, rings;            /* slots of a ring, peers with one */
    size_t slot;                      /* bytes */
    uint32_t send_depth, most;        /* entries of a send queue; buffers for a peer at most */
    size_t send_entry, receive_entry; /* bytes of an entry of a queue pair, as adapters have them */
};
extern const struct memory_rules memory_presets;

struct memory_use {
    double frames;      /* bytes registered for frames, rings and handshakes: as the library counts them */
    double connections; /* open */
    double queue_pairs;
    double queues; /* bytes of their queues, which the adapter's driver allocates: an estimate */
};

/* `partners`: peers that the process exchanges messages with. */
void memory_compute(const struct memory_rules *r, enum memory_scheme scheme, uint32_t ranks,
                    uint32_t partners, struct memory_use *out);

#endif
