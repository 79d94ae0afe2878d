/*
 * UD and multicast between machines. A group is an IP multicast address derived from its GID, on the fabric's
 * base port (slot 0, which no process has); every process that attached a QP joins, and delivers to its own
 * QPs only. The sender's node is served by shared memory already and ignores the copies that come back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "udp.h"
#include "conn.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int udp_fd = -1, group_fd = -1, switch_fd = -1;
static struct watch udp_watch, group_watch, switch_watch;
static struct in_addr route;     /* our address that leads to the other nodes, as far as we know */
static struct in_addr switch_at; /* from where the switch answered last */
#define WAITING_MAX 256u
static struct lock join_lock;

struct joined {
    uint32_t addr;
    int count;
    struct joined *next;
};
static struct joined *joined;

void udp_route(struct in_addr me)
{
    if (route.s_addr != me.s_addr && !setsockopt(udp_fd, IPPROTO_IP, IP_MULTICAST_IF, &me, sizeof(me)))
        route = me;
}

bool udp_bind(const struct sockaddr_in *a)
{
    int size = 4 << 20;
    udp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (udp_fd < 0)
        return false;
    setsockopt(udp_fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    udp_route(proc.fab.port[fabric_linear(&proc.fab, proc.fab.node, 0, 1)].addr[0]);
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

/* Datagrams to a port of which no address has answered yet. */
struct waiting {
    uint32_t node, port, qpn, from;
    size_t n;
    struct waiting *next;
    uint8_t bytes[FRAME_BYTES + FRAME_DATAGRAM];
};
static struct lock wait_lock;
static struct waiting *waiting, **waiting_end = &waiting;
static unsigned waiting_count;

static void keep(uint32_t node, uint32_t qpn, const struct request *r, const struct iovec *iov, int n)
{
    struct waiting *w = malloc(sizeof(*w));
    struct frame f;
    uint32_t from = (uint32_t)(r->slid >> proc.fab.lmc) - 1;
    lock_take(&wait_lock);
    if (!w || waiting_count == WAITING_MAX) {
        lock_drop(&wait_lock);
        port_count(from, CNT_TX_DROPS, 1);
        free(w);
        return;
    }
    fill(&f, qpn, r);
    frame_encode(&f, wire_fabric(), w->bytes);
    memcpy(w->bytes + FRAME_BYTES, &r->grh, GRH_BYTES);
    w->n = FRAME_BYTES + GRH_BYTES;
    for (int i = 0; i < n; w->n += iov[i++].iov_len)
        memcpy(w->bytes + w->n, iov[i].iov_base, iov[i].iov_len);
    w->node = node;
    w->port = (uint32_t)(r->dlid >> proc.fab.lmc) - 1;
    w->qpn = qpn;
    w->from = from;
    w->next = NULL;
    *waiting_end = w;
    waiting_end = &w->next;
    waiting_count++;
    lock_drop(&wait_lock);
}

static struct sockaddr_in address_of(uint32_t node, uint32_t port, uint32_t qpn)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)(proc.fab.base_of[node] + (qpn >> QP_BITS))),
                                .sin_addr = reach_addr(port)};
}

void udp_release(uint32_t port)
{
    lock_take(&wait_lock);
    for (struct waiting **p = &waiting, *w; (w = *p);) {
        if (w->port != port) {
            p = &w->next;
            continue;
        }
        struct sockaddr_in to = address_of(w->node, port, w->qpn);
        if (reach_known(port))
            sendto(udp_fd, w->bytes, w->n, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof(to));
        else
            port_count(w->from, CNT_TX_DROPS, 1);
        *p = w->next;
        waiting_count--;
        free(w);
    }
    for (waiting_end = &waiting; *waiting_end; waiting_end = &(*waiting_end)->next)
        ;
    lock_drop(&wait_lock);
}

/* A connection to the process a datagram is for finds out which address is the right one. */
void udp_tick(void)
{
    uint32_t node = 0, port = 0, slot = 0, from = 0;
    lock_take(&wait_lock);
    bool any = waiting != NULL;
    if (any) {
        node = waiting->node;
        port = waiting->port;
        slot = waiting->qpn >> QP_BITS;
        from = waiting->from;
    }
    lock_drop(&wait_lock);
    if (!any)
        return;
    if (reach_known(port) || !conn_open(node, slot, from, port))
        udp_release(port);
    engine_tick_at(now_ns() + NS_MS); /* for the next in the list */
}

void wire_udp_send(uint32_t node, uint32_t qpn, const struct request *r, const struct iovec *iov, int n)
{
    uint32_t port = (uint32_t)(r->dlid >> proc.fab.lmc) - 1;
    if (LIKELY(reach_known(port))) {
        struct sockaddr_in to = address_of(node, port, qpn);
        send_to(&to, qpn, r, iov, n);
        return;
    }
    keep(node, qpn, r, iov, n);
    engine_tick_at(now_ns());
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
    uint8_t out[FRAME_BYTES];
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(proc.fab.base_of[0]), .sin_addr = switch_at};
    /* Unanswered packets are repeated: each to the next address. */
    if (!switch_at.s_addr || ++count % 16 == 0)
        a.sin_addr = node0->addr[turn++ % node0->addrs];
    frame_encode(f, wire_fabric(), out);
    sendto(udp_fd, out, sizeof(out), MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)(to ? to : &a),
           sizeof(a));
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

/* On every network the node is on: the sender's choice is not ours. */
static bool join_everywhere(uint32_t group, int what)
{
    uint32_t n = proc.fab.hcas * proc.fab.ports, first = proc.fab.node * n;
    bool ok = false;
    for (uint32_t p = first; p < first + n; p++)
        for (unsigned i = 0; i < proc.fab.port[p].addrs; i++) {
            struct ip_mreq m = {.imr_multiaddr = {.s_addr = group},
                                .imr_interface = proc.fab.port[p].addr[i]};
            /* EADDRINUSE: another of our addresses on the same interface has joined */
            ok |= !setsockopt(group_fd, IPPROTO_IP, what, &m, sizeof(m)) || errno == EADDRINUSE;
        }
    return ok;
}

void wire_udp_join(const uint8_t gid[16], bool join)
{
    uint32_t group = group_addr(gid);
    struct joined *j;
    lock_take(&join_lock);
    for (j = joined; j && j->addr != group; j = j->next)
        ;
    if (!j && join && (j = calloc(1, sizeof(*j)))) {
        j->addr = group;
        j->next = joined;
        joined = j;
    }
    if (j && join && !j->count++ && !join_everywhere(group, IP_ADD_MEMBERSHIP))
        say("cannot join the multicast group on the network: %s", strerror(errno));
    if (j && !join && j->count && !--j->count)
        join_everywhere(group, IP_DROP_MEMBERSHIP);
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

static void deliver(const uint8_t *p, size_t n, const struct sockaddr_in *from)
{
    struct frame f;
    struct fab_place at;
    struct request r = {0};
    if (n < FRAME_BYTES || !frame_decode(p, wire_fabric(), &f) ||
        (f.type != FRAME_DATAGRAM_DATA && f.type != FRAME_SWITCH) || n != FRAME_BYTES + f.length) {
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
        struct sockaddr_in from = {0};
        socklen_t len = sizeof(from);
        ssize_t n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
        if (n < 0)
            return;
        deliver(buf, (size_t)n, &from);
    }
}

static void on_udp(struct watch *w, uint32_t ev)
{
    (void)ev;
    drain(w == &udp_watch ? udp_fd : w == &group_watch ? group_fd : switch_fd);
}

/* A socket that all processes of a node have, for groups they joined or for packets to any of them. */
static int common_socket(struct in_addr addr, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = addr};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, zero = 0;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &zero, sizeof(zero));
    if (!bind(fd, (struct sockaddr *)&a, sizeof(a)))
        return fd;
    close(fd);
    return -1;
}

bool udp_start(void)
{
    struct in_addr any = {htonl(INADDR_ANY)};
    group_fd = common_socket(any, proc.fab.base);
    udp_watch.ready = group_watch.ready = switch_watch.ready = on_udp;
    if (!proc.fab.node) {
        switch_fd = common_socket(fabric_bind_addr(&proc.fab, 0), proc.fab.base_of[0]);
        if (switch_fd < 0 || !wire_watch(switch_fd, &switch_watch, EPOLLIN))
            return false;
    }
    return group_fd >= 0 && wire_watch(udp_fd, &udp_watch, EPOLLIN) &&
           wire_watch(group_fd, &group_watch, EPOLLIN);
}

void udp_forget(void)
{
    close(udp_fd);
    close(group_fd);
    if (switch_fd >= 0)
        close(switch_fd);
    switch_fd = -1;
    joined = NULL;
    route.s_addr = 0;
}
