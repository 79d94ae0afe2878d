/* posted.h: how much registered memory receiving takes: buffers posted for a peer, buffers of a shared receive queue
 * [Shipman06 5.2], and in what pieces memory is registered. The transport, and the simulator that predicts what a process of a job
 * of any size needs, use the same arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_POSTED_H
#define FP_NET_IB_POSTED_H

#include "base/util.h"

#define POSTED_SPARE 4 /* beyond the credits: for control messages, which take none */
#define POSTED_CHUNK \
    (256 * 1024) /* bytes registered at a time, at least; a large buffer has a chunk of its own */

/* The buffers of a connection when it opens, of which `first` were announced to the peer. */
static inline uint32_t posted_connection_buffers(uint32_t first)
{
    return first + POSTED_SPARE;
}

/* The buffers of a shared queue when it opens: log2(ranks) * k + b. */
static inline uint32_t posted_shared_buffers(uint32_t ranks, uint32_t k, uint32_t b)
{
    uint32_t bits = 0;
    while ((1u << bits) < ranks && bits < 31)
        bits++;
    return bits * k + b;
}

/* The number of buffers in a chunk, and its size in bytes. */
static inline size_t posted_chunk_buffers(size_t size)
{
    return MAX(POSTED_CHUNK / size, (size_t)1);
}

static inline size_t posted_chunk_bytes(size_t size)
{
    return ALIGN_UP(posted_chunk_buffers(size) * size, 4096);
}

#endif
