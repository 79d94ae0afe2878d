/* t_strangers.c: a process that is not a member of the fabric gets no access over the network: neither
 * without the key, nor under a foreign name, nor by repeating a datagram. No process, member or not, can
 * exhaust another member's descriptors or memory: that member continues to serve its peers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/seal.h"
#include "wire_client.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 400
#define FLOOD_BYTES (48u << 20)
#define GROWTH_MAX  (16u << 20) /* permitted growth of the victim's memory, far less than FLOOD_BYTES */
#define MARKER      0x5a

static struct fabric fab;

static bool is_disconnected(int fd)
{
    char c;
    struct timeval limit = {60, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ssize_t n;
    while ((n = recv(fd, &c, 1, 0)) > 0)
        ;
    return n == 0 || errno == ECONNRESET;
}

/* Side 0 writes to side 1 and reads back through the adapters. */
static void exchange_data(struct vt *t, struct vt_qp *q)
{
    vt_sync(t);
    if (t->side == 1) {
        vt_fill(t->buf, 5000, 3);
        CHECK(!vt_post_request(q, t, IBV_WR_RDMA_WRITE, 1, 0, 5000, 1u << 20, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    }
    vt_sync(t);
    if (t->side == 0)
        vt_expect_bytes(t->buf + (1u << 20), 5000, 3, "beside strangers");
    vt_sync(t);
}

static struct frame make_foreign_read(const struct vt_qp *q)
{
    struct frame f = wire_client_make_frame(q, FRAME_DATA, 0);
    f.length = f.total = 64;
    f.raddr = q->peer.buf;
    f.rkey = q->peer.rkey;
    return f;
}

/* Sends a correct request from an address without the key. */
static void test_without_key(struct vt *t)
{
    struct vt_qp q;
    char bytes[64];
    memset(bytes, MARKER, sizeof(bytes));
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    memset(t->buf, 0, 4096);
    vt_sync(t);
    if (t->side == 1) {
        struct frame f = make_foreign_read(&q);
        int fd = wire_client_connect(&fab, &q);
        wire_client_send(&fab, fd, &f, bytes, sizeof(bytes));
        CHECK(is_disconnected(fd), "a client that sent no greeting is still connected");
        close(fd);
        fd = wire_client_greet_as(&fab, &q, q.me.qpn >> 14, true);
        wire_client_send(&fab, fd, &f, bytes, sizeof(bytes));
        CHECK(is_disconnected(fd), "a client with an invalid proof is still connected");
        close(fd);
        /* A member that claims to be another one. */
        fd = wire_client_greet_as(&fab, &q, (q.me.qpn >> 14) + 1, false);
        wire_client_send(&fab, fd, &f, bytes, sizeof(bytes));
        CHECK(wire_client_ping(&fab, fd, &q), "a member was disconnected");
        close(fd);
    }
    vt_sync(t);
    for (size_t i = 0; t->side == 0 && i < 4096; i++)
        CHECK(t->buf[i] != MARKER, "byte %zu was written by a process that is not a member", i);
    exchange_data(t, &q);
    vt_qp_close(&q);
}

static uint64_t sender_instance; /* instance number of a process that was started later in the same slot */

static void send_datagram(const struct vt_qp *q, int udp, uint64_t number, bool good, uint8_t what)
{
    struct fab_place at;
    uint8_t packet[FRAME_BYTES + SEAL_BYTES + 40 + 8] = {0}, *payload = packet + FRAME_BYTES + SEAL_BYTES;
    struct frame f = wire_client_make_frame(q, FRAME_DATAGRAM_DATA, 0);
    struct iovec iov = {payload, 48};
    CHECK(fabric_find_lid(&fab, q->peer.lid, &at));
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr = fab.port[at.linear].addr[0],
                             .sin_port = htons((uint16_t)(fab.base_of[at.node] + (q->peer.qpn >> 14)))};
    f.qp_type = IBV_QPT_UD;
    f.opcode = IBV_WR_SEND;
    f.seq = 0;
    f.length = f.total = 48;
    f.arg = 0x1111; /* the Q_Key of all tests */
    payload[40] = what;
    frame_encode(&f, (uint32_t)fab.id, packet);
    seal_create(sender_instance, number, packet, &iov, 1, packet + FRAME_BYTES);
    packet[FRAME_BYTES + 20] ^= !good;
    CHECK(sendto(udp, packet, sizeof(packet), 0, (struct sockaddr *)&to, sizeof(to)) ==
          (ssize_t)sizeof(packet));
}

/* Of valid, repeated and forged datagrams only the valid ones arrive, once; loopback keeps their order. */
static void test_datagrams(struct vt *t)
{
    struct vt_qp q;
    vt_qp_create(t, vt_defaults(IBV_QPT_UD), &q);
    for (unsigned i = 0; i < 8 && t->side == 0; i++)
        vt_post_receive(&q, t, i, i * 4096, 4096);
    vt_qp_connect(t, vt_defaults(IBV_QPT_UD), &q);
    if (t->side == 1) {
        int udp = socket(AF_INET, SOCK_DGRAM, 0);
        const uint64_t now = (uint64_t)time(NULL);
        sender_instance = seal_new_instance();
        CHECK(sender_instance / 1000000000u >= now,
              "processes have smaller numbers after their host was booted again");
        send_datagram(&q, udp, 5, true, 1);
        send_datagram(&q, udp, 5, true, 2); /* the number was used before */
        send_datagram(&q, udp, 6, false, 3);
        send_datagram(&q, udp, 4, true, 4); /* late, but not used before */
        send_datagram(&q, udp, 4, true, 5);
        send_datagram(&q, udp, 9, true, 6);
        close(udp);
    } else {
        static const uint8_t want[] = {1, 4, 6};
        for (unsigned i = 0; i < 3; i++) {
            vt_expect_completion(t->cq, IBV_WC_SUCCESS);
            CHECK(t->buf[i * 4096 + 40] == want[i], "datagram %u was delivered, expected %u",
                  t->buf[i * 4096 + 40], want[i]);
        }
    }
    vt_sync(t);
    if (t->side == 0)
        CHECK(vt_has_no_completion(t->cq, 10), "an additional datagram was delivered");
    vt_qp_close(&q);
}

static unsigned count_descriptors(pid_t pid)
{
    char path[64];
    unsigned n = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    CHECK(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static size_t resident_bytes(pid_t pid)
{
    char path[64];
    size_t pages = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", pid);
    FILE *f = fopen(path, "r");
    CHECK(f && fscanf(f, "%*u %zu", &pages) == 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Opens many connections that send nothing. */
static void test_many_connections(struct vt *t, pid_t victim)
{
    struct vt_qp q;
    static int fd[CONNECTIONS];
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1) {
        unsigned before = count_descriptors(victim);
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            /* The last connections may not be accepted. */
            fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
            struct sockaddr_in to = {0};
            struct fab_place at;
            CHECK(fabric_find_lid(&fab, q.peer.lid, &at));
            to.sin_family = AF_INET;
            to.sin_addr = fab.port[at.linear].addr[0];
            to.sin_port = htons((uint16_t)(fab.base_of[at.node] + (q.peer.qpn >> 14)));
            CHECK(!connect(fd[i], (struct sockaddr *)&to, sizeof(to)) || errno == EINPROGRESS);
        }
        for (unsigned i = 0; i < 200; i++) {
            CHECK(count_descriptors(victim) < before + 140,
                  "%u foreign connections use descriptors of the victim", count_descriptors(victim) - before);
            sched_yield();
        }
    }
    vt_qp_close(&q);
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    exchange_data(t, &q);
    for (unsigned i = 0; i < CONNECTIONS && t->side == 1; i++)
        close(fd[i]);
    vt_qp_close(&q);
}

/* A member sends requests and never reads the answers. */
static void test_flood(struct vt *t, pid_t victim)
{
    struct vt_qp q;
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1) {
        static uint8_t pings[1024 * FRAME_BYTES];
        struct frame f = wire_client_make_frame(&q, FRAME_PING, 0);
        int fd = wire_client_greet(&fab, &q);
        size_t before = resident_bytes(victim), sent = 0, at = 0;
        for (unsigned i = 0; i < 1024; i++)
            frame_encode(&f, (uint32_t)fab.id, pings + i * FRAME_BYTES);
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        /* Ends if the socket accepts no data for one second: the victim does not read more. */
        while (sent < FLOOD_BYTES && poll(&p, 1, 1000) == 1) {
            ssize_t n = send(fd, pings + at, sizeof(pings) - at, MSG_DONTWAIT | MSG_NOSIGNAL);
            CHECK(n > 0 || errno == EAGAIN);
            sent += n > 0 ? (size_t)n : 0;
            at = (at + (n > 0 ? (size_t)n : 0)) % sizeof(pings);
        }
        size_t now = resident_bytes(victim);
        CHECK(now < before + GROWTH_MAX, "%zu MB of requests increased its memory by %zu MB", sent >> 20,
              (now - before) >> 20);
        close(fd);
    }
    exchange_data(t, &q);
    vt_qp_close(&q);
}

/* At the limit of open files a caller is disconnected at once; later callers are accepted again. */
static void test_descriptor_limit(struct vt *t)
{
    struct vt_qp q;
    struct rlimit l, few;
    static int fill[4096];
    unsigned n = 0;
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    exchange_data(t, &q);
    if (t->side == 0) {
        CHECK(!getrlimit(RLIMIT_NOFILE, &l));
        few = l;
        few.rlim_cur = l.rlim_cur < 1024 ? l.rlim_cur : 1024;
        CHECK(!setrlimit(RLIMIT_NOFILE, &few));
        while (n < 4096 && (fill[n] = dup(0)) >= 0)
            n++;
    }
    vt_sync(t);
    if (t->side == 1) {
        int fd = wire_client_connect(&fab, &q);
        CHECK(is_disconnected(fd), "a caller without a free descriptor is not disconnected");
        close(fd);
    }
    vt_sync(t);
    while (n)
        close(fill[--n]);
    if (t->side == 0)
        CHECK(!setrlimit(RLIMIT_NOFILE, &l));
    vt_sync(t);
    if (t->side == 1) {
        int fd = wire_client_greet(&fab, &q);
        CHECK(wire_client_ping(&fab, fd, &q));
        close(fd);
    }
    exchange_data(t, &q);
    vt_qp_close(&q);
}

static void run_test(struct vt *t)
{
    pid_t me = getpid(), other;
    wire_client_setup(&fab);
    vt_exchange(t, &me, &other, sizeof(me));
    test_without_key(t);
    test_datagrams(t);
    test_flood(t, other);
    test_descriptor_limit(t);
    test_many_connections(t, other);
    fabric_free(&fab);
}

int main(void)
{
    return vt_run(run_test);
}
