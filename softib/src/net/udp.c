/* udp.c: the datagram sockets. A process has one for each address of its node, all with its port number; the
 * processes of node 0 share one more for packets to the switch. Each datagram is sealed (seal.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/udp.h"
#include "net/address.h"
#include "net/conn.h"
#include "net/seal.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static struct udp_socket own[FAB_NODE_ADDRS], shared[FAB_NODE_ADDRS];
static unsigned nown, nshared;
static uint64_t instance;
static _Atomic uint64_t numbers;

/* --- sockets --- */

static int open_bound_socket(struct in_addr addr, uint16_t port, bool common)
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

static void udp_close_sockets(struct udp_socket *list, unsigned *n)
{
    for (unsigned i = 0; i < *n; i++)
        close(list[i].fd);
    *n = 0;
}

/* Binds one socket to each address of the node that this machine has. */
static bool udp_bind_sockets(struct udp_socket *list, unsigned *n, uint16_t port, bool common)
{
    struct in_addr addrs[FAB_NODE_ADDRS];
    unsigned all = fabric_addrs(&proc.fab, proc.fab.node, addrs);
    *n = 0;
    for (unsigned i = 0; i < all; i++) {
        int fd = open_bound_socket(addrs[i], port, common);
        if (fd >= 0) {
            list[(*n)++] = (struct udp_socket){{NULL}, fd, addrs[i]};
        } else if (errno != EADDRNOTAVAIL) {
            udp_close_sockets(list, n);
            return false;
        }
    }
    return *n;
}

bool udp_bind(uint16_t port)
{
    return udp_bind_sockets(own, &nown, port, false);
}

static bool udp_watch_sockets(struct udp_socket *list, unsigned n,
                              void (*ready)(struct watch *w, uint32_t events))
{
    bool ok = true;
    for (unsigned i = 0; ok && i < n; i++) {
        list[i].w.ready = ready;
        ok = net_watch(list[i].fd, &list[i].w, EPOLLIN);
    }
    return ok;
}

bool udp_start(void (*ready)(struct watch *w, uint32_t events))
{
    instance = seal_new_instance();
    if (!proc.fab.node && !udp_bind_sockets(shared, &nshared, proc.fab.base_of[0], true))
        return false;
    return udp_watch_sockets(own, nown, ready) && udp_watch_sockets(shared, nshared, ready);
}

void udp_reset_after_fork(void)
{
    udp_close_sockets(own, &nown);
    udp_close_sockets(shared, &nshared);
}

/* The socket from whose address the kernel's routes lead to `to`; queried once per address. */
static int udp_socket_for_route(struct in_addr to)
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

int udp_socket_at(struct in_addr me)
{
    for (unsigned i = 0; i < nown; i++)
        if (own[i].addr.s_addr == me.s_addr)
            return own[i].fd;
    return -1;
}

int udp_first_socket(void)
{
    return own[0].fd;
}

/* --- sending --- */

static bool send_sealed_datagram(int fd, const struct sockaddr_in *to, const uint8_t *head,
                                 const struct iovec *iov, int n)
{
    uint8_t seal[SEAL_BYTES];
    struct iovec v[MAX_SGE + 3] = {{(void *)(uintptr_t)head, FRAME_BYTES}, {seal, SEAL_BYTES}};
    seal_create(instance, atomic_fetch_add(&numbers, 1) + 1, head, iov, n, seal);
    for (int i = 0; i < n; i++)
        v[2 + i] = iov[i];
    struct msghdr m = {.msg_name = (void *)(uintptr_t)to,
                       .msg_namelen = sizeof(*to),
                       .msg_iov = v,
                       .msg_iovlen = (size_t)n + 2};
    return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void udp_fill_frame(struct frame *f, uint32_t qpn, const struct request *r)
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
    udp_fill_frame(&f, qpn, r);
    frame_encode(&f, net_fabric(), head);
    v[0] = (struct iovec){&grh, GRH_BYTES};
    for (int i = 0; i < n; i++)
        v[1 + i] = iov[i];
    struct fab_place me;
    if (!send_sealed_datagram(fd, to, head, v, n + 1) && fabric_find_lid(&proc.fab, r->slid, &me))
        port_count(me.linear, CNT_TX_DROPS, 1);
}

void udp_send_port(uint32_t node, uint32_t port, uint32_t qpn, const struct request *r,
                   const struct iovec *iov, int n)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)(proc.fab.base_of[node] + (qpn >> QP_BITS))),
                             .sin_addr = address_of_port(port)};
    udp_send(udp_socket_for_route(to.sin_addr), &to, qpn, r, iov, n);
}

void udp_send_head(const struct sockaddr_in *to, const struct frame *f)
{
    uint8_t head[FRAME_BYTES];
    frame_encode(f, net_fabric(), head);
    send_sealed_datagram(udp_socket_for_route(to->sin_addr), to, head, NULL, 0);
}
