/* udp_in.c: received datagrams: checks them and delivers them to their QP, to their multicast group or to
 * the switch.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"
#include "net/seal.h"
#include "net/switch.h"
#include "net/udp.h"
#include <sys/socket.h>

static void deliver_group(const struct frame *f, const struct request *r, const struct iovec *data)
{
    struct fab_place from;
    (void)f;
    if (!fabric_find_lid(&proc.fab, r->slid, &from) || from.node == proc.fab.node)
        return;
    const int row = group_row(r->grh.dgid.raw);
    const struct reg_group *g = &proc.reg->group[row < 0 ? 0 : row];
    const unsigned top = row < 0 ? 0 : atomic_load(&g->top);
    for (unsigned i = 0; i < top; i++) {
        uint32_t qpn = atomic_load(&g->qpn[i]);
        if (qpn && qpn >> QP_BITS == proc.slot)
            ud_deliver(proc.self, qpn, r, data, 1);
    }
}

/* True for a frame of this fabric that a member has sealed and that was not received before. */
static bool udp_is_authentic(const uint8_t *p, size_t n, struct frame *f)
{
    struct fab_place from;
    const uint8_t *seal = p + FRAME_BYTES, *payload = seal + SEAL_BYTES;
    return n >= FRAME_BYTES + SEAL_BYTES && frame_decode(p, net_fabric(), f) &&
           (f->type == FRAME_DATAGRAM_DATA || f->type == FRAME_SWITCH) &&
           n == FRAME_BYTES + SEAL_BYTES + f->length && fabric_find_lid(&proc.fab, f->slid, &from) &&
           seal_is_valid(seal, p, payload, f->length) &&
           seal_is_not_replayed(seal, from.node, f->src_qpn >> QP_BITS);
}

static void udp_deliver(const uint8_t *p, size_t n, const struct sockaddr_in *from)
{
    struct frame f;
    struct fab_place at;
    struct request r = {0};
    const uint8_t *payload = p + FRAME_BYTES + SEAL_BYTES;
    if (!udp_is_authentic(p, n, &f)) {
        port_count(fabric_port_index(&proc.fab, proc.fab.node, 0, 1), CNT_BAD_FRAMES, 1);
        return;
    }
    if (f.type == FRAME_SWITCH) {
        switch_handle_frame(&f, from);
        return;
    }
    r.opcode = f.opcode;
    r.solicited = f.flags & FRAME_SOLICITED;
    r.has_grh = f.flags & FRAME_GRH;
    r.type = IBV_QPT_UD;
    r.sl = f.sl;
    r.length = f.length - GRH_BYTES;
    r.imm = f.imm;
    r.src_qpn = f.src_qpn;
    r.qkey = f.arg;
    r.slid = f.slid;
    r.dlid = f.dlid;
    memcpy(&r.grh, payload, GRH_BYTES);
    struct iovec data = {(void *)(uintptr_t)(payload + GRH_BYTES), r.length};
    if (f.dst_qpn == 0xffffff)
        deliver_group(&f, &r, &data);
    else if (fabric_find_lid(&proc.fab, f.dlid, &at) && at.node == proc.fab.node &&
             f.dst_qpn >> QP_BITS == proc.slot)
        ud_deliver(proc.self, f.dst_qpn, &r, &data, 1);
    else
        port_count(fabric_port_index(&proc.fab, proc.fab.node, 0, 1), CNT_RX_DROPS, 1);
}

void udp_drain(int fd)
{
    static uint8_t buf[FRAME_BYTES + SEAL_BYTES + FRAME_DATAGRAM + 1]; /* under the lock of this wire */
    for (int i = 0; i < 64; i++) {
        struct sockaddr_in from = {0};
        socklen_t len = sizeof(from);
        ssize_t n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
        if (n < 0)
            return;
        udp_deliver(buf, (size_t)n, &from);
    }
}

void udp_ready(struct watch *w, uint32_t events)
{
    (void)events;
    udp_drain(CONTAINER_OF(w, struct udp_socket, w)->fd);
}
