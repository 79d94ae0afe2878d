/*
 * The datagram sockets of wire (b). A process has one for each address its node is named with, all on its port
 * number; node 0's processes share another for packets to the switch. Each datagram is sealed (seal.h).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "udp.h"
#include "conn.h"
#include "seal.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static struct udp_socket own[FAB_NODE_ADDRS], shared[FAB_NODE_ADDRS];
static unsigned nown, nshared;
static uint64_t instance;
static _Atomic uint64_t numbers;
static struct in_addr switch_at; /* from where the switch answered last */

/* --- sockets --- */

static int bound_socket(struct in_addr addr, uint16_t port, bool common)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = addr};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, size = 4 << 20;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    if (common)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (!bind(fd, (struct sockaddr *)&a, sizeof(a)))
        return fd;
    int e = errno;
    close(fd);
    errno = e;
    return -1;
}

static void close_all(struct udp_socket *list, unsigned *n)
{
    for (unsigned i = 0; i < *n; i++)
        close(list[i].fd);
    *n = 0;
}

static void on_udp(struct watch *w, uint32_t ev)
{
    (void)ev;
    udp_drain(CONTAINER_OF(w, struct udp_socket, w)->fd);
}

/* One socket at each address of the node that this machine has. */
static bool bind_all(struct udp_socket *list, unsigned *n, uint16_t port, bool common)
{
    struct in_addr addrs[FAB_NODE_ADDRS];
    unsigned all = fabric_addrs(&proc.fab, proc.fab.node, addrs);
    *n = 0;
    for (unsigned i = 0; i < all; i++) {
        int fd = bound_socket(addrs[i], port, common);
        if (fd >= 0) {
            list[(*n)++] = (struct udp_socket){{on_udp}, fd, addrs[i]};
        } else if (errno != EADDRNOTAVAIL) {
            close_all(list, n);
            return false;
        }
    }
    return *n;
}

bool udp_bind(uint16_t port)
{
    return bind_all(own, &nown, port, false);
}

bool udp_start(void)
{
    instance = random_u64();
    if (!proc.fab.node && !bind_all(shared, &nshared, proc.fab.base_of[0], true))
        return false;
    bool ok = true;
    for (unsigned i = 0; ok && i < nown; i++)
        ok = wire_watch(own[i].fd, &own[i].w, EPOLLIN);
    for (unsigned i = 0; ok && i < nshared; i++)
        ok = wire_watch(shared[i].fd, &shared[i].w, EPOLLIN);
    return ok;
}

void udp_forget(void)
{
    close_all(own, &nown);
    close_all(shared, &nshared);
    group_forget();
}

/* The one from whose address the kernel's routes lead there. Asked once for each address. */
static int socket_to(struct in_addr to)
{
    static struct {
        _Atomic uint32_t addr;
        atomic_uint use;
    } known[256];
    unsigned at = (to.s_addr * 2654435761u) >> 24, i = 0;
    if (LIKELY(nown == 1))
        return own[0].fd;
    if (atomic_load(&known[at].addr) == to.s_addr && (i = atomic_load(&known[at].use)) < nown)
        return own[i].fd;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = to}, me = {0};
    socklen_t len = sizeof(me);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)))
        getsockname(fd, (struct sockaddr *)&me, &len);
    if (fd >= 0)
        close(fd);
    for (i = 0; i < nown && own[i].addr.s_addr != me.sin_addr.s_addr; i++)
        ;
    i = i < nown ? i : 0;
    atomic_store(&known[at].addr, 0);
    atomic_store(&known[at].use, i);
    atomic_store(&known[at].addr, to.s_addr);
    return own[i].fd;
}

void udp_route(struct in_addr me)
{
    for (unsigned i = 0; i < nown; i++)
        if (own[i].addr.s_addr == me.s_addr)
            group_route(own[i].fd, me);
}

int udp_any(void)
{
    return own[0].fd;
}

/* --- sending --- */

static bool send_sealed(int fd, const struct sockaddr_in *to, const uint8_t *head, const struct iovec *iov,
                        int n)
{
    uint8_t seal[SEAL_BYTES];
    struct iovec v[MAX_SGE + 3] = {{(void *)(uintptr_t)head, FRAME_BYTES}, {seal, SEAL_BYTES}};
    seal_make(instance, atomic_fetch_add(&numbers, 1) + 1, head, iov, n, seal);
    for (int i = 0; i < n; i++)
        v[2 + i] = iov[i];
    struct msghdr m = {.msg_name = (void *)(uintptr_t)to,
                       .msg_namelen = sizeof(*to),
                       .msg_iov = v,
                       .msg_iovlen = (size_t)n + 2};
    return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
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

void udp_send(int fd, const struct sockaddr_in *to, uint32_t qpn, const struct request *r,
              const struct iovec *iov, int n)
{
    uint8_t head[FRAME_BYTES];
    struct iovec v[MAX_SGE + 1];
    struct frame f;
    struct ibv_grh grh = r->grh;
    fill(&f, qpn, r);
    frame_encode(&f, wire_fabric(), head);
    v[0] = (struct iovec){&grh, GRH_BYTES};
    for (int i = 0; i < n; i++)
        v[1 + i] = iov[i];
    struct fab_place me;
    if (!send_sealed(fd, to, head, v, n + 1) && fabric_locate(&proc.fab, r->slid, &me))
        port_count(me.linear, CNT_TX_DROPS, 1);
}

static void send_known(uint32_t node, uint32_t port, uint32_t qpn, const struct request *r,
                       const struct iovec *iov, int n)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)(proc.fab.base_of[node] + (qpn >> QP_BITS))),
                             .sin_addr = reach_addr(port)};
    udp_send(socket_to(to.sin_addr), &to, qpn, r, iov, n);
}

void wire_udp_send(uint32_t node, uint32_t qpn, const struct request *r, const struct iovec *iov, int n)
{
    uint32_t port = (uint32_t)(r->dlid >> proc.fab.lmc) - 1;
    if (LIKELY(reach_known(port)))
        send_known(node, port, qpn, r, iov, n);
    else
        udp_keep(node, port, qpn, r, iov, n);
}

void wire_udp_switch_at(const struct sockaddr_in *from)
{
    switch_at = from->sin_addr;
}

/* The switch is at node 0, on its first port number, which no process has: whichever of its processes the
 * kernel gives the packet to runs the logic. */
void wire_udp_switch(const struct frame *f, const struct sockaddr_in *to)
{
    const struct fab_port *node0 = &proc.fab.port[0];
    static unsigned count, turn; /* under the wire's lock */
    uint8_t head[FRAME_BYTES];
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(proc.fab.base_of[0]), .sin_addr = switch_at};
    /* Unanswered packets are repeated: each to the next address. */
    if (!switch_at.s_addr || ++count % 16 == 0)
        a.sin_addr = node0->addr[turn++ % node0->addrs];
    frame_encode(f, wire_fabric(), head);
    to = to ? to : &a;
    send_sealed(socket_to(to->sin_addr), to, head, NULL, 0);
}

/* --- receiving --- */

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

/* A frame of this fabric for a socket like ours, sealed by a member, and not seen before. */
static bool authentic(const uint8_t *p, size_t n, struct frame *f)
{
    struct fab_place from;
    const uint8_t *seal = p + FRAME_BYTES, *payload = seal + SEAL_BYTES;
    return n >= FRAME_BYTES + SEAL_BYTES && frame_decode(p, wire_fabric(), f) &&
           (f->type == FRAME_DATAGRAM_DATA || f->type == FRAME_SWITCH) &&
           n == FRAME_BYTES + SEAL_BYTES + f->length && fabric_locate(&proc.fab, f->slid, &from) &&
           seal_good(seal, p, payload, f->length) && seal_fresh(seal, from.node, f->src_qpn >> QP_BITS);
}

static void deliver(const uint8_t *p, size_t n, const struct sockaddr_in *from)
{
    struct frame f;
    struct fab_place at;
    struct request r = {0};
    const uint8_t *payload = p + FRAME_BYTES + SEAL_BYTES;
    if (!authentic(p, n, &f)) {
        port_count(fabric_linear(&proc.fab, proc.fab.node, 0, 1), CNT_BAD_FRAMES, 1);
        return;
    }
    if (f.type == FRAME_SWITCH) {
        barrier_frame(&f, from);
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
    else if (fabric_locate(&proc.fab, f.dlid, &at) && at.node == proc.fab.node &&
             f.dst_qpn >> QP_BITS == proc.slot)
        ud_deliver(proc.self, f.dst_qpn, &r, &data, 1);
    else
        port_count(fabric_linear(&proc.fab, proc.fab.node, 0, 1), CNT_RX_DROPS, 1);
}

void udp_drain(int fd)
{
    static uint8_t buf[FRAME_BYTES + SEAL_BYTES + FRAME_DATAGRAM + 1]; /* under the wire's lock */
    for (int i = 0; i < 64; i++) {
        struct sockaddr_in from = {0};
        socklen_t len = sizeof(from);
        ssize_t n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
        if (n < 0)
            return;
        deliver(buf, (size_t)n, &from);
    }
}
