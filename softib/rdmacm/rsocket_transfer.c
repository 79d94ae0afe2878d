/* rsocket_transfer.c: rsockets: sending and receiving, and memory that the peer writes directly.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rsocket.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>

/* Returns the bytes transferred before an error, as sockets do, else -1 with errno. */
static ssize_t transfer_return(struct rsocket *s, size_t done, int error)
{
    pthread_mutex_unlock(&s->lock);
    return done || !error ? (ssize_t)done : cm_return_error(error);
}

/* Errors of a stream that cannot be used. The peer has reset it if no end of the stream has arrived. */
static int send_error(const struct rsocket *s)
{
    return s->state < RSOCKET_CONNECTING                  ? ENOTCONN
           : s->stream.end_requested                      ? EPIPE
           : s->state == RSOCKET_CONNECTING               ? EAGAIN
           : s->state != RSOCKET_OPEN || s->stream.broken ? ECONNRESET
                                                          : 0;
}

static int receive_error(const struct rsocket *s)
{
    return s->state < RSOCKET_CONNECTING ? ENOTCONN : s->stream.ended || s->shut_in ? 0 : ECONNRESET;
}

static ssize_t send_all(int socket, const struct iovec *iov, int n, int flags)
{
    struct rsocket *s = rsocket_get(socket);
    size_t done = 0;
    int error = 0;
    if (!s)
        return -1;
    const bool nonblocking = s->nonblocking || flags & MSG_DONTWAIT;
    for (int i = 0; i < n && !error; i++)
        for (size_t at = 0; at < iov[i].iov_len && !error;) {
            error = rsocket_wait(s, rsocket_can_write, nonblocking);
            error = error ? error : send_error(s);
            const size_t part =
                error ? 0 : stream_write(&s->stream, (char *)iov[i].iov_base + at, iov[i].iov_len - at);
            at += part;
            done += part;
        }
    return transfer_return(s, done, error);
}

static ssize_t receive_all(int socket, const struct iovec *iov, int n, int flags)
{
    struct rsocket *s = rsocket_get(socket);
    size_t done = 0, total = 0;
    int error = 0;
    if (!s)
        return -1;
    const bool nonblocking = s->nonblocking || flags & MSG_DONTWAIT, peek = flags & MSG_PEEK;
    for (int i = 0; i < n; i++)
        total += iov[i].iov_len;
    for (int i = 0; i < n && !error; i++)
        for (size_t at = 0; at < iov[i].iov_len;) {
            /* Without MSG_WAITALL a call waits for the first byte only. */
            error = rsocket_wait(s, rsocket_can_read, nonblocking || (done && !(flags & MSG_WAITALL)));
            const size_t part =
                error ? 0 : stream_read(&s->stream, (char *)iov[i].iov_base + at, iov[i].iov_len - at, peek);
            if (!error && !part)
                error = receive_error(s);
            at += part;
            done += part;
            if (!part || peek) {
                i = n;
                break;
            }
        }
    return transfer_return(s, done, total ? error : 0);
}

SOFTIB_API ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
    struct iovec v = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
    return send_all(socket, &v, 1, flags);
}

SOFTIB_API ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
                           const struct sockaddr *dest_addr, socklen_t addrlen)
{
    (void)addrlen;
    return dest_addr ? cm_return_error(EISCONN) : rsend(socket, buf, len, flags);
}

SOFTIB_API ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
    if (msg->msg_control && msg->msg_controllen)
        return cm_return_error(EOPNOTSUPP);
    return send_all(socket, msg->msg_iov, (int)msg->msg_iovlen, flags);
}

SOFTIB_API ssize_t rwrite(int socket, const void *buf, size_t count)
{
    return rsend(socket, buf, count, 0);
}

SOFTIB_API ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
    return send_all(socket, iov, iovcnt, 0);
}

SOFTIB_API ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
    struct iovec v = {.iov_base = buf, .iov_len = len};
    return receive_all(socket, &v, 1, flags);
}

SOFTIB_API ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
                             socklen_t *addrlen)
{
    ssize_t n = rrecv(socket, buf, len, flags);
    if (n > 0 && src_addr)
        rgetpeername(socket, src_addr, addrlen);
    return n;
}

SOFTIB_API ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
    if (msg->msg_control && msg->msg_controllen)
        return cm_return_error(EOPNOTSUPP);
    msg->msg_flags = 0;
    return receive_all(socket, msg->msg_iov, (int)msg->msg_iovlen, flags);
}

SOFTIB_API ssize_t rread(int socket, void *buf, size_t count)
{
    return rrecv(socket, buf, count, 0);
}

SOFTIB_API ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
    return receive_all(socket, iov, iovcnt, 0);
}

/* ---- mapped memory ---- */

SOFTIB_API off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
    struct rsocket *s = rsocket_get(socket);
    if (!s)
        return -1;
    if (offset == -1)
        offset = (off_t)(uintptr_t)buf;
    int error = !len || flags || offset < 0 || prot & ~(PROT_WRITE | PROT_NONE) ? EINVAL : 0;
    if (!error)
        error = rsocket_wait(s, rsocket_can_write, false);
    error = error ? error : send_error(s);
    if (!error)
        error = stream_map(&s->stream, buf, len, prot & PROT_WRITE, (uint64_t)offset);
    pthread_mutex_unlock(&s->lock);
    return error ? cm_return_error(error) : offset;
}

SOFTIB_API int riounmap(int socket, void *buf, size_t len)
{
    struct rsocket *s = rsocket_get(socket);
    if (!s)
        return -1;
    int error = rsocket_wait(s, rsocket_can_write, false);
    error = error ? error : send_error(s);
    if (!error)
        error = stream_unmap(&s->stream, buf, len);
    pthread_mutex_unlock(&s->lock);
    return error ? cm_return_error(error) : 0;
}

SOFTIB_API size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
    struct rsocket *s = rsocket_get(socket);
    size_t done = 0;
    int error = 0;
    if (!s)
        return (size_t)-1;
    while (done < count && !error) {
        error = rsocket_wait(s, rsocket_can_write_map, s->nonblocking || flags & MSG_DONTWAIT);
        error = error ? error : send_error(s);
        const ssize_t part = error ? 0
                                   : stream_write_map(&s->stream, (const char *)buf + done, count - done,
                                                      (uint64_t)offset + done);
        if (part < 0)
            error = EINVAL;
        done += part > 0 ? (size_t)part : 0;
    }
    return (size_t)transfer_return(s, done, error);
}
