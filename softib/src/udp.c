/*
 * UD and multicast between machines. A group is an IP multicast address derived from its GID, on the fabric's
 * base port (slot 0, which no process has); every process that attached a QP joins, and delivers to its own
 * QPs only. The sender's node is served by shared memory already and ignores the copies that come back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "udp.h"
#include "conn.h"
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int udp_fd = -1, group_fd = -1;
static struct watch udp_watch, group_watch;
static struct lock join_lock;

struct joined {
    uint32_t addr;
    int count;
    struct joined *next;
};
static struct joined *joined;

bool udp_bind(const struct sockaddr_in *a)
{
    int size = 4 << 20;
    udp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (udp_fd < 0)
        return false;
    setsockopt(udp_fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    setsockopt(udp_fd, IPPROTO_IP, IP_MULTICAST_IF, &a->sin_addr, sizeof(a->sin_addr));
    if (!bind(udp_fd, (const struct sockaddr *)a, sizeof(*a)))
        return true;
    close(udp_fd);
    udp_fd = -1;
    return false;
}

static void fill(struct frame *f, uint32_t qpn, const struct request *r)
{
    *f = (struct frame){
        .type = FRAME_DATAGRAM_DATA,
        .flags = (uint8_t)((r->solicited ? FRAME_SOLICITED : 0) | (r->has_grh ? FRAME_GRH : 0)),
        .opcode = r->opcode,
        .sl = r->sl,
        .qp_type = IBV_QPT_UD,
        .dst_qpn = qpn,
        .src_qpn = r->src_qpn,
        .length = r->length + GRH_BYTES,
        .total = r->length + GRH_BYTES,
        .imm = r->imm,
        .slid = r->slid,
        .dlid = r->dlid,
        .arg = r->qkey,
    };
}

static void send_to(const struct sockaddr_in *to, uint32_t qpn, const struct request *r,
                    const struct iovec *iov, int n)
{
    uint8_t head[FRAME_BYTES];
    struct iovec v[MAX_SGE + 2];
    struct frame f;
    struct ibv_grh grh = r->grh;
    fill(&f, qpn, r);
    frame_encode(&f, wire_fabric(), head);
    v[0] = (struct iovec){head, FRAME_BYTES};
    v[1] = (struct iovec){&grh, GRH_BYTES};
    memcpy(&v[2], iov, (size_t)n * sizeof(*iov));
    struct msghdr m = {.msg_name = (void *)(uintptr_t)to,
                       .msg_namelen = sizeof(*to),
                       .msg_iov = v,
                       .msg_iovlen = (size_t)n + 2};
    if (sendmsg(udp_fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        struct fab_place me;
        if (fabric_locate(&proc.fab, r->slid, &me))
            port_count(me.linear, CNT_TX_DROPS, 1);
    }
}

void wire_udp_send(uint32_t node, uint32_t qpn, const struct request *r, const struct iovec *iov, int n)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)(proc.fab.base_of[node] + (qpn >> QP_BITS))),
                             .sin_addr = proc.fab.addr[node]};
    send_to(&to, qpn, r, iov, n);
}

/* 239.192.0.0/14 is for use inside an organisation. */
static uint32_t group_addr(const uint8_t gid[16])
{
    uint64_t h = hash_bytes(gid, 16, proc.fab.id | 1);
    return htonl(0xEFC00000u | ((uint32_t)(h ^ h >> 32) & 0x3ffffu));
}

void wire_udp_multicast(struct qp *q, const struct path *to, const struct request *r, const struct iovec *iov,
                        int n)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(proc.fab.base),
                            .sin_addr = {.s_addr = group_addr(to->dgid.raw)}};
    struct request copy = *r;
    (void)q;
    copy.grh.dgid = to->dgid;
    copy.has_grh = true;
    send_to(&a, 0xffffff, &copy, iov, n);
}

void wire_udp_join(const uint8_t gid[16], bool join)
{
    struct ip_mreq m = {.imr_multiaddr = {.s_addr = group_addr(gid)},
                        .imr_interface = proc.fab.addr[proc.fab.node]};
    struct joined *j;
    lock_take(&join_lock);
    for (j = joined; j && j->addr != m.imr_multiaddr.s_addr; j = j->next)
        ;
    if (!j && join && (j = calloc(1, sizeof(*j)))) {
        j->addr = m.imr_multiaddr.s_addr;
        j->next = joined;
        joined = j;
    }
    if (j && join && !j->count++ && setsockopt(group_fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)))
        say("cannot join the multicast group on the network: %s", strerror(errno));
    if (j && !join && j->count && !--j->count)
        setsockopt(group_fd, IPPROTO_IP, IP_DROP_MEMBERSHIP, &m, sizeof(m));
    lock_drop(&join_lock);
}

static void deliver_group(const struct frame *f, const struct request *r, const struct iovec *data)
{
    struct fab_place from;
    (void)f;
    if (!fabric_locate(&proc.fab, r->slid, &from) || from.node == proc.fab.node)
        return;
    for (int g = 0; g < GROUPS; g++) {
        struct reg_group *grp = &proc.reg->group[g];
        if (!atomic_load(&grp->used) || memcmp(grp->gid, r->grh.dgid.raw, 16))
            continue;
        for (int i = 0; i < GROUP_QPS; i++) {
            uint32_t qpn = atomic_load(&grp->qpn[i]);
            if (qpn && qpn >> QP_BITS == proc.slot)
                ud_deliver(proc.self, qpn, r, data, 1);
        }
    }
}

static void deliver(const uint8_t *p, size_t n)
{
    struct frame f;
    struct fab_place at;
    struct request r = {0};
    if (n < FRAME_BYTES || !frame_decode(p, wire_fabric(), &f) || f.type != FRAME_DATAGRAM_DATA ||
        n != FRAME_BYTES + f.length) {
        port_count(fabric_linear(&proc.fab, proc.fab.node, 0, 1), CNT_BAD_FRAMES, 1);
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
    memcpy(&r.grh, p + FRAME_BYTES, GRH_BYTES);
    struct iovec data = {(void *)(uintptr_t)(p + FRAME_BYTES + GRH_BYTES), r.length};
    if (f.dst_qpn == 0xffffff)
        deliver_group(&f, &r, &data);
    else if (fabric_locate(&proc.fab, f.dlid, &at) && at.node == proc.fab.node &&
             f.dst_qpn >> QP_BITS == proc.slot)
        ud_deliver(proc.self, f.dst_qpn, &r, &data, 1);
    else
        port_count(fabric_linear(&proc.fab, proc.fab.node, 0, 1), CNT_RX_DROPS, 1);
}

static void drain(int fd)
{
    static uint8_t buf[FRAME_BYTES + FRAME_DATAGRAM + 1]; /* under the wire's lock */
    for (int i = 0; i < 64; i++) {
        ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
        if (n < 0)
            return;
        deliver(buf, (size_t)n);
    }
}

static void on_udp(struct watch *w, uint32_t ev)
{
    (void)ev;
    drain(w == &udp_watch ? udp_fd : group_fd);
}

bool udp_start(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(proc.fab.base)};
    int one = 1, zero = 0;
    group_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (group_fd < 0)
        return false;
    setsockopt(group_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    setsockopt(group_fd, IPPROTO_IP, IP_MULTICAST_ALL, &zero, sizeof(zero));
    udp_watch.ready = group_watch.ready = on_udp;
    return !bind(group_fd, (struct sockaddr *)&a, sizeof(a)) && wire_watch(udp_fd, &udp_watch) &&
           wire_watch(group_fd, &group_watch);
}

void udp_forget(void)
{
    close(udp_fd);
    close(group_fd);
}
