/* posted.h: how much registered memory receiving needs: buffers posted for a peer, buffers of a shared
 * receive queue [Shipman06 5.2], and the size of the chunks that are registered. Shared by the transport and
 * by the simulator that predicts the memory of a process for any job size.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_POSTED_H
#define FP_NET_IB_POSTED_H

#include "base/util.h"

#define POSTED_SPARE 4 /* buffers in addition to the credits, for control messages, which take no credit */
#define POSTED_CHUNK \
    (256 * 1024) /* bytes registered at a time, at least; a larger buffer has a chunk of its own */

/* The buffers posted for a connection when it opens; `first` of them are credits of the peer. */
static inline uint32_t posted_connection_buffers(uint32_t first)
{
    return first + POSTED_SPARE;
}

/* The buffers posted to a shared receive queue when it opens: log2(ranks) * k + b. */
static inline uint32_t posted_shared_buffers(uint32_t ranks, uint32_t k, uint32_t b)
{
    uint32_t bits = 0;
    while ((1u << bits) < ranks && bits < 31)
        bits++;
    return bits * k + b;
}

/* The number of buffers of `size` bytes in a chunk, and the size of such a chunk in bytes. */
static inline size_t posted_chunk_buffers(size_t size)
{
    return MAX(POSTED_CHUNK / size, (size_t)1);
}

static inline size_t posted_chunk_bytes(size_t size)
{
    return ALIGN_UP(posted_chunk_buffers(size) * size, 4096);
}

#endif
