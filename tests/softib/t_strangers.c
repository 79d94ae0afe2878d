/* t_strangers.c: who is not of the fabric gets nothing from it over the network: not without the key, not
 * with somebody else's name, not with a datagram that was sent before. And nobody, proved or not, uses up its
 * descriptors or its memory: it goes on serving its own.
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

#define CROWD  400
#define FLOOD  (48u << 20)
#define ROOM   (16u << 20) /* the victim may grow by this, which is far less */
#define MARKER 0x5a

static struct fabric fab;

static bool hung_up(int fd)
{
    char c;
    struct timeval limit = {60, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ssize_t n;
    while ((n = recv(fd, &c, 1, 0)) > 0)
        ;
    return n == 0 || errno == ECONNRESET;
}

/* Side 0 is served by side 1, over the adapters. */
static void strangers_exchange(struct vt *t, struct vt_qp *q)
{
    vt_sync(t);
    if (t->side == 1) {
        vt_fill(t->buf, 5000, 3);
        CHECK(!vt_post(q, t, IBV_WR_RDMA_WRITE, 1, 0, 5000, 1u << 20, IBV_SEND_SIGNALED));
        vt_wc(t->cq, IBV_WC_SUCCESS);
    }
    vt_sync(t);
    if (t->side == 0)
        vt_expect(t->buf + (1u << 20), 5000, 3, "beside strangers");
    vt_sync(t);
}

static struct frame strangers_theft(const struct vt_qp *q)
{
    struct frame f = wc_frame(q, FRAME_DATA, 0);
    f.length = f.total = 64;
    f.raddr = q->peer.buf;
    f.rkey = q->peer.rkey;
    return f;
}

/* Sends a correct request from an address without the key. */
static void without_the_key(struct vt *t)
{
    struct vt_qp q;
    char bytes[64];
    memset(bytes, MARKER, sizeof(bytes));
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
    memset(t->buf, 0, 4096);
    vt_sync(t);
    if (t->side == 1) {
        struct frame f = strangers_theft(&q);
        int fd = wc_connect(&fab, &q);
        wc_send(&fab, fd, &f, bytes, sizeof(bytes));
        CHECK(hung_up(fd), "it listens to one who has not greeted");
        close(fd);
        fd = wc_greet_as(&fab, &q, q.me.qpn >> 14, true);
        wc_send(&fab, fd, &f, bytes, sizeof(bytes));
        CHECK(hung_up(fd), "it listens to one who has proved nothing");
        close(fd);
        fd = wc_greet_as(&fab, &q, (q.me.qpn >> 14) + 1,
                         false); /* a member, but not the one it claims to be */
        wc_send(&fab, fd, &f, bytes, sizeof(bytes));
        CHECK(wc_ping(&fab, fd, &q), "it hung up");
        close(fd);
    }
    vt_sync(t);
    for (size_t i = 0; t->side == 0 && i < 4096; i++)
        CHECK(t->buf[i] != MARKER, "byte %zu was written by a stranger", i);
    strangers_exchange(t, &q);
    vt_qp_end(&q);
}

static uint64_t sender; /* a process that was started later than this one, in its place */

static void test_datagram(const struct vt_qp *q, int udp, uint64_t number, bool good, uint8_t what)
{
    struct fab_place at;
    uint8_t packet[FRAME_BYTES + SEAL_BYTES + 40 + 8] = {0}, *payload = packet + FRAME_BYTES + SEAL_BYTES;
    struct frame f = wc_frame(q, FRAME_DATAGRAM_DATA, 0);
    struct iovec iov = {payload, 48};
    CHECK(fabric_find_lid(&fab, q->peer.lid, &at));
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr = fab.port[at.linear].addr[0],
                             .sin_port = htons((uint16_t)(fab.base_of[at.node] + (q->peer.qpn >> 14)))};
    f.qp_type = IBV_QPT_UD;
    f.opcode = IBV_WR_SEND;
    f.seq = 0;
    f.length = f.total = 48;
    f.arg = 0x1111; /* the tests' Q_Key */
    payload[40] = what;
    frame_encode(&f, (uint32_t)fab.id, packet);
    seal_create(sender, number, packet, &iov, 1, packet + FRAME_BYTES);
    packet[FRAME_BYTES + 20] ^= !good;
    CHECK(sendto(udp, packet, sizeof(packet), 0, (struct sockaddr *)&to, sizeof(to)) ==
          (ssize_t)sizeof(packet));
}

/* Of good, repeated and forged datagrams only the good ones arrive, once; loopback keeps their order. */
static void test_datagrams(struct vt *t)
{
    struct vt_qp q;
    vt_qp_init(t, vt_defaults(IBV_QPT_UD), &q);
    for (unsigned i = 0; i < 8 && t->side == 0; i++)
        vt_recv(&q, t, i, i * 4096, 4096);
    vt_qp_connect(t, vt_defaults(IBV_QPT_UD), &q);
    if (t->side == 1) {
        int udp = socket(AF_INET, SOCK_DGRAM, 0);
        const uint64_t now = (uint64_t)time(NULL);
        sender = seal_new_instance();
        CHECK(sender / 1000000000u >= now,
              "processes have smaller numbers after their host was booted again");
        test_datagram(&q, udp, 5, true, 1);
        test_datagram(&q, udp, 5, true, 2); /* the number was used */
        test_datagram(&q, udp, 6, false, 3);
        test_datagram(&q, udp, 4, true, 4); /* late, but new */
        test_datagram(&q, udp, 4, true, 5);
        test_datagram(&q, udp, 9, true, 6);
        close(udp);
    } else {
        static const uint8_t want[] = {1, 4, 6};
        for (unsigned i = 0; i < 3; i++) {
            vt_wc(t->cq, IBV_WC_SUCCESS);
            CHECK(t->buf[i * 4096 + 40] == want[i], "datagram %u was taken, not %u", t->buf[i * 4096 + 40],
                  want[i]);
        }
    }
    vt_sync(t);
    if (t->side == 0)
        CHECK(vt_quiet(t->cq, 10), "one more was taken");
    vt_qp_end(&q);
}

static unsigned strangers_descriptors(pid_t pid)
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

static size_t strangers_resident(pid_t pid)
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
static void strangers_many_ranks(struct vt *t, pid_t victim)
{
    struct vt_qp q;
    static int fd[CROWD];
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1) {
        unsigned before = strangers_descriptors(victim);
        for (unsigned i = 0; i < CROWD; i++) {
            fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); /* the last ones may not get through */
            struct sockaddr_in to = {0};
            struct fab_place at;
            CHECK(fabric_find_lid(&fab, q.peer.lid, &at));
            to.sin_family = AF_INET;
            to.sin_addr = fab.port[at.linear].addr[0];
            to.sin_port = htons((uint16_t)(fab.base_of[at.node] + (q.peer.qpn >> 14)));
            CHECK(!connect(fd[i], (struct sockaddr *)&to, sizeof(to)) || errno == EINPROGRESS);
        }
        for (unsigned i = 0; i < 200; i++) {
            CHECK(strangers_descriptors(victim) < before + 140, "%u strangers have descriptors",
                  strangers_descriptors(victim) - before);
            sched_yield();
        }
    }
    vt_qp_end(&q);
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
    strangers_exchange(t, &q);
    for (unsigned i = 0; i < CROWD && t->side == 1; i++)
        close(fd[i]);
    vt_qp_end(&q);
}

/* A member that sends requests and never reads an answer. */
static void strangers_flood(struct vt *t, pid_t victim)
{
    struct vt_qp q;
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1) {
        static uint8_t pings[1024 * FRAME_BYTES];
        struct frame f = wc_frame(&q, FRAME_PING, 0);
        int fd = wc_greet(&fab, &q);
        size_t before = strangers_resident(victim), sent = 0, at = 0;
        for (unsigned i = 0; i < 1024; i++)
            frame_encode(&f, (uint32_t)fab.id, pings + i * FRAME_BYTES);
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        while (sent < FLOOD && poll(&p, 1, 1000) == 1) { /* a second without room: it reads no more */
            ssize_t n = send(fd, pings + at, sizeof(pings) - at, MSG_DONTWAIT | MSG_NOSIGNAL);
            CHECK(n > 0 || errno == EAGAIN);
            sent += n > 0 ? (size_t)n : 0;
            at = (at + (n > 0 ? (size_t)n : 0)) % sizeof(pings);
        }
        size_t now = strangers_resident(victim);
        CHECK(now < before + ROOM, "%zu MB of questions made it grow by %zu MB", sent >> 20,
              (now - before) >> 20);
        close(fd);
    }
    strangers_exchange(t, &q);
    vt_qp_end(&q);
}

/* At the limit of open files a caller is disconnected at once; later callers are accepted again. */
static void no_descriptors(struct vt *t)
{
    struct vt_qp q;
    struct rlimit l, few;
    static int fill[4096];
    unsigned n = 0;
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
    strangers_exchange(t, &q);
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
        int fd = wc_connect(&fab, &q);
        CHECK(hung_up(fd), "it is left waiting");
        close(fd);
    }
    vt_sync(t);
    while (n)
        close(fill[--n]);
    if (t->side == 0)
        CHECK(!setrlimit(RLIMIT_NOFILE, &l));
    vt_sync(t);
    if (t->side == 1) {
        int fd = wc_greet(&fab, &q);
        CHECK(wc_ping(&fab, fd, &q));
        close(fd);
    }
    strangers_exchange(t, &q);
    vt_qp_end(&q);
}

static void strangers_run_test(struct vt *t)
{
    pid_t me = getpid(), other;
    wc_setup(&fab);
    vt_swap(t, &me, &other, sizeof(me));
    without_the_key(t);
    test_datagrams(t);
    strangers_flood(t, other);
    no_descriptors(t);
    strangers_many_ranks(t, other);
    fabric_free(&fab);
}

int main(void)
{
    return vt_run(strangers_run_test);
}
