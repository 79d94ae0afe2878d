/* frame.c: encodes and decodes frame headers. Fields are encoded one by one, so that no compiler's padding
 * appears on the wire.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/frame.h"
#include "hca/responder.h"
#include <endian.h>

#define MAGIC 0x53494231u /* "SIB1" */

static uint8_t *frame_put(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        *p++ = (uint8_t)(v >> (8 * i));
    return p;
}

static uint64_t frame_get(const uint8_t **p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v = v << 8 | *(*p)++;
    return v;
}

static uint32_t frame_checksum(const uint8_t *p, uint32_t fabric)
{
    /* Word by word: a byte-wise hash of two headers would be a tenth of a small message's time. */
    uint64_t h = 1469598103934665603ull ^ fabric, w;
    for (unsigned i = 0; i < FRAME_BYTES - 8; i += 8) {
        memcpy(&w, p + i, 8);
        h = (h ^ le64toh(w)) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 29;
    }
    uint32_t last;
    memcpy(&last, p + FRAME_BYTES - 8, 4);
    h = (h ^ le32toh(last)) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(h ^ h >> 32);
}

void frame_encode(const struct frame *f, uint32_t fabric, uint8_t out[FRAME_BYTES])
{
    uint8_t *p = out;
    p = frame_put(p, MAGIC, 4);
    p = frame_put(p, f->type, 1);
    p = frame_put(p, f->flags, 1);
    p = frame_put(p, f->opcode, 1);
    p = frame_put(p, f->sl, 1);
    p = frame_put(p, f->dst_qpn, 4);
    p = frame_put(p, f->src_qpn, 4);
    p = frame_put(p, f->seq, 4);
    p = frame_put(p, f->length, 4);
    p = frame_put(p, f->total, 4);
    p = frame_put(p, f->offset, 4);
    p = frame_put(p, f->raddr, 8);
    p = frame_put(p, f->rkey, 4);
    p = frame_put(p, f->imm, 4);
    p = frame_put(p, f->slid, 2);
    p = frame_put(p, f->dlid, 2);
    p = frame_put(p, f->arg, 4);
    p = frame_put(p, f->qp_type, 4);
    frame_put(p, frame_checksum(out, fabric), 4);
}

static bool frame_carries_data(uint8_t opcode)
{
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV ||
           opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_LOCAL_INV;
}

/* True if the lengths, types and numbers of the frame are consistent. */
static bool frame_is_consistent(const struct frame *f)
{
    if (f->seq > 0xffffff || f->dst_qpn > 0xffffff || f->src_qpn > 0xffffff || f->total > MAX_MSG ||
        f->offset > f->total || f->length > f->total - f->offset)
        return false;
    bool rc = f->qp_type == IBV_QPT_RC, requests = rc || f->qp_type == IBV_QPT_XRC_RECV,
         answers = rc || f->qp_type == IBV_QPT_XRC_SEND; /* qp_type is the type of the destination QP */
    switch (f->type) {
    case FRAME_DATA:
        return frame_carries_data(f->opcode) && f->length <= FRAME_SEGMENT &&
               (requests || f->qp_type == IBV_QPT_UC) && (f->length || !f->total) &&
               (f->opcode != IBV_WR_LOCAL_INV || !f->total);
    case FRAME_READ:
        return requests && f->opcode == IBV_WR_RDMA_READ && !f->length && !f->offset;
    case FRAME_ATOMIC:
        return requests &&
               (f->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || f->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) &&
               f->length == 16 && f->total == 16;
    case FRAME_ACK:
        return answers && !f->total;
    case FRAME_NAK:
        return answers && !f->total && f->arg >= ANS_RNR && f->arg <= ANS_OP;
    case FRAME_READ_DATA:
        return answers && f->length <= FRAME_SEGMENT && (f->length || !f->total);
    case FRAME_ATOMIC_RESULT:
        return answers && f->length == 8 && f->total == 8;
    case FRAME_DATAGRAM_DATA:
        return f->qp_type == IBV_QPT_UD && (f->opcode == IBV_WR_SEND || f->opcode == IBV_WR_SEND_WITH_IMM) &&
               f->total == f->length && f->length >= GRH_BYTES && f->length <= FRAME_DATAGRAM;
    case FRAME_HELLO:
        return rc && f->total == FRAME_HELLO_BYTES && f->length == f->total;
    case FRAME_HELLO_ACK:
        return rc && f->total == FRAME_HELLO_ACK_BYTES && f->length == f->total;
    case FRAME_PROOF:
        return rc && f->total == FRAME_PROOF_BYTES && f->length == f->total;
    case FRAME_PING:
    case FRAME_PONG:
        return rc && !f->total;
    case FRAME_SWITCH: /* opcode is the packet's type, arg the barrier, imm the round */
        return f->qp_type == IBV_QPT_UD && !f->total && f->opcode && f->opcode <= SOFTIB_FREE_BARRIER_ACK &&
               f->arg <= SOFTIB_SWITCH_BARRIERS;
    default:
        return false;
    }
}

bool frame_decode(const uint8_t in[FRAME_BYTES], uint32_t fabric, struct frame *f)
{
    const uint8_t *p = in;
    if (frame_get(&p, 4) != MAGIC)
        return false;
    f->type = (uint8_t)frame_get(&p, 1);
    f->flags = (uint8_t)frame_get(&p, 1);
    f->opcode = (uint8_t)frame_get(&p, 1);
    f->sl = (uint8_t)frame_get(&p, 1);
    f->dst_qpn = (uint32_t)frame_get(&p, 4);
    f->src_qpn = (uint32_t)frame_get(&p, 4);
    f->seq = (uint32_t)frame_get(&p, 4);
    f->length = (uint32_t)frame_get(&p, 4);
    f->total = (uint32_t)frame_get(&p, 4);
    f->offset = (uint32_t)frame_get(&p, 4);
    f->raddr = frame_get(&p, 8);
    f->rkey = (uint32_t)frame_get(&p, 4);
    f->imm = (uint32_t)frame_get(&p, 4);
    f->slid = (uint16_t)frame_get(&p, 2);
    f->dlid = (uint16_t)frame_get(&p, 2);
    f->arg = (uint32_t)frame_get(&p, 4);
    uint64_t kind = frame_get(&p, 4);
    f->qp_type = (uint8_t)kind;
    return kind < 256 && frame_get(&p, 4) == frame_checksum(in, fabric) && frame_is_consistent(f);
}
