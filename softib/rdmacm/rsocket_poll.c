/* rsocket_poll.c: rsockets: rpoll and rselect, options and flags.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rsocket.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>

/* ---- rpoll ---- */

/* A descriptor of an rpoll call, and the descriptors of the kernel on which the call sleeps. */
struct poll_entry {
    struct rsocket *s; /* NULL: not an rsocket */
    bool leads;
};

static short find_ready_events(struct rsocket *s, short requested)
{
    short r = 0;
    if (s->state == RSOCKET_LISTENING)
        return rsocket_check(s, rsocket_can_accept) ? requested & POLLIN : 0;
    if (s->state == RSOCKET_CONNECTING && !rsocket_check(s, rsocket_is_connected))
        return 0;
    if (s->state < RSOCKET_LISTENING)
        return POLLHUP;
    if (requested & POLLIN && rsocket_check(s, rsocket_can_read))
        r |= POLLIN;
    if (requested & POLLOUT && rsocket_check(s, rsocket_can_write))
        r |= POLLOUT;
    if (s->stream.broken || s->error)
        r |= POLLERR;
    /* Programs treat POLLHUP as the end: it is reported when all data were read. */
    return s->state == RSOCKET_CLOSED && !s->stream.inbox_count ? r | POLLHUP : r;
}

/* Sets `revents` of the rsockets and returns the number of those that are ready. With `leads` set, the
 * calling thread may sleep afterwards. */
static int check_rsockets(struct pollfd *fds, nfds_t n, struct poll_entry *e, bool lead)
{
    int ready = 0;
    for (nfds_t i = 0; i < n; i++) {
        fds[i].revents = 0;
        if (!e[i].s)
            continue;
        pthread_mutex_lock(&e[i].s->lock);
        if (lead)
            e[i].leads = rsocket_lead(e[i].s);
        fds[i].revents = find_ready_events(e[i].s, fds[i].events);
        ready += fds[i].revents != 0;
        pthread_mutex_unlock(&e[i].s->lock);
    }
    return ready;
}

/* Sleeps at most `ms` (-1: no limit). Returns the number of ready descriptors that are not rsockets, or -1. */
static int poll_kernel(struct pollfd *fds, nfds_t n, struct poll_entry *e, struct pollfd *kernel, int ms)
{
    int ready = 0;
    for (nfds_t i = 0; i < n; i++) {
        kernel[2 * i] = (struct pollfd){.fd = fds[i].fd, .events = fds[i].events};
        kernel[2 * i + 1] = (struct pollfd){.fd = -1, .events = POLLIN};
        if (!e[i].s)
            continue;
        kernel[2 * i].events = POLLIN;
        if (e[i].s->stream.id)
            kernel[2 * i + 1].fd = e[i].s->stream.events->fd;
        if (!e[i].leads && ms) /* another thread reads the events: check again after a short time */
            ms = 1;
    }
    if (poll(kernel, 2 * n, ms) < 0)
        return -1;
    for (nfds_t i = 0; i < n; i++)
        if (!e[i].s && kernel[2 * i].revents) {
            fds[i].revents = kernel[2 * i].revents;
            ready++;
        }
    return ready;
}

static void stop_leading(nfds_t n, struct poll_entry *e)
{
    for (nfds_t i = 0; i < n; i++)
        if (e[i].leads) {
            pthread_mutex_lock(&e[i].s->lock);
            rsocket_stop_leading(e[i].s);
            pthread_mutex_unlock(&e[i].s->lock);
            e[i].leads = false;
        }
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int poll_all(struct pollfd *fds, nfds_t n, int timeout, struct poll_entry *e, struct pollfd *kernel)
{
    const int64_t end = now_ms() + timeout;
    for (int ms = timeout;;) {
        int ready = check_rsockets(fds, n, e, false), others;
        if (!ready && ms)
            ready = check_rsockets(fds, n, e, true);
        others = poll_kernel(fds, n, e, kernel, ready ? 0 : ms);
        int error = errno;
        stop_leading(n, e);
        errno = error;
        if (others < 0 || ready + others || !ms)
            return others < 0 ? -1 : ready + others;
        if (timeout > 0)
            ms = now_ms() < end ? (int)(end - now_ms()) : 0;
    }
}

SOFTIB_API int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    struct poll_entry *e = calloc(nfds + 1, sizeof(*e));
    struct pollfd *kernel = calloc(2 * nfds + 1, sizeof(*kernel));
    int r = -1;
    if (e && kernel) {
        for (nfds_t i = 0; i < nfds; i++)
            e[i].s = rsocket_find(fds[i].fd);
        r = poll_all(fds, nfds, timeout < 0 ? -1 : timeout, e, kernel);
    } else {
        errno = ENOMEM;
    }
    int error = errno;
    free(e);
    free(kernel);
    errno = error;
    return r;
}

/* Moves the result for a descriptor into a set. */
static int select_result(int fd, fd_set *set, bool ready)
{
    if (!set || !FD_ISSET(fd, set))
        return 0;
    if (!ready)
        FD_CLR(fd, set);
    return ready;
}

SOFTIB_API int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
                       struct timeval *timeout)
{
    struct pollfd fds[FD_SETSIZE];
    nfds_t n = 0;
    int ready = 0;
    for (int fd = 0; fd < nfds && fd < FD_SETSIZE; fd++) {
        const bool in = readfds && FD_ISSET(fd, readfds), out = writefds && FD_ISSET(fd, writefds);
        if (in || out || (exceptfds && FD_ISSET(fd, exceptfds)))
            fds[n++] = (struct pollfd){.fd = fd, .events = (in ? POLLIN : 0) | (out ? POLLOUT : 0)};
    }
    if (rpoll(fds, n, timeout ? (int)(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000) : -1) < 0)
        return -1;
    for (nfds_t i = 0; i < n; i++) {
        const short r = fds[i].revents;
        ready += select_result(fds[i].fd, readfds, r & (POLLIN | POLLHUP | POLLERR));
        ready += select_result(fds[i].fd, writefds, r & (POLLOUT | POLLHUP | POLLERR));
        ready += select_result(fds[i].fd, exceptfds, false);
    }
    return ready;
}

/* ---- options ---- */

/* The value of an option; -1: unknown. Sizes of buffers are fixed. */
static int option_value(const struct rsocket *s, int level, int name)
{
    if (level == SOL_SOCKET)
        return name == SO_ERROR                         ? s->error
               : name == SO_TYPE                        ? SOCK_STREAM
               : name == SO_SNDBUF || name == SO_RCVBUF ? (int)(STREAM_SLOTS * STREAM_SLOT_BYTES)
               : name == SO_REUSEADDR                   ? s->reuse_addr
               : name == SO_KEEPALIVE || name == SO_OOBINLINE || name == SO_LINGER ? 0
                                                                                   : -1;
    if (level == IPPROTO_TCP)
        return name == TCP_NODELAY ? 1 : name == TCP_MAXSEG ? (int)STREAM_SLOT_BYTES : -1;
    if (level != SOL_RDMA)
        return -1;
    return name == RDMA_SQSIZE || name == RDMA_RQSIZE ? (int)STREAM_SLOTS
           : name == RDMA_INLINE                      ? 0
           : name == RDMA_IOMAPSIZE                   ? (int)STREAM_MAPS
                                                      : -1;
}

/* Accepts all known options. Only SO_REUSEADDR has an effect. */
SOFTIB_API int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
    struct rsocket *s = rsocket_get(socket);
    if (!s)
        return -1;
    int error = option_value(s, level, optname) < 0 ? ENOPROTOOPT
                : !optval || optlen < sizeof(int)   ? EINVAL
                                                    : 0;
    if (!error && level == SOL_SOCKET && optname == SO_REUSEADDR) {
        memcpy(&s->reuse_addr, optval, sizeof(int));
        if (rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &s->reuse_addr, sizeof(int)))
            error = errno;
    }
    pthread_mutex_unlock(&s->lock);
    return error ? cm_return_error(error) : 0;
}

SOFTIB_API int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
    struct rsocket *s = rsocket_get(socket);
    if (!s)
        return -1;
    const int value = option_value(s, level, optname);
    int error = value < 0 ? ENOPROTOOPT : !optval || !optlen || *optlen < sizeof(int) ? EINVAL : 0;
    if (!error) {
        memcpy(optval, &value, sizeof(value));
        *optlen = sizeof(value);
        if (level == SOL_SOCKET && optname == SO_ERROR)
            s->error = 0;
    }
    pthread_mutex_unlock(&s->lock);
    return error ? cm_return_error(error) : 0;
}

SOFTIB_API int rfcntl(int socket, int cmd, ...)
{
    struct rsocket *s = rsocket_get(socket);
    va_list arguments;
    if (!s)
        return -1;
    va_start(arguments, cmd);
    const int flags = cmd == F_SETFL ? va_arg(arguments, int) : 0;
    va_end(arguments);
    int r = cmd == F_GETFL ? O_RDWR | (s->nonblocking ? O_NONBLOCK : 0) : cmd == F_SETFL ? 0 : -1;
    if (cmd == F_SETFL)
        s->nonblocking = flags & O_NONBLOCK;
    pthread_mutex_unlock(&s->lock);
    return r < 0 ? cm_return_error(EINVAL) : r;
}
