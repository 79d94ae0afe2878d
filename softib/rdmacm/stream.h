/* stream.h: the byte stream of an rsocket over a reliable connection.
 *
 * Both ends have SLOTS receive buffers of SLOT_BYTES. A data message uses one of them, and its sender
 * spends a credit. A buffer that the program has read completely returns the credit, in the immediate data
 * of any message or, for half of all buffers, in a message of its own. RESERVED further buffers receive
 * the messages without credit: at most two that return credits, and the end of the stream.
 *
 * The caller holds the lock of the rsocket.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_RDMACM_STREAM_H
#define SOFTIB_RDMACM_STREAM_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define STREAM_SLOTS      64u
#define STREAM_RESERVED   4u
#define STREAM_SLOT_BYTES 16384u
#define STREAM_MAPS       128u

/* Memory that an end has opened for riowrite; length 0: none. */
struct stream_map {
    uint64_t offset, length, addr;
    uint32_t rkey, unused;
};

struct stream {
    struct rdma_cm_id *id; /* NULL: not open */
    struct ibv_comp_channel *events;
    struct ibv_cq *cq;
    char *memory; /* STREAM_SLOTS send buffers, then the receive buffers */
    struct ibv_mr *mr;

    unsigned credits;      /* data messages that the peer has buffers for */
    unsigned next_slot;    /* next send buffer */
    unsigned slots_used;   /* send buffers whose requests have not completed */
    unsigned control_used; /* requests without a send buffer that have not completed */
    unsigned owed;         /* credits to return to the peer */
    bool end_requested, end_sent;

    struct {
        unsigned buffer, length;
    } inbox[STREAM_SLOTS]; /* received data messages */
    unsigned inbox_first, inbox_count;
    unsigned consumed; /* bytes of the first message that were read */
    bool ended;        /* the peer sends no more data */
    bool broken;       /* a request has failed */

    struct stream_map far[STREAM_MAPS]; /* memory of the peer */
    struct stream_map near[STREAM_MAPS];
    struct ibv_mr *near_mr[STREAM_MAPS];
};

/* Creates the queue pair of the identifier and posts receives. Returns an error number. */
int stream_open(struct stream *s, struct rdma_cm_id *id);
void stream_close(struct stream *s);
/* Handles completions, and sends credits and the end of the stream. */
void stream_progress(struct stream *s);
void stream_arm(struct stream *s); /* requests an event on `events` for the next completion */
void stream_drain_events(struct stream *s);

/* Sends or receives without waiting; return the number of bytes. */
size_t stream_write(struct stream *s, const void *bytes, size_t n);
size_t stream_read(struct stream *s, void *bytes, size_t n, bool peek);
/* Writes to mapped memory of the peer. Returns the number of bytes, 0 if no send buffer is free, -1 if no map
 * contains the offset. */
ssize_t stream_write_map(struct stream *s, const void *bytes, size_t n, uint64_t offset);
/* Opens memory for writes of the peer; needs stream_can_write. Returns an error number. */
int stream_map(struct stream *s, void *buf, size_t n, bool writable, uint64_t offset);
int stream_unmap(struct stream *s, void *buf, size_t n);

static inline bool stream_can_write(const struct stream *s)
{
    return s->credits && s->slots_used < STREAM_SLOTS;
}

static inline bool stream_is_flushed(const struct stream *s)
{
    return !s->slots_used && !s->control_used && s->end_requested == s->end_sent;
}

#endif
