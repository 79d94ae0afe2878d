/* buffer.h: the transport's own registered memory, cut into buffers of a few sizes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_BUFFER_H
#define FP_NET_IB_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "net/ib/device.h"

struct ib;
struct ib_lane;
struct ib_shared;

/* A buffer: its descriptor lies apart from its bytes, which the adapter writes. */
struct ib_buffer {
    char *data;
    struct ib_buffer *next;   /* in its pool */
    struct list link;         /* what a lane has posted, or what waits for its turn */
    struct ib_lane *lane;     /* where it was posted or came in */
    struct ib_shared *shared; /* where it was posted, in shared mode */
    uint32_t lkey[IB_ADAPTERS_MAX], rkey[IB_ADAPTERS_MAX]; /* by adapter */
    uint32_t length;                                       /* what arrived */
    uint8_t rail; /* where it waits for a HELLO, or goes out as one */
};

/* Buffers of one size. */
struct ib_pool {
    struct ib *ib;
    struct ib_buffer *free;
    size_t size;
    uint32_t total, in_use;
};

void ib_pool_init(struct ib_pool *pool, struct ib *ib, size_t size);
struct ib_buffer *ib_buffer_get(struct ib_pool *pool); /* NULL: memory is out, err_detail says why */
void ib_buffer_put(struct ib_pool *pool, struct ib_buffer *b);
void ib_buffers_close(struct ib *ib);

#endif
