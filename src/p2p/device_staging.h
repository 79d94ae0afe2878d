/* device_staging.h: messages whose data is in device memory that the transport cannot access: the data moves
 * through staging buffers in host memory, with one copy by the GPU at each end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_DEVICE_STAGING_H
#define FP_P2P_DEVICE_STAGING_H

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

/* For R3: prepares to move the bytes from offset `from` on through the staging buffer. */
int device_pieces_begin(struct p2p_request *r, uint64_t from);
/* Provides the next bytes to send, at most `most`; 0 or an error class. */
int device_pieces_next(struct p2p_request *r, size_t most, const char **data, size_t *len);
/* Stores the next received bytes; r->base.error is set to the first error. */
void device_pieces_store(struct p2p_request *r, const char *data, size_t len);

#endif
