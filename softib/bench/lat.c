/* lat.c: measures the figures of softib/README.md that perftest does not give: the cost of moving a cache
 * line between two cores, an 8-byte RDMA WRITE to shared and to private registered memory, memcpy, a TCP
 * ping-pong and a TCP stream. Two pinned processes take part. Each figure is the best of many short batches,
 * so that other load on the machine disturbs it little.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 400
#define ROUNDS  500
#define MIB     (1u << 20)

struct addr {
    uint32_t qpn, rkey;
    uint16_t lid;
    uint64_t buf;
};

struct side {
    int me, fd;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct addr peer;
    char *buf; /* bytes 0-63: data to send; bytes 64-127: received data */
};

static void lat_require(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static double lat_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void lat_pin_core(int cpu)
{
    cpu_set_t s;
    CPU_ZERO(&s);
    CPU_SET(cpu, &s);
    sched_setaffinity(0, sizeof(s), &s);
}

/* Forks the benchmark's two processes, server and client, each pinned to a core. Returns in both
 * processes. */
static int lat_fork_pair(int pair[2])
{
    lat_require(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    fflush(stdout);
    int child = fork() == 0;
    lat_pin_core(child);
    return child;
}

static void lat_finish(int child)
{
    if (child)
        _exit(0);
    while (wait(NULL) > 0)
        ;
}

static void measure_cache_line(void)
{
    _Atomic uint64_t *w = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int pair[2], child = lat_fork_pair(pair);
    double best = 1e18;
    uint64_t n = 0;
    for (int b = 0; b < BATCHES; b++) {
        double start = lat_now_ns();
        for (int i = 0; i < ROUNDS; i++) {
            n += 2;
            if (child) {
                while (atomic_load_explicit(&w[0], memory_order_acquire) != n - 1)
                    ;
                atomic_store_explicit(&w[64], n, memory_order_release);
            } else {
                atomic_store_explicit(&w[0], n - 1, memory_order_release);
                while (atomic_load_explicit(&w[64], memory_order_acquire) != n)
                    ;
            }
        }
        double t = (lat_now_ns() - start) / ROUNDS / 2;
        best = t < best ? t : best;
    }
    if (!child)
        printf("cache line, one way                     %8.0f ns\n", best);
    lat_finish(child);
}

static void open_endpoint(struct side *s, int shared)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    lat_require(list && n && (s->ctx = ibv_open_device(list[0])) != NULL, "open a device");
    struct ibv_port_attr port;
    lat_require(!ibv_query_port(s->ctx, 1, &port), "query the port");
    if (shared) {
        int fd = memfd_create("bench", 0);
        lat_require(fd >= 0 && !ftruncate(fd, 4096), "memfd");
        s->buf = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    } else {
        s->buf = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    memset(s->buf, 0, 4096);
    s->pd = ibv_alloc_pd(s->ctx);
    s->cq = ibv_create_cq(s->ctx, 1024, NULL, NULL, 0);
    s->mr = ibv_reg_mr(s->pd, s->buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_qp_init_attr a = {
        .send_cq = s->cq, .recv_cq = s->cq, .cap = {512, 1, 1, 1, 64}, .qp_type = IBV_QPT_RC};
    s->qp = ibv_create_qp(s->pd, &a);
    lat_require(s->mr && s->qp, "make a QP");
    struct addr mine = {s->qp->qp_num, s->mr->rkey, port.lid, (uintptr_t)s->buf};
    lat_require(write(s->fd, &mine, sizeof(mine)) == sizeof(mine) &&
                    read(s->fd, &s->peer, sizeof(mine)) == sizeof(mine),
                "swap");
}

static void connect_side(struct side *s)
{
    char c = 1;
    struct ibv_qp_attr i = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_attr r = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = IBV_MTU_4096,
                            .dest_qp_num = s->peer.qpn,
                            .min_rnr_timer = 12,
                            .ah_attr = {.dlid = s->peer.lid, .port_num = 1}};
    struct ibv_qp_attr t = {.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7};
    lat_require(
        !ibv_modify_qp(s->qp, &i, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
            !ibv_modify_qp(s->qp, &r,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) &&
            !ibv_modify_qp(s->qp, &t,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
        "connect");
    lat_require(write(s->fd, &c, 1) == 1 && read(s->fd, &c, 1) == 1, "sync");
}

static void lat_write_value(struct side *s, uint64_t v, int signalled)
{
    struct ibv_sge sge = {(uintptr_t)s->buf, 8, s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_INLINE | (signalled ? IBV_SEND_SIGNALED : 0)},
                       *bad;
    memcpy(s->buf, &v, 8);
    wr.wr.rdma.remote_addr = s->peer.buf + 64;
    wr.wr.rdma.rkey = s->peer.rkey;
    lat_require(!ibv_post_send(s->qp, &wr, &bad), "post");
}

static void lat_poll_value(struct side *s, uint64_t v)
{
    while (__atomic_load_n((uint64_t *)(void *)(s->buf + 64), __ATOMIC_ACQUIRE) != v)
        ;
}

static void rdma_write(int shared)
{
    int pair[2], child = lat_fork_pair(pair);
    struct side s = {.me = child, .fd = pair[child]};
    double best = 1e18;
    uint64_t n = 0;
    struct ibv_wc wc;
    open_endpoint(&s, shared);
    connect_side(&s);
    for (int b = 0; b < BATCHES; b++) {
        double start = lat_now_ns();
        for (int i = 0; i < ROUNDS; i++) {
            n++;
            if (child)
                lat_poll_value(&s, n);
            lat_write_value(&s, n, i % 128 == 127);
            if (!child)
                lat_poll_value(&s, n);
            if (i % 128 == 127)
                while (ibv_poll_cq(s.cq, 1, &wc))
                    ;
        }
        double t = (lat_now_ns() - start) / ROUNDS / 2;
        best = t < best ? t : best;
    }
    if (!child)
        printf("RDMA WRITE of 8 bytes, %s memory    %8.0f ns\n", shared ? "shared " : "private", best);
    lat_finish(child);
}

static void lat_measure_copy(size_t mib)
{
    size_t n = mib * MIB;
    char *a = malloc(n), *b = malloc(n);
    double best = 1e18;
    memset(a, 1, n);
    memset(b, 2, n);
    for (int i = 0; i < 2000; i++) {
        double start = lat_now_ns();
        memcpy(b, a, n);
        __asm__ volatile("" ::"r"(b) : "memory");
        best = lat_now_ns() - start < best ? lat_now_ns() - start : best;
    }
    printf("memcpy of %zu MiB                         %8.2f GB/s\n", mib, (double)n / best);
    free(a);
    free(b);
}

static int open_tcp_pair(int child, int pair[2])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(a);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0), c = fd;
    if (child) {
        lat_require(!bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 1), "listen");
        getsockname(fd, (struct sockaddr *)&a, &len);
        lat_require(write(pair[1], &a, sizeof(a)) == sizeof(a), "tell");
        c = accept(fd, NULL, NULL);
    } else {
        lat_require(read(pair[0], &a, sizeof(a)) == sizeof(a) &&
                        !connect(fd, (struct sockaddr *)&a, sizeof(a)),
                    "connect");
    }
    setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return c;
}

static void lat_measure_tcp(void)
{
    int pair[2], child = lat_fork_pair(pair), fd = open_tcp_pair(child, pair);
    double best = 1e18, best_bw = 0;
    char buf[64] = {0}, *big = malloc(MIB);
    memset(big, 1, MIB);
    for (int b = 0; b < 100; b++) {
        double start = lat_now_ns();
        for (int i = 0; i < 200; i++) {
            if (!child)
                lat_require(send(fd, buf, 8, 0) == 8, "send");
            while (recv(fd, buf, 8, MSG_DONTWAIT) != 8)
                ;
            if (child)
                lat_require(send(fd, buf, 8, 0) == 8, "send");
        }
        double t = (lat_now_ns() - start) / 200 / 2;
        best = t < best ? t : best;
    }
    for (int b = 0; b < 20; b++) {
        double start = lat_now_ns();
        for (size_t left = 64u * MIB; left;) {
            ssize_t n = child ? recv(fd, big, MIB, 0) : send(fd, big, left < MIB ? left : MIB, 0);
            lat_require(n > 0, "stream");
            left -= (size_t)n;
        }
        if (child)
            lat_require(send(fd, buf, 1, 0) == 1, "done");
        else
            lat_require(recv(fd, buf, 1, 0) == 1, "done");
        double bw = 64.0 * MIB / (lat_now_ns() - start);
        best_bw = bw > best_bw ? bw : best_bw;
    }
    if (!child) {
        printf("TCP ping-pong on loopback, polling      %8.2f us\n", best / 1e3);
        printf("TCP stream on loopback                  %8.2f GB/s\n", best_bw);
    }
    free(big);
    lat_finish(child);
}

int main(void)
{
    alarm(120);
    measure_cache_line();
    rdma_write(1);
    rdma_write(0);
    lat_measure_copy(1);
    lat_measure_copy(4);
    lat_measure_tcp();
    return 0;
}
