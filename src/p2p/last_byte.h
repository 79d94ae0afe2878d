/* last_byte.h: detects the end of a one-sided transfer without a message: memory is written in order, so when
 * the last byte has changed, all of the data has arrived [Takagi13 3]. Before the transfer starts, that byte
 * is set to a value which the data will change.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_LAST_BYTE_H
#define FP_P2P_LAST_BYTE_H

#include <stdatomic.h>

#include "base/list.h"
#include "net/net.h"

/* One byte that is polled, embedded in the object that waits for it. */
struct last_byte {
    struct list link;
    uint8_t *at;
    uint8_t was;    /* value that was stored before the transfer */
    uint8_t before; /* the user's value, restored if the transfer does not cover the byte */
    bool watched;
    bool unrung; /* the change of the byte rings no doorbell */
    void (*changed)(struct last_byte *b);
};

/* All bytes that are polled. The progress hook exists only while there are some. Their number is limited,
 * since each progress call polls all of them. */
#define LAST_BYTES_MAX 64
struct last_bytes {
    struct net *net;
    struct net_hook hook;
    struct list watched;
    uint32_t count;
};

void last_bytes_open(struct last_bytes *all, struct net *net);
void last_bytes_close(struct last_bytes *all);

/* Sets the byte to its initial value. */
static inline void last_byte_set(struct last_byte *b, uint8_t *at, uint8_t value)
{
    b->at = at;
    b->was = value;
    b->before = *at;
    b->watched = false;
    *at = value;
}

/* True if the byte has changed. Acquire: pairs with the order of bytes in the peer's write, so that all data
 * in front of it can be read. */
static inline bool last_byte_changed(const struct last_byte *b)
{
    bool changed = *(volatile const uint8_t *)b->at != b->was;
    atomic_thread_fence(memory_order_acquire);
    return changed;
}

static inline bool last_bytes_has_room(const struct last_bytes *all)
{
    return all->count < LAST_BYTES_MAX;
}

/* Polls the byte from now on. `unrung`: the byte changes without any doorbell. */
void last_byte_watch(struct last_bytes *all, struct last_byte *b, bool unrung,
                     void (*changed)(struct last_byte *b));
void last_byte_forget(struct last_bytes *all, struct last_byte *b);

#endif
