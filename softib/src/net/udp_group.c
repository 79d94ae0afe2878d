/* udp_group.c: multicast between machines. A group is an IP multicast address derived from its GID, on the
 * fabric's base port (slot 0, which no process uses). Every process that attached a QP binds a socket to it
 * and delivers to its own QPs only. On the sender's node shared memory has already delivered the packet, so
 * copies that come back are ignored.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"
#include "net/udp.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct joined {
    struct udp_socket s; /* its address is the multicast address of the group */
    int count;
    struct joined *next;
};
static struct joined *joined; /* includes groups that were left, since a pending event may refer to them */
static struct lock join_lock;
static _Atomic uint32_t route; /* local address from which other nodes were reached last; 0: none */
static atomic_int route_fd = -1;

void group_set_source_address(struct in_addr me)
{
    int fd = udp_socket_at(me);
    if (fd >= 0 && atomic_load(&route) != me.s_addr &&
        !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &me, sizeof(me))) {
        atomic_store(&route, me.s_addr);
        atomic_store(&route_fd, fd);
    }
}

/* Maps a group to an IPv4 multicast address in 239.192.0.0/14, the organisation-local scope. */
static uint32_t group_addr(const uint8_t gid[16])
{
    uint64_t h = hash_bytes(gid, 16, proc.fab.id | 1);
    return htonl(0xEFC00000u | ((uint32_t)(h ^ h >> 32) & 0x3ffffu));
}

void group_send(struct qp *q, const struct path *to, const struct request *r, const struct iovec *iov, int n)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(proc.fab.base),
                            .sin_addr = {.s_addr = group_addr(to->dgid.raw)}};
    struct request copy = *r;
    copy.grh.dgid = to->dgid;
    copy.has_grh = true;
    if (atomic_load(&route_fd) < 0)
        group_set_source_address(proc.fab.port[q->linear].addr[0]);
    int fd = atomic_load(&route_fd);
    udp_send(fd < 0 ? udp_first_socket() : fd, &a, 0xffffff, &copy, iov, n);
}

static void udp_group_on_group(struct watch *w, uint32_t ev)
{
    struct joined *j = CONTAINER_OF(w, struct joined, s.w);
    (void)ev;
    if (j->s.fd >= 0)
        udp_drain(j->s.fd);
}

/* Joins the group on every network of the node: the sender chooses which one it uses. */
static bool join_on_all_networks(int fd, struct in_addr group)
{
    struct in_addr addrs[FAB_NODE_ADDRS];
    unsigned n = fabric_addrs(&proc.fab, proc.fab.node, addrs);
    bool ok = false;
    for (unsigned i = 0; i < n; i++) {
        struct ip_mreq m = {.imr_multiaddr = group, .imr_interface = addrs[i]};
        /* EADDRINUSE: another local address on the same interface has joined */
        ok |= !setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)) || errno == EADDRINUSE;
    }
    return ok;
}

/* Opens a socket bound to the group's address, which receives only its datagrams. */
static bool open_group(struct joined *j)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(proc.fab.base), .sin_addr = j->s.addr};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, zero = 0, size = 4 << 20;
    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &zero, sizeof(zero));
    j->s.w.ready = udp_group_on_group;
    j->s.fd = fd;
    if (!bind(fd, (struct sockaddr *)&a, sizeof(a)) && join_on_all_networks(fd, j->s.addr) &&
        net_watch(fd, &j->s.w, EPOLLIN))
        return true;
    int e = errno;
    close(fd);
    j->s.fd = -1;
    errno = e;
    return false;
}

void group_join(const uint8_t gid[16], bool join)
{
    struct in_addr group = {group_addr(gid)};
    struct joined *j;
    net_lock(); /* the socket must not be closed while it is read */
    spinlock_acquire(&join_lock);
    for (j = joined; j && j->s.addr.s_addr != group.s_addr; j = j->next)
        ;
    if (!j && join && (j = calloc(1, sizeof(*j)))) {
        j->s.addr = group;
        j->s.fd = -1;
        j->next = joined;
        joined = j;
    }
    if (join && (!j || (!j->count++ && !open_group(j))))
        softib_log("cannot join an IP multicast group on the network: %s", strerror(errno));
    if (j && !join && j->count && !--j->count && j->s.fd >= 0) {
        close(j->s.fd);
        j->s.fd = -1;
    }
    spinlock_release(&join_lock);
    net_unlock();
}

void group_reset_after_fork(void)
{
    for (struct joined *j = joined; j; j = j->next)
        if (j->s.fd >= 0)
            close(j->s.fd);
    joined = NULL;
    atomic_store(&route, 0);
    atomic_store(&route_fd, -1);
}
