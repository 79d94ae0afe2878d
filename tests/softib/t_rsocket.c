/* t_rsocket.c: rsockets on softib: streams in both directions, end of the stream, deaths, mapped memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "expect.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES   (5u << 20)
#define VICTIMS 20

static int listener;
static struct sockaddr_in service;
static pid_t child;
static int to_child, victims_address, victims_end;

static struct sockaddr *service_address(void)
{
    return (struct sockaddr *)&service;
}

static void start_service(void)
{
    socklen_t n = sizeof(service);
    service = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    listener = rsocket(AF_INET, SOCK_STREAM, 0);
    EXPECT(listener >= 0 && !rsetsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
    EXPECT(!rbind(listener, service_address(), sizeof(service)) && !rlisten(listener, 8));
    EXPECT(!rgetsockname(listener, service_address(), &n) && n == sizeof(service) && service.sin_port);
}

static void wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    EXPECT(rpoll(&p, 1, 60000) == 1 && p.revents & events);
}

static void *accept_one(void *result)
{
    struct sockaddr_in peer;
    socklen_t n = sizeof(peer);
    int fd = raccept(listener, (struct sockaddr *)&peer, &n);
    EXPECT(fd >= 0 && n == sizeof(peer) && peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    *(int *)result = fd;
    return NULL;
}

/* Connects end[0] to end[1], without and with blocking calls. */
static void connect_pair(int end[2], bool nonblocking)
{
    pthread_t t;
    int error = -1;
    socklen_t n = sizeof(error);
    pthread_create(&t, NULL, accept_one, &end[1]);
    end[0] = rsocket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    EXPECT(!rfcntl(end[0], F_SETFL, nonblocking ? O_NONBLOCK : 0));
    int r = rconnect(end[0], service_address(), sizeof(service));
    if (nonblocking) {
        EXPECT(r == 0 || errno == EINPROGRESS); /* 0: the other thread has accepted already */
        wait_for(end[0], POLLOUT);
        EXPECT(!rgetsockopt(end[0], SOL_SOCKET, SO_ERROR, &error, &n) && error == 0);
        EXPECT(rfcntl(end[0], F_GETFL) & O_NONBLOCK && !rfcntl(end[0], F_SETFL, 0));
    } else {
        EXPECT(r == 0);
    }
    pthread_join(t, NULL);
}

static void close_pair(int end[2])
{
    EXPECT(!rclose(end[0]) && !rclose(end[1]));
}

static void test_refusals(void)
{
    struct sockaddr_in nobody = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char c;
    EXPECT(rsocket(AF_INET, SOCK_DGRAM, 0) == -1 && errno == EPROTONOSUPPORT);
    EXPECT(rsocket(AF_UNIX, SOCK_STREAM, 0) == -1 && errno == EAFNOSUPPORT);
    EXPECT(rsend(12345, "", 1, 0) == -1 && errno == EBADF);
    int s = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    EXPECT(rfcntl(s, F_GETFL) & O_NONBLOCK && !rfcntl(s, F_SETFL, 0));
    EXPECT(rsend(s, "", 1, 0) == -1 && errno == ENOTCONN);
    EXPECT(rrecv(s, &c, 1, 0) == -1 && errno == ENOTCONN);
    EXPECT(rsetsockopt(s, SOL_SOCKET, 9999, &s, sizeof(s)) == -1 && errno == ENOPROTOOPT);
    EXPECT(rconnect(s, (struct sockaddr *)&nobody, sizeof(nobody)) == -1 && errno == ECONNREFUSED);
    EXPECT(!rclose(s));
}

static uint8_t byte_at(size_t i, unsigned seed)
{
    return (uint8_t)(i * 7 + i / 251 + seed);
}

struct direction {
    int fd;
    unsigned seed;
};

/* Sends in pieces of changing sizes; the last bit of the seed chooses calls that do not block. */
static void *send_pattern(void *arg)
{
    const struct direction *d = arg;
    uint8_t *out = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        out[i] = byte_at(i, d->seed);
    for (size_t at = 0, piece = 1; at < BYTES; piece = piece * 3 % 100003) {
        const size_t n = piece < BYTES - at ? piece : BYTES - at;
        ssize_t r = rsend(d->fd, out + at, n, d->seed & 1 ? MSG_DONTWAIT : 0);
        if (r < 0 && errno == EAGAIN)
            wait_for(d->fd, POLLOUT);
        else if (r <= 0 || (!(d->seed & 1) && r != (ssize_t)n)) {
            printf("FAILED: rsend of %zu bytes returned %zd: %s\n", n, r, strerror(errno));
            failures++;
            break;
        }
        at += r > 0 ? (size_t)r : 0;
    }
    free(out);
    return NULL;
}

static void *receive_pattern(void *arg)
{
    const struct direction *d = arg;
    static _Thread_local uint8_t in[70000];
    size_t wrong = 0;
    for (size_t at = 0, piece = 5; at < BYTES; piece = piece * 5 % 70001) {
        ssize_t r = rrecv(d->fd, in, piece ? piece : 1, d->seed & 1 ? MSG_DONTWAIT : 0);
        if (r < 0 && errno == EAGAIN) {
            wait_for(d->fd, POLLIN);
            continue;
        }
        if (r <= 0) {
            printf("FAILED: rrecv returned %zd after %zu bytes: %s\n", r, at, strerror(errno));
            failures++;
            break;
        }
        for (ssize_t i = 0; i < r; i++)
            wrong += in[i] != byte_at(at++, d->seed);
    }
    EXPECT(wrong == 0);
    return NULL;
}

/* A thread sends and another one receives at each end at once. */
static void test_streams(unsigned seed)
{
    int end[2];
    pthread_t t[4];
    connect_pair(end, seed & 1);
    struct direction out = {end[0], seed}, back = {end[1], seed + 2}, in = {end[1], seed},
                     home = {end[0], seed + 2};
    pthread_create(&t[0], NULL, send_pattern, &out);
    pthread_create(&t[1], NULL, send_pattern, &back);
    pthread_create(&t[2], NULL, receive_pattern, &in);
    pthread_create(&t[3], NULL, receive_pattern, &home);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    close_pair(end);
}

static void test_vectors_and_flags(void)
{
    int end[2];
    char a[4] = "", b[8] = "", all[16] = "";
    struct iovec out[2] = {{"abc", 3}, {"defgh", 5}}, in[2] = {{a, 3}, {b, 5}};
    struct msghdr m = {.msg_iov = in, .msg_iovlen = 2};
    connect_pair(end, false);
    EXPECT(rrecv(end[1], all, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    EXPECT(rwritev(end[0], out, 2) == 8);
    wait_for(end[1], POLLIN);
    EXPECT(rrecv(end[1], all, 8, MSG_PEEK) >= 3 && !memcmp(all, "abc", 3));
    EXPECT(rrecvmsg(end[1], &m, MSG_WAITALL) == 8 && !strcmp(a, "abc") && !strcmp(b, "defgh"));
    EXPECT(rwrite(end[1], "12345", 5) == 5 && rsend(end[1], "678", 3, 0) == 3);
    EXPECT(rrecv(end[0], all, 8, MSG_WAITALL) == 8 && !strcmp(all, "12345678"));
    m = (struct msghdr){.msg_iov = out, .msg_iovlen = 2};
    EXPECT(rsendmsg(end[0], &m, 0) == 8 && rreadv(end[1], in, 1) == 3);
    struct sockaddr_in near, far;
    socklen_t n = sizeof(near);
    EXPECT(!rgetsockname(end[0], (struct sockaddr *)&near, &n) &&
           !rgetpeername(end[1], (struct sockaddr *)&far, &n) && near.sin_port == far.sin_port);
    close_pair(end);
}

/* The reader gets all data and then the end, also if the writer has closed the socket. */
static void test_end(bool close_first)
{
    int end[2];
    char in[8] = "";
    connect_pair(end, false);
    EXPECT(rsend(end[0], "last", 4, 0) == 4);
    if (close_first)
        EXPECT(!rclose(end[0]));
    else
        EXPECT(!rshutdown(end[0], SHUT_WR) && rsend(end[0], "x", 1, 0) == -1 && errno == EPIPE);
    struct pollfd data = {.fd = end[1], .events = POLLIN};
    EXPECT(rpoll(&data, 1, 60000) == 1 && data.revents == POLLIN);
    EXPECT(rrecv(end[1], in, 8, MSG_WAITALL) == 4 && !strcmp(in, "last"));
    EXPECT(rrecv(end[1], in, 8, 0) == 0);
    if (close_first) {
        struct pollfd p = {.fd = end[1]};
        EXPECT(rpoll(&p, 1, 60000) == 1 && p.revents & POLLHUP);
        EXPECT(rsend(end[1], "x", 1, 0) == -1 && errno == ECONNRESET);
    } else {
        EXPECT(rsend(end[1], "back", 4, 0) == 4 && rrecv(end[0], in, 4, 0) == 4 && !strcmp(in, "back"));
        EXPECT(!rclose(end[0]));
    }
    EXPECT(!rclose(end[1]));
}

static void test_maps(void)
{
    int end[2];
    static char memory[3 * 65536], other[4096], out[3 * 65536];
    char c;
    connect_pair(end, false);
    EXPECT(riomap(end[1], memory, sizeof(memory), PROT_WRITE, 0, 4096) == 4096);
    EXPECT(riomap(end[1], other, sizeof(other), PROT_WRITE, 0, 8192) == -1 && errno == EEXIST);
    EXPECT(riomap(end[1], other, sizeof(other), PROT_WRITE, 0, -1) == (off_t)(uintptr_t)other);
    EXPECT(rsend(end[1], "m", 1, 0) == 1 && rrecv(end[0], &c, 1, 0) == 1);
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (char)byte_at(i, 9);
    EXPECT(riowrite(end[0], out, sizeof(out), 4096, 0) == sizeof(out));
    EXPECT(riowrite(end[0], "other", 6, (off_t)(uintptr_t)other, 0) == 6);
    EXPECT(riowrite(end[0], out, 1, 0, 0) == (size_t)-1 && errno == EINVAL);
    EXPECT(rsend(end[0], "w", 1, 0) == 1 && rrecv(end[1], &c, 1, 0) == 1); /* after the writes */
    EXPECT(!memcmp(memory, out, sizeof(out)) && !strcmp(other, "other"));
    EXPECT(!riounmap(end[1], memory, sizeof(memory)));
    EXPECT(riounmap(end[1], memory, sizeof(memory)) == -1 && errno == EINVAL);
    EXPECT(rsend(end[1], "u", 1, 0) == 1 && rrecv(end[0], &c, 1, 0) == 1);
    EXPECT(riowrite(end[0], out, 1, 4096, 0) == (size_t)-1 && errno == EINVAL);
    close_pair(end);
}

static void test_select(void)
{
    int end[2], pipes[2];
    fd_set in, out;
    connect_pair(end, false);
    EXPECT(!pipe(pipes) && write(pipes[1], "p", 1) == 1);
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(pipes[0], &in);
    FD_SET(end[0], &in);
    FD_SET(end[0], &out);
    EXPECT(rselect(FD_SETSIZE, &in, &out, NULL, &(struct timeval){60, 0}) == 2);
    EXPECT(FD_ISSET(pipes[0], &in) && !FD_ISSET(end[0], &in) && FD_ISSET(end[0], &out));
    struct pollfd p[2] = {{.fd = end[0], .events = POLLIN}, {.fd = -1}};
    EXPECT(rpoll(p, 2, 0) == 0 && rpoll(p, 2, 5) == 0);
    close(pipes[0]);
    close(pipes[1]);
    close_pair(end);
}

/* A request of a program that does not use rsockets is rejected. */
static void test_foreign_request(void)
{
    struct rdma_addrinfo *a, hints = {.ai_port_space = RDMA_PS_TCP};
    struct rdma_cm_id *id = NULL;
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct pollfd p = {.fd = listener, .events = POLLIN};
    char port[8];
    snprintf(port, sizeof(port), "%d", ntohs(service.sin_port));
    EXPECT(!rdma_getaddrinfo("127.0.0.1", port, &hints, &a) && !rdma_create_ep(&id, a, NULL, &attr));
    rdma_freeaddrinfo(a);
    EXPECT(!fcntl(id->channel->fd, F_SETFL, O_NONBLOCK));
    EXPECT(rdma_connect(id, NULL) == -1 && errno == EAGAIN);
    struct rdma_cm_event *e = NULL;
    while (rdma_get_cm_event(id->channel, &e) && errno == EAGAIN)
        EXPECT(rpoll(&p, 1, 1) == 0);
    EXPECT(e && e->event == RDMA_CM_EVENT_REJECTED);
    rdma_ack_cm_event(e);
    rdma_destroy_ep(id);
}

/* The child connects, sends four bytes and is killed. */
static void start_child(void)
{
    int pipes[2];
    EXPECT(!pipe(pipes));
    child = fork();
    to_child = pipes[1];
    if (child)
        return;
    if (read(pipes[0], &service, sizeof(service)) != sizeof(service))
        _exit(1);
    int s = rsocket(AF_INET, SOCK_STREAM, 0);
    if (rconnect(s, service_address(), sizeof(service)) || rsend(s, "four", 4, 0) != 4)
        _exit(1);
    char c;
    if (rrecv(s, &c, 1, 0) == 1) /* the parent has received the data */
        kill(getpid(), SIGKILL);
    _exit(1);
}

static void test_death(void)
{
    int s = -1, status = 0;
    char in[8] = "";
    EXPECT(write(to_child, &service, sizeof(service)) == sizeof(service));
    accept_one(&s);
    EXPECT(rrecv(s, in, 4, MSG_WAITALL) == 4 && !strcmp(in, "four"));
    EXPECT(rsend(s, "g", 1, 0) == 1);
    EXPECT(rrecv(s, in, 1, 0) == -1 && errno == ECONNRESET);
    EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    while (rsend(s, in, 1, 0) == 1)
        continue;
    EXPECT(errno == ECONNRESET && !rclose(s));
}

/* Processes connect, send and are killed at random moments. */
static void start_victims(void)
{
    int addresses[2], ends[2];
    EXPECT(!pipe(addresses) && !pipe(ends));
    victims_address = addresses[1];
    victims_end = ends[0];
    if (fork()) {
        close(ends[1]);
        return;
    }
    close(ends[0]);
    if (read(addresses[0], &service, sizeof(service)) != sizeof(service))
        _exit(1);
    for (unsigned i = 0; i < VICTIMS; i++) {
        pid_t victim = fork();
        if (!victim) {
            struct direction d = {rsocket(AF_INET, SOCK_STREAM, 0), 0};
            while (!rconnect(d.fd, service_address(), sizeof(service)))
                send_pattern(&d);
            _exit(1);
        }
        usleep((unsigned)rand() % 120000);
        kill(victim, SIGKILL);
        waitpid(victim, NULL, 0);
    }
    _exit(0);
}

/* The bytes received before a death are right, each death is noticed, and the listener goes on. */
static void test_deaths_at_any_moment(void)
{
    static uint8_t in[50000];
    int s = -1;
    size_t at = 0, wrong = 0;
    EXPECT(!rfcntl(listener, F_SETFL, O_NONBLOCK));
    EXPECT(write(victims_address, &service, sizeof(service)) == sizeof(service));
    for (;;) {
        struct pollfd p[2] = {{.fd = s < 0 ? listener : s, .events = POLLIN},
                              {.fd = victims_end, .events = POLLIN}};
        if (rpoll(p, 2, 60000) < 1) {
            printf("FAILED: nothing happens after %zu bytes\n", at);
            failures++;
            break;
        }
        if (p[0].revents && s < 0) {
            s = raccept(listener, NULL, NULL);
            at = 0;
        } else if (p[0].revents) {
            ssize_t r = rrecv(s, in, sizeof(in), MSG_DONTWAIT);
            for (ssize_t i = 0; i < r; i++)
                wrong += in[i] != byte_at(at++, 0);
            if (r == 0 || (r < 0 && errno != EAGAIN)) {
                EXPECT(!rclose(s));
                s = -1;
            }
        } else if (s < 0) {
            break; /* all victims have ended */
        }
    }
    EXPECT(wrong == 0 && !rfcntl(listener, F_SETFL, 0));
}

int main(void)
{
    start_victims();
    start_child();
    start_service();
    if (failures)
        return 1;
    test_refusals();
    test_vectors_and_flags();
    test_streams(4);
    test_streams(5);
    test_end(false);
    test_end(true);
    test_maps();
    test_select();
    test_foreign_request();
    test_death();
    test_deaths_at_any_moment();
    EXPECT(!rclose(listener));
    return failures != 0;
}
