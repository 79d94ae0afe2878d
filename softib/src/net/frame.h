/* frame.h: the frames between machines: a header of 64 bytes in network byte order, then the payload.
 * Decoding is a pure function that trusts no sender: its fields agree with each other in every header that it
 * accepts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_FRAME_H
#define SOFTIB_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_BYTES    64u
#define FRAME_SEGMENT  (256u << 10) /* a message longer than this takes several frames */
#define FRAME_DATAGRAM (4096u + 40u)

enum frame_type {
    FRAME_DATA = 1,      /* SEND or RDMA WRITE: a piece of the message */
    FRAME_READ,          /* requests total bytes at raddr */
    FRAME_ATOMIC,        /* payload: operand, swap */
    FRAME_ACK,           /* everything up to seq is done */
    FRAME_NAK,           /* seq was refused: arg is an enum answer, imm the RNR timer */
    FRAME_READ_DATA,     /* a piece of the answer to the READ seq */
    FRAME_ATOMIC_RESULT, /* payload: the old value */
    FRAME_DATAGRAM_DATA, /* UDP only; payload: route header, data */
    FRAME_HELLO,         /* first on a connection: is it you? payload: a challenge */
    FRAME_HELLO_ACK,     /* it is; payload: a challenge, and the answer to the caller's */
    FRAME_PROOF,         /* payload: the caller's answer; after it everything else may come */
    FRAME_PING,          /* are you still there? */
    FRAME_PONG,          /* seq as in the question */
    FRAME_SWITCH,        /* UDP only: a packet to or from the switch's barrier unit */
    FRAME_TYPES
};

/* Payloads of the greeting. */
#define FRAME_HELLO_BYTES     16u
#define FRAME_HELLO_ACK_BYTES 48u
#define FRAME_PROOF_BYTES     32u

#define FRAME_SOLICITED 1u
#define FRAME_GRH       2u
#define FRAME_ARMING    4u /* an alternate path is loaded and not taken */
#define FRAME_ROCE_V2   8u

struct frame {
    uint8_t type, flags, opcode, sl, qp_type;
    uint32_t dst_qpn, src_qpn, seq, length, total, offset, rkey, imm;
    uint32_t arg; /* NAK: enum answer; request of an XRC QP: the number of the SRQ */
    uint64_t raddr;
    uint16_t slid, dlid;
};

void frame_encode(const struct frame *f, uint32_t fabric, uint8_t out[FRAME_BYTES]);
/* Decodes a frame header. Returns false if it is not a valid header of this fabric. */
bool frame_decode(const uint8_t in[FRAME_BYTES], uint32_t fabric, struct frame *f);

#endif
