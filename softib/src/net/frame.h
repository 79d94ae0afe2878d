/* frame.h: the frames between machines: a header of 64 bytes in network byte order, and the payload.
 * Decoding is a pure function that rejects headers with inconsistent members.
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
    FRAME_READ,          /* request for `total` bytes at raddr */
    FRAME_ATOMIC,        /* payload: operand and swap value */
    FRAME_ACK,           /* requests up to number seq are complete */
    FRAME_NAK,           /* request number seq was rejected; arg: an enum answer, imm: the RNR timer */
    FRAME_READ_DATA,     /* a piece of the answer to READ number seq */
    FRAME_ATOMIC_RESULT, /* payload: the old value */
    FRAME_DATAGRAM_DATA, /* UDP only; payload: route header, data */
    FRAME_HELLO,         /* first frame of a connection; payload: the caller's challenge */
    FRAME_HELLO_ACK,     /* payload: challenge of the called side, and its answer to the caller's challenge */
    FRAME_PROOF,         /* payload: the caller's answer; other frames follow it */
    FRAME_PING,          /* requests a PONG */
    FRAME_PONG,          /* seq: number of the PING */
    FRAME_SWITCH,        /* UDP only: a packet to or from the switch's barrier unit */
    FRAME_TYPES
};

/* Payloads of the handshake (hello.h). */
#define FRAME_HELLO_BYTES     16u
#define FRAME_HELLO_ACK_BYTES 48u
#define FRAME_PROOF_BYTES     32u

#define FRAME_SOLICITED 1u
#define FRAME_GRH       2u
#define FRAME_ARMING    4u /* the sender has loaded an alternate path and not migrated */
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
