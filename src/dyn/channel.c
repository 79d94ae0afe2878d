/* channel.c: sends and receives authenticated messages over a socket (channel.h). Each message is {length,
 * bytes, HMAC of direction, message number, length and bytes}.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "dyn/channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "obj/proc.h"

#define SILENCE_SECONDS 600u

static uint64_t deadline_after_seconds(uint64_t seconds)
{
    return clock_ns() + seconds * 1000000000u;
}

int channel_poll(struct proc *p, struct pollfd *fds, unsigned n, struct net_waiter *w)
{
    int ready = poll(fds, n, 0);
    if (ready != 0 || net_progress(p->net) > 0)
        return ready;
    if (p->net->doctor)
        net_wait_update_idle(p->net, w, clock_ns());
    if (p->net->lock)
        biglock_unlock(p->net->lock);
    ready = poll(fds, n, 1);
    if (p->net->lock)
        biglock_lock(p->net->lock);
    return ready;
}

int channel_wait(struct proc *p, int fd, short events, uint64_t deadline)
{
    const struct net_named what = {"other group of processes, at a connection", NET_NOBODY, false};
    struct net_waiter w = {.awaited_kind = NET_NAMED, .awaited = &what};
    struct pollfd ready = {.fd = fd, .events = events};
    int n;
    while ((n = channel_poll(p, &ready, 1, &w)) <= 0 && clock_ns() <= deadline)
        ;
    net_wait_end(p->net, &w);
    return n > 0 ? 0 : err_set(MPI_ERR_PORT, "the other side of the connection does not answer");
}

static int channel_lost_error(const char *what)
{
    return err_set(MPI_ERR_PORT, "the connection between the two groups was lost while %s: %s", what,
                   errno ? strerror(errno) : "the other side has closed it");
}

static int write_all(struct channel *c, const void *data, size_t len, uint64_t deadline)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = send(c->fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            return channel_lost_error("sending");
        int rc = n < 0 ? channel_wait(c->proc, c->fd, POLLOUT, deadline) : 0;
        if (rc)
            return rc;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int read_all(struct channel *c, void *data, size_t len, uint64_t deadline)
{
    char *at = data;
    while (len > 0) {
        errno = 0;
        ssize_t n = recv(c->fd, at, len, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return channel_lost_error("receiving");
        int rc = n < 0 ? channel_wait(c->proc, c->fd, POLLIN, deadline) : 0;
        if (rc)
            return rc;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

void channel_init_from_handshake(struct channel *c, struct proc *p, int fd, bool own_fd,
                                 const struct handshake *h)
{
    *c = (struct channel){.proc = p, .fd = fd, .own_fd = own_fd, .accepts = h->accepts};
    memcpy(c->session, h->session, sizeof(c->session));
}

void channel_disable_nagle(int fd)
{
    /* fails without effect on other sockets */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

int channel_open(struct channel *c, struct proc *p, int fd, bool own_fd, bool accepts,
                 const uint8_t key[HANDSHAKE_KEY])
{
    struct handshake h;
    const uint64_t deadline = deadline_after_seconds(SILENCE_SECONDS);
    *c = (struct channel){.proc = p, .fd = fd, .own_fd = own_fd};
    int rc = handshake_begin(&h, accepts, key);
    while (!rc) {
        const enum handshake_result r = handshake_advance(&h, fd);
        if (r == HANDSHAKE_DONE)
            break;
        rc = r == HANDSHAKE_MORE ? channel_wait(p, fd, handshake_events(&h), deadline) : handshake_error(r);
    }
    if (rc)
        channel_close(c);
    else
        channel_init_from_handshake(c, p, fd, own_fd, &h);
    secret_wipe(&h, sizeof(h));
    return rc;
}

void channel_close(struct channel *c)
{
    if (c->fd >= 0 && c->own_fd)
        close(c->fd);
    c->fd = -1;
    secret_wipe(c->session, sizeof(c->session));
}

bool channel_is_lost(const struct channel *c)
{
    char byte;
    const ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void channel_seal_frame(const struct channel *c, bool by_acceptor, uint64_t number, const void *data,
                               uint32_t len, uint8_t out[SHA256_SIZE])
{
    struct hmac_sha256 h;
    uint8_t direction = by_acceptor;
    hmac_sha256_init(&h, c->session, sizeof(c->session));
    hmac_sha256_add(&h, &direction, 1);
    hmac_sha256_add(&h, &number, sizeof(number));
    hmac_sha256_add(&h, &len, sizeof(len));
    hmac_sha256_add(&h, data, len);
    hmac_sha256_end(&h, out);
}

int channel_send(struct channel *c, const void *data, size_t len)
{
    uint8_t code[SHA256_SIZE];
    uint32_t length = (uint32_t)len;
    uint64_t deadline = deadline_after_seconds(SILENCE_SECONDS);
    channel_seal_frame(c, c->accepts, c->sent++, data, length, code);
    int rc = write_all(c, &length, sizeof(length), deadline);
    rc = rc ? rc : write_all(c, data, len, deadline);
    return rc ? rc : write_all(c, code, sizeof(code), deadline);
}

int channel_receive(struct channel *c, void **data, size_t *len)
{
    uint8_t code[SHA256_SIZE], want[SHA256_SIZE];
    uint32_t length;
    uint64_t deadline = deadline_after_seconds(SILENCE_SECONDS);
    int rc = read_all(c, &length, sizeof(length), deadline);
    if (rc)
        return rc;
    char *bytes = length <= CHANNEL_MAX ? malloc((size_t)length + 1) : NULL;
    if (!bytes)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %u bytes from the other side of the connection",
                       length);
    rc = read_all(c, bytes, length, deadline);
    rc = rc ? rc : read_all(c, code, sizeof(code), deadline);
    if (rc == 0) {
        channel_seal_frame(c, !c->accepts, c->received++, bytes, length, want);
        rc = secret_equal(code, want, sizeof(code)) ? 0 : handshake_error(HANDSHAKE_STRANGER);
    }
    if (rc) {
        free(bytes);
        return rc;
    }
    bytes[length] = '\0';
    *data = bytes;
    *len = length;
    return 0;
}
