/* bsend.h: buffered sends: the user's attached buffer (or the library's own memory, MPI_BUFFER_AUTOMATIC)
 * from which messages are sent when possible.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_BSEND_H
#define FP_P2P_BSEND_H

#include "p2p/p2p.h"

struct bsend_pool;

/* buffer may be MPI_BUFFER_AUTOMATIC. */
int bsend_attach_buffer(struct p2p *p, void *buffer, MPI_Count size, struct bsend_pool **out);

/* Waits until every message has been sent, then detaches the buffer and returns it. */
void bsend_detach(struct bsend_pool *pool, void **buffer, MPI_Count *size);

/* Copies the message and sends it; MPI_ERR_BUFFER when the attached buffer is full. */
int bsend_send(struct bsend_pool *pool, const void *buf, MPI_Count count, struct dtype *type, struct peer *to,
               struct envelope env);

void bsend_flush(struct bsend_pool *pool);
int bsend_iflush(struct bsend_pool *pool, struct request **out);

#endif
