/* device_staging.h: messages whose data is in device memory that the transport cannot access: the data moves
 * through staging buffers in host memory, with one copy by the GPU at each end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_DEVICE_STAGING_H
#define FP_P2P_DEVICE_STAGING_H

#include "gpu/gpu.h"
#include "p2p/engine.h"

/* Sends the frame that carries the whole message. ERR_AGAIN: no room at the peer; the request now has a
 * copy of its data in host memory, and is an ordinary send. */
int device_send_frame(struct p2p_request *r);

/* Copies a message of `len` bytes from a frame into a receive in GPU memory. */
int device_deliver(struct p2p_request *r, const void *payload, size_t len);

/* False: the limit of open descriptors of exported memory is reached; the program's files need descriptors,
 * too. */
bool device_can_store_descriptor(const struct p2p_request *r);
/* Stores the descriptor by which another process maps the request's data; closes it when the request ends.
 * False: out of memory; the descriptor was closed. */
bool device_store_descriptor(struct p2p_request *r, int descriptor);

/* A message that goes through a staging buffer moves in chunks; chunk i uses half i % 2 of the buffer. */
#define DEVICE_CHUNK (GPU_STAGING_SIZE / 2)

struct staging_half {
    struct gpu_transfer transfer;
    bool is_copying; /* `transfer` copies between the half and GPU memory */
    bool is_writing; /* STAGED, send: `write` writes the half to the receiver */
    struct net_op write;
    struct p2p_request *r; /* valid if is_writing */
};

/* State of a request for data in device memory. Allocated at its first use; freed with the request. */
struct device_part {
    char *memory;   /* staging buffer in host memory, or NULL */
    bool is_pinned; /* `memory` is a staging buffer of src/gpu; else it is from malloc */
    int descriptor; /* exported memory of the request, for the process that maps it; -1: none */
    struct staging_half half[2];
    /* STAGED (rendezvous_staged.c): the registration of `memory`, the receiver's staging buffer, and numbers
     * of chunks */
    struct p2p_request *r;
    struct list link; /* in p2p->staged while the request is to be polled */
    bool is_registered;
    struct net_mem mem;
    struct net_key key, remote_key;
    uint64_t remote;
    uint64_t copied;                     /* chunks whose copy between buffer and half has begun */
    uint64_t granted, written, notified; /* send: chunks that may be written, are being, were announced */
    uint64_t arrived, stored;            /* receive: chunks that were announced, that are in the buffer */
};

/* From now on the hook p2p->staged_hook polls the request, until device_unwatch(). */
void device_watch(struct p2p_request *r);
void device_unwatch(struct p2p_request *r);

/* For R3: prepares to move the bytes from offset `from` on through the staging buffer. */
int device_pieces_begin(struct p2p_request *r, uint64_t from);
/* Provides the next bytes to send, at most `most`; 0 or an error class. */
int device_pieces_next(struct p2p_request *r, size_t most, const char **data, size_t *len);
/* Stores the next received bytes; r->base.error is set to the first error. */
void device_pieces_store(struct p2p_request *r, const char *data, size_t len);

/* Returns the half of the staging buffer that chunk i uses. */
char *device_chunk_memory(const struct device_part *stage, uint64_t i);
/* Starts to copy chunk i, `n` bytes, between its half and the program's buffer. Data with holes and data in
 * host memory are copied before the call returns. */
int device_chunk_start(struct p2p_request *r, uint64_t i, size_t n, bool out);
/* The state of the copy of half i % 2: 0, ERR_AGAIN while it is in progress, or its error. */
int device_chunk_poll(struct device_part *stage, uint64_t i);

#endif
