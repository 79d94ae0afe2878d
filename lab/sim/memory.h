/* memory.h: memory that a process of a job of any size registers for messages, computed by the library's own
 * code (src/net/ib/policy/posted.h), for each method of connecting and receiving [Shipman06 6.1].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_MEMORY_H
#define FP_SIM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum memory_scheme {
    MEMORY_STATIC,    /* each process connects to all others at the start, with receive buffers for each */
    MEMORY_ON_DEMAND, /* connections only to peers with traffic */
    MEMORY_RINGS,     /* as MEMORY_ON_DEMAND, with an RDMA ring for some peers */
    /* as MEMORY_ON_DEMAND, with an RDMA ring for each peer, as in the libraries of [Shipman06 4.2] */
    MEMORY_RINGS_ALL,
    /* as MEMORY_ON_DEMAND, with receive queues that all connections share and two queue pairs per peer */
    MEMORY_SHARED,
    MEMORY_SCHEMES
};
extern const char *const memory_scheme_names[MEMORY_SCHEMES];

/* The settings of the library and the sizes of its frames. */
struct memory_rules {
    uint32_t buffers;                 /* receive buffers for each peer */
    size_t frame, small;              /* bytes of a buffer, and of a buffer of the small shared queue */
    uint32_t factor, base;            /* size of shared queues: log2(ranks) * factor + base */
    uint32_t slots, rings;            /* slots of a ring; number of peers with a ring */
    size_t slot;                      /* bytes of a ring slot */
    uint32_t send_depth, buffers_max; /* entries of a send queue; upper limit of buffers for a peer */
    /* bytes of an entry in the queues of a queue pair, as in current adapters */
    size_t send_entry, receive_entry;
};
extern const struct memory_rules memory_presets;

struct memory_use {
    double frames;      /* bytes registered for frames, rings and handshakes, as the library counts them */
    double connections; /* number of open connections */
    double queue_pairs;
    double queues; /* estimated bytes of the queues that the adapter's driver allocates */
};

/* `partners`: number of peers that the process exchanges messages with. */
void memory_compute(const struct memory_rules *r, enum memory_scheme scheme, uint32_t ranks,
                    uint32_t partners, struct memory_use *out);

#endif
