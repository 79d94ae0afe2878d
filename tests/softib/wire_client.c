/* wire_client.c: connects, authenticates and sends frames without an adapter (wire_client.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire_client.h"
#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOT_SHIFT 14

void wire_client_setup(struct fabric *fab)
{
    char err[256];
    uint8_t key[KEY_BYTES];
    CHECK(fabric_parse(getenv("SOFTIB_FABRIC"), fab, err, sizeof(err)) && fab->wire == WIRE_TCP, "%s", err);
    CHECK(getenv("SOFTIB_KEY") && key_parse(getenv("SOFTIB_KEY"), key));
    key_set_fabric_key(key, fab->id);
}

int wire_client_connect(const struct fabric *fab, const struct vt_qp *q)
{
    struct fab_place at;
    CHECK(fabric_find_lid(fab, q->peer.lid, &at));
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr = fab->port[at.linear].addr[0],
                             .sin_port =
                                 htons((uint16_t)(fab->base_of[at.node] + (q->peer.qpn >> SLOT_SHIFT)))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)));
    return fd;
}

bool wire_client_read(int fd, void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t r = recv(fd, (char *)p + at, n - at, 0);
        if (r <= 0)
            return false;
        at += (size_t)r;
    }
    return true;
}

struct frame wire_client_make_frame(const struct vt_qp *q, enum frame_type type, uint32_t nth)
{
    return (struct frame){.type = (uint8_t)type,
                          .qp_type = IBV_QPT_RC,
                          .opcode = type == FRAME_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                          .dst_qpn = q->peer.qpn,
                          .src_qpn = q->me.qpn,
                          .seq = (q->me.psn + nth) & 0xffffff,
                          .slid = q->me.lid,
                          .dlid = q->peer.lid};
}

void wire_client_send(const struct fabric *fab, int fd, const struct frame *f, const void *payload,
                      size_t bytes)
{
    uint8_t head[FRAME_BYTES];
    frame_encode(f, (uint32_t)fab->id, head);
    if (send(fd, head, sizeof(head), MSG_NOSIGNAL) == (ssize_t)sizeof(head) && bytes)
        CHECK(send(fd, payload, bytes, MSG_NOSIGNAL) == (ssize_t)bytes || errno == EPIPE ||
              errno == ECONNRESET);
}

int wire_client_greet(const struct fabric *fab, const struct vt_qp *q)
{
    return wire_client_greet_as(fab, q, q->me.qpn >> SLOT_SHIFT, false);
}

int wire_client_greet_as(const struct fabric *fab, const struct vt_qp *q, uint32_t slot, bool lie)
{
    uint8_t hello[FRAME_BYTES], nonce[NONCE_BYTES], ack[FRAME_BYTES + FRAME_HELLO_ACK_BYTES],
        proof[SHA256_SIZE];
    struct frame f = wire_client_make_frame(q, FRAME_HELLO, 0);
    int fd = wire_client_connect(fab, q);
    f.src_qpn = slot << SLOT_SHIFT;
    f.dst_qpn = q->peer.qpn >> SLOT_SHIFT << SLOT_SHIFT;
    f.seq = 0;
    f.length = f.total = sizeof(nonce);
    CHECK(getrandom(nonce, sizeof(nonce), 0) == (ssize_t)sizeof(nonce));
    frame_encode(&f, (uint32_t)fab->id, hello);
    wire_client_send(fab, fd, &f, nonce, sizeof(nonce));
    CHECK(wire_client_read(fd, ack, sizeof(ack)), "no answer to HELLO");
    key_proof(KEY_CALLED, hello, sizeof(hello), nonce, ack + FRAME_BYTES, proof);
    CHECK(!memcmp(proof, ack + FRAME_BYTES + NONCE_BYTES, sizeof(proof)),
          "the proof of the other side is invalid");
    key_proof(KEY_CALLER, hello, sizeof(hello), nonce, ack + FRAME_BYTES, proof);
    f.type = FRAME_PROOF;
    proof[0] ^= lie;
    f.length = f.total = sizeof(proof);
    wire_client_send(fab, fd, &f, proof, sizeof(proof));
    return fd;
}

bool wire_client_ping(const struct fabric *fab, int fd, const struct vt_qp *q)
{
    static uint8_t sink[FRAME_SEGMENT];
    struct frame f = wire_client_make_frame(q, FRAME_PING, 0);
    uint8_t head[FRAME_BYTES];
    f.seq = 77;
    wire_client_send(fab, fd, &f, NULL, 0);
    while (wire_client_read(fd, head, sizeof(head)) && frame_decode(head, (uint32_t)fab->id, &f)) {
        if (f.type == FRAME_PONG && f.seq == 77)
            return true;
        if (f.length && !wire_client_read(fd, sink, f.length))
            return false;
    }
    return false;
}
