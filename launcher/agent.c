/*
 * An agent: runs the plan it is sent through local.c, and turns events into frames. When the connection
 * ends before the job does, everything here ends with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/launch_env.h"
#include "guard.h"
#include "link.h"
#include "local.h"

#define ADDRESSES_MAX 32
#define CONNECT_MS    20000
#define HIGH_WATER    (1024 * 1024) /* waits on the link: leave output in the ranks' pipes */

struct agent {
    struct loop loop;
    struct link link;
    struct local *local;
    struct plan *plan;
    bool told_to_pause, done;
    const char *cookie, *index;
    int fd;
};

static void set_pause(struct agent *a)
{
    if (a->local)
        local_pause(a->local, a->told_to_pause || buf_size(&a->link.out) > HIGH_WATER);
}

static void on_output(void *ctx, uint32_t rank, int stream, const char *data, size_t len)
{
    struct agent *a = ctx;
    link_send(&a->link, stream == 1 ? FRAME_OUTPUT : FRAME_ERROR, rank, data, len);
    if (buf_size(&a->link.out) > HIGH_WATER)
        set_pause(a);
}

static void on_pmi(void *ctx, uint32_t rank, const char *data, size_t len)
{
    struct agent *a = ctx;
    link_send(&a->link, FRAME_PMI, rank, data, len);
}

static void on_started(void *ctx, uint32_t rank, pid_t pid)
{
    struct agent *a = ctx;
    link_send_u32(&a->link, FRAME_STARTED, rank, (uint32_t)pid);
}

static void on_failed(void *ctx, uint32_t rank, int status, const char *why)
{
    struct agent *a = ctx;
    char data[1024] = {0, 0, 0, (char)status};
    int len = snprintf(data + 4, sizeof data - 4, "%s", why);
    link_send(&a->link, FRAME_FAILED, rank, data,
              4 + ((size_t)len < sizeof data - 5 ? (size_t)len : sizeof data - 5));
}

static void on_exited(void *ctx, uint32_t rank, int status)
{
    struct agent *a = ctx;
    link_send_u32(&a->link, FRAME_EXITED, rank, (uint32_t)status);
}

static void on_stdin_empty(void *ctx, uint32_t rank)
{
    struct agent *a = ctx;
    link_send(&a->link, FRAME_INPUT_TAKEN, rank, NULL, 0);
}

static void on_done(void *ctx)
{
    struct agent *a = ctx;
    a->done = true;
    link_send(&a->link, FRAME_DONE, 0, NULL, 0);
    if (buf_size(&a->link.out) == 0)
        a->loop.stop = true;
}

static void on_drained(void *ctx)
{
    struct agent *a = ctx;
    set_pause(a);
    if (a->done && buf_size(&a->link.out) == 0)
        a->loop.stop = true;
}

static void start_plan(struct agent *a, const char *data, size_t len)
{
    static const struct local_events events = {on_output, on_pmi,         on_started, on_failed,
                                               on_exited, on_stdin_empty, on_done};
    if (a->local || !(a->plan = plan_decode(data, len))) {
        say("The plan from mpiexec cannot be understood.");
        a->loop.stop = true;
        return;
    }
    say_from(a->plan->host);
    a->local = local_new(&a->loop, a->plan, &events, a);
    local_start(a->local);
}

static void on_frame(void *ctx, enum frame type, uint32_t rank, const char *data, size_t len)
{
    struct agent *a = ctx;
    uint32_t value = 0;
    if (type == FRAME_PLAN)
        start_plan(a, data, len);
    if (!a->local)
        return;
    if (type == FRAME_PMI) {
        local_pmi(a->local, rank, data, len);
    } else if (type == FRAME_INPUT) {
        local_stdin(a->local, rank, data, len);
    } else if (type == FRAME_SIGNAL && link_u32(data, len, &value) && value > 0 && value < NSIG) {
        local_signal(a->local, (int)value);
    } else if (type == FRAME_PAUSE && link_u32(data, len, &value)) {
        a->told_to_pause = value != 0;
        set_pause(a);
    }
}

/* mpiexec is gone, or never was: the worker's last act ends all ranks. */
static void on_closed(void *ctx, const char *why)
{
    struct agent *a = ctx;
    (void)why;
    a->loop.stop = true;
}

/* The remote shell passes on its own end; ranks get their signals from mpiexec. */
static void on_signal(void *ctx, int sig)
{
    struct agent *a = ctx;
    if (sig == SIGTERM || sig == SIGHUP || sig == SIGINT || sig == SIGQUIT)
        a->loop.stop = true;
}

static void on_foreground(void *ctx, bool yes)
{
    (void)ctx;
    (void)yes;
}

static void on_front_died(void *ctx)
{
    struct agent *a = ctx;
    a->loop.stop = true;
}

static int worker(void *ctx, int front)
{
    static const struct guard_events guard_events = {on_signal, on_foreground, on_front_died};
    struct agent *a = ctx;
    loop_init(&a->loop);
    guard_watch(&a->loop, front, &guard_events, a);
    a->link = (struct link){
        .greeted = true, .frame = on_frame, .closed = on_closed, .drained = on_drained, .ctx = a};
    link_open(&a->link, &a->loop, a->fd);
    char hello[128];
    int len = snprintf(hello, sizeof hello, "%s %s %s", a->cookie, a->index, FISHPLATE_VERSION);
    link_send(&a->link, FRAME_HELLO, 0, hello, (size_t)len);
    loop_run(&a->loop);
    link_flush(&a->link, 2000);
    return a->done ? 0 : 1;
}

/* Begins to connect to one address; -1 when that cannot even be tried. */
static int begin_connect(const char *address, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *info;
    if (getaddrinfo(address, port, &hints, &info) != 0)
        return -1;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, info->ai_addr, info->ai_addrlen) != 0 && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(info);
    return fd;
}

/* mpiexec cannot know which of its addresses this host reaches, so all are tried at once. */
static int connect_any(char *addresses, const char *port)
{
    struct pollfd p[ADDRESSES_MAX];
    nfds_t n = 0;
    int chosen = -1;
    char *save = NULL;
    for (char *w = strtok_r(addresses, ",", &save); w && n < ADDRESSES_MAX; w = strtok_r(NULL, ",", &save)) {
        int fd = begin_connect(w, port);
        if (fd >= 0)
            p[n++] = (struct pollfd){.fd = fd, .events = POLLOUT};
    }
    uint64_t end = now_ms() + CONNECT_MS;
    for (nfds_t left = n; left > 0 && chosen < 0 && now_ms() < end;) {
        if (poll(p, n, (int)(end - now_ms())) <= 0)
            continue;
        for (nfds_t i = 0; i < n && chosen < 0; i++) {
            int error = 0;
            socklen_t len = sizeof error;
            if (p[i].fd < 0 || !p[i].revents)
                continue;
            getsockopt(p[i].fd, SOL_SOCKET, SO_ERROR, &error, &len);
            if (error == 0) {
                chosen = p[i].fd;
            } else {
                close(p[i].fd);
                left--;
            }
            p[i].fd = -1;
        }
    }
    for (nfds_t i = 0; i < n; i++)
        if (p[i].fd >= 0)
            close(p[i].fd);
    return chosen;
}

static bool read_cookie(char *cookie)
{
    size_t n = 0;
    while (n < COOKIE_LEN) {
        ssize_t got = read(STDIN_FILENO, cookie + n, COOKIE_LEN - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        n += (size_t)got;
    }
    cookie[n] = '\0';
    return strspn(cookie, "0123456789abcdef") == COOKIE_LEN;
}

int agent_main(int argc, char **argv)
{
    static struct agent a;
    static char cookie[COOKIE_LEN + 1];
    char host[256] = "another host";
    gethostname(host, sizeof host - 1);
    say_from(host);
    if (argc != 5)
        die(STATUS_USAGE, "%s is for mpiexec's own use.", AGENT_OPTION);
    if (!read_cookie(cookie))
        die(1, "The agent was started without its secret; the launcher must pass on standard input.");
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    a.cookie = cookie;
    a.index = argv[4];
    char *addresses = xstrdup(argv[2]);
    a.fd = connect_any(addresses, argv[3]);
    free(addresses);
    if (a.fd < 0)
        die(1, "mpiexec cannot be reached from here at any of its addresses %s, port %s.", argv[2], argv[3]);
    return guard_run(argv, worker, &a);
}
