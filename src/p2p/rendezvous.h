/* rendezvous.h: large messages. A message is announced (RTS), unless the receiver has offered its memory
 * before (RTR). When its receive is posted, the receiver chooses a protocol (protocol.h) and starts it. The
 * file of a protocol contains both halves: `*_start` begins at the receiver, and the handlers of the
 * protocol's frames continue on either side.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_RENDEZVOUS_H
#define FP_P2P_RENDEZVOUS_H

#include "p2p/engine.h"

/* Defined in rendezvous.c: parts that the protocols share. */
struct announcement {
    struct peer *from;
    struct envelope env;
    uint64_t length;
    const struct rts *rts;
    const struct gpu_export *map; /* of GPU memory, with RTS_MAPGET; else NULL */
    uint8_t last;                 /* last byte of the data */
};
void rendezvous_start(struct p2p *p, struct p2p_request *r);
frame_handler rts_arrived;
/* Starts receiving an announced message that this receive has matched. */
void rendezvous_start_receive(struct p2p *p, struct p2p_request *r, const struct announcement *a);
/* Sends FIN: the message was read, or cannot be received. */
void fin_send(struct p2p_request *r, int status);
/* Ends a large receive with `status`, or if that is 0 with the error found at its matching (r->base.error).
 * fin: the sender awaits FIN. */
void rendezvous_end_receive(struct p2p_request *r, int status, bool fin);
/* Registers the receive's memory and assigns a cookie, so that the sender can access it. False: use another
 * protocol. */
bool rendezvous_register_receive(struct p2p *p, struct p2p_request *r, uint64_t bytes);
/* Requests that the sender write `bytes` bytes of the message from `offset` on (CTS_WRITE) into the
 * registered receive. */
void rendezvous_request_write(struct p2p_request *r, uint8_t flags, uint64_t offset, uint64_t bytes);

/* Frames that belong to several protocols: the state of the request selects one. */
frame_handler fin_arrived, cts_write_arrived, written_arrived;

/* rendezvous_r3.c: the receiver sends CTS, the sender sends the message in pieces through frames. */
void r3_start(struct p2p *p, struct p2p_request *r, uint64_t bytes);
frame_handler cts_arrived, piece_arrived;
/* Sends, and receives, the rest of a message whose first bytes have arrived, in pieces. */
void r3_send_rest(struct p2p_request *r, uint64_t cookie, uint64_t from, uint64_t bytes);
void r3_receive_rest(struct p2p_request *r, uint64_t from, uint64_t bytes);

/* rendezvous_getcqe.c: the receiver reads the sender's memory; a completion of the adapter ends it. */
void getcqe_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes);
/* The sender has received FIN. */
void getcqe_fin(struct p2p_request *r, int error);
/* Fills in a read of the first `bytes` of the announced message into the request's data. */
void read_announced(struct read *read, struct p2p_request *r, struct net_mem *mem, const struct rts *rts,
                    uint64_t bytes);

/* rendezvous_get.c: the receiver reads the sender's memory; the last byte shows completion. The sender's half
 * is that of GETCQE. */
void get_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes, uint8_t last);

/* rendezvous_rput.c: the receiver sends an address (CTS_WRITE), the sender writes the message there. */
void rput_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes);
void rput_requested(struct p2p_request *r);

/* rendezvous_split.c: the sender writes a part of the message while the receiver reads the rest. */
void split_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes);
void split_requested(struct p2p_request *r);
void split_fin(struct p2p_request *r, int error);
void split_written(struct p2p_request *r, int error);

/* PIPE: the sender writes the message in pieces, which both sides register meanwhile. Only the laboratory has
 * this protocol (lab/mechanisms/p2p/rendezvous_pipe.c): without it the address is NULL. */
struct pipe_protocol {
    /* Bytes of the pieces that a sender proposes in its announcement. */
    uint64_t (*propose)(const struct p2p_request *r, uint64_t bytes);
    void (*start)(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes);
    void (*requested)(struct p2p_request *r, const struct cts_write *cts, uint8_t flags);
    void (*written)(struct p2p_request *r, uint64_t length, int error);
    /* Frees the pieces of a send or receive; none may be in progress. */
    void (*drop)(struct p2p_request *r);
};
extern const struct pipe_protocol laboratory_pipe __attribute__((weak));

/* rendezvous_put.c: the receiver's memory was offered before the sender announced the message: PUT, PUTNR. */
void put_offer(struct p2p *p, struct p2p_request *r);
/* Writes a message that is about to be sent to the offer for it, if there is one and it fits. Returns false
 * if it must be sent by another protocol. */
bool put_use_offer(struct p2p_request *r);
void put_written(struct p2p_request *r, uint64_t length, int error);
/* Checks whether the offered receive has been filled, and completes it then. */
bool put_check_arrived(struct p2p_request *r);

#endif
