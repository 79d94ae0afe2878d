/* hello.c: encodes, decodes and checks the messages of the handshake.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/hello.h"
#include "net/conn.h"

void greet_hello(const struct conn *c, uint8_t out[HELLO_BYTES])
{
    struct frame f = {
        .type = FRAME_HELLO,
        .qp_type = IBV_QPT_RC,
        .dst_qpn = c->slot << QP_BITS,
        .src_qpn = proc.slot << QP_BITS,
        .length = FRAME_HELLO_BYTES,
        .total = FRAME_HELLO_BYTES,
        .slid = fabric_port_lid(&proc.fab, c->linear),
        .dlid = fabric_port_lid(&proc.fab, c->to),
    };
    frame_encode(&f, net_fabric(), out);
    random_bytes(out + FRAME_BYTES, NONCE_BYTES);
}

static void hello_compute_proof(enum key_side side, const uint8_t *hello, const uint8_t *ack,
                                uint8_t out[SHA256_SIZE])
{
    key_proof(side, hello, FRAME_BYTES, hello + FRAME_BYTES, ack + FRAME_BYTES, out);
}

enum greet_answer greet_check(const uint8_t hello[HELLO_BYTES], const uint8_t ack[HELLO_ACK_BYTES])
{
    struct frame h, f;
    uint8_t want[SHA256_SIZE];
    if (!frame_decode(hello, net_fabric(), &h) || !frame_decode(ack, net_fabric(), &f) ||
        f.type != FRAME_HELLO_ACK || f.src_qpn != h.dst_qpn || f.dst_qpn != h.src_qpn || f.slid != h.dlid ||
        f.dlid != h.slid)
        return GREET_OTHER_PROCESS;
    hello_compute_proof(KEY_CALLED, hello, ack, want);
    return secret_equal(want, ack + FRAME_BYTES + NONCE_BYTES, SHA256_SIZE) ? GREET_GOOD : GREET_WRONG_KEY;
}

static void hello_build_reply(const struct frame *h, enum frame_type type, uint32_t bytes, struct frame *f)
{
    *f = *h;
    f->type = (uint8_t)type;
    f->length = f->total = bytes;
}

void greet_proof(const uint8_t hello[HELLO_BYTES], const uint8_t ack[HELLO_ACK_BYTES],
                 uint8_t out[PROOF_BYTES])
{
    struct frame h, f;
    frame_decode(hello, net_fabric(), &h);
    hello_build_reply(&h, FRAME_PROOF, FRAME_PROOF_BYTES, &f);
    frame_encode(&f, net_fabric(), out);
    hello_compute_proof(KEY_CALLER, hello, ack, out + FRAME_BYTES);
}

void greet_answer(const uint8_t hello[HELLO_BYTES], uint8_t out[HELLO_ACK_BYTES])
{
    struct frame h, f;
    frame_decode(hello, net_fabric(), &h);
    hello_build_reply(&h, FRAME_HELLO_ACK, FRAME_HELLO_ACK_BYTES, &f);
    f.dst_qpn = h.src_qpn;
    f.src_qpn = h.dst_qpn;
    f.slid = h.dlid;
    f.dlid = h.slid;
    frame_encode(&f, net_fabric(), out);
    random_bytes(out + FRAME_BYTES, NONCE_BYTES);
    hello_compute_proof(KEY_CALLED, hello, out, out + FRAME_BYTES + NONCE_BYTES);
}
