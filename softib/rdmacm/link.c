/* link.c: the connection between the connection managers of two processes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "link.h"
#include "base/sha256.h"
#include "softib/address.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

void link_random(void *out, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = getrandom((char *)out + at, n - at, 0);
        if (got < 0 && errno != EINTR) {
            fprintf(stderr, "softib: cannot get random numbers from the kernel (getrandom): %s\n",
                    strerror(errno));
            abort(); /* a nonce that others know would let them repeat earlier messages */
        }
        at += got > 0 ? (size_t)got : 0;
    }
}

socklen_t link_unix_name(struct sockaddr_un *a, uint64_t key, const struct link_service *s)
{
    char ip[INET6_ADDRSTRLEN] = "*";
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (s->ip)
        inet_ntop(AF_INET6, s->ip, ip, sizeof(ip));
    int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "softib-cm/%016llx/%u/%x/%u/%s",
                     (unsigned long long)key, s->node, s->ps, s->port, ip);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Datagram services have separate port numbers, which are mapped to the other half of the TCP port
 * numbers. */
uint16_t link_tcp_port(uint16_t ps, uint16_t port)
{
    uint16_t other = (uint16_t)(port ^ 0x8000u);
    return ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? (other ? other : 0xffff) : port;
}

bool link_is_same_user(int fd)
{
    struct ucred c = {.uid = (uid_t)-1};
    socklen_t n = sizeof(c);
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) && c.uid == geteuid();
}

void link_init(struct cm_link *l, int fd, bool tcp, bool caller, bool connecting)
{
    *l = (struct cm_link){.fd = fd, .tcp = tcp, .caller = caller};
    l->state = !tcp ? LINK_UP : connecting ? LINK_CONNECTING : LINK_GREETING;
    if (!tcp)
        return;
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    link_random(l->nonce[caller], LINK_NONCE_BYTES);
    /* The called side sends its challenge now, the caller in its first message. The send buffer of a new
     * socket has space for 16 bytes. */
    if (!caller && send(fd, l->nonce[0], LINK_NONCE_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT) == LINK_NONCE_BYTES)
        l->state = LINK_UP;
}

static void link_compute_code(const struct cm_link *l, bool by_caller, uint64_t number, const uint8_t *bytes,
                              uint8_t out[LINK_CODE_BYTES])
{
    uint8_t key[SOFTIB_SECRET_BYTES], head[9] = {by_caller};
    struct hmac_sha256 h;
    for (int i = 0; i < 8; i++)
        head[1 + i] = (uint8_t)(number >> (8 * i));
    softib_secret("softib connection manager", key);
    hmac_sha256_init(&h, key, sizeof(key));
    secret_wipe(key, sizeof(key));
    hmac_sha256_add(&h, head, sizeof(head));
    hmac_sha256_add(&h, l->nonce, sizeof(l->nonce));
    hmac_sha256_add(&h, bytes, MESSAGE_BYTES);
    hmac_sha256_end(&h, out);
}

bool link_send(struct cm_link *l, const struct message *m)
{
    uint8_t out[LINK_MAX_PACKET];
    size_t n = 0;
    if (l->state != LINK_UP)
        return false;
    if (l->tcp && l->caller && !l->sent) {
        memcpy(out, l->nonce[1], LINK_NONCE_BYTES);
        n = LINK_NONCE_BYTES;
    }
    message_encode(m, out + n);
    if (l->tcp) {
        link_compute_code(l, l->caller, l->sent, out + n, out + n + MESSAGE_BYTES);
        n += LINK_CODE_BYTES;
    }
    n += MESSAGE_BYTES;
    l->sent++;
    /* A connection has four messages at most, which fit in the send buffer of any socket. */
    return send(l->fd, out, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

/* The number of bytes of the next message part. */
static size_t link_expected_bytes(const struct cm_link *l)
{
    if (l->state == LINK_GREETING)
        return LINK_NONCE_BYTES;
    if (!l->tcp)
        return MESSAGE_BYTES;
    return MESSAGE_BYTES + LINK_CODE_BYTES + (!l->caller && !l->received ? LINK_NONCE_BYTES : 0);
}

static enum link_result link_decode(struct cm_link *l, struct message *m)
{
    const uint8_t *p = l->in;
    uint8_t code[LINK_CODE_BYTES];
    l->got = 0;
    if (l->state == LINK_GREETING) {
        memcpy(l->nonce[0], p, LINK_NONCE_BYTES);
        l->state = LINK_UP;
        return LINK_NOTHING;
    }
    if (l->tcp && !l->caller && !l->received) {
        memcpy(l->nonce[1], p, LINK_NONCE_BYTES);
        p += LINK_NONCE_BYTES;
    }
    if (l->tcp) {
        link_compute_code(l, !l->caller, l->received, p, code);
        if (!secret_equal(code, p + MESSAGE_BYTES, sizeof(code)))
            return LINK_DOWN;
    }
    l->received++;
    return message_decode(p, m) ? LINK_MESSAGE : LINK_DOWN;
}

enum link_result link_receive(struct cm_link *l, struct message *m)
{
    if (l->state == LINK_CONNECTING) {
        int error = 0;
        socklen_t size = sizeof(error);
        if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &size) || error) {
            errno = error;
            return LINK_DOWN;
        }
        l->state = LINK_GREETING;
    }
    if (l->state == LINK_GREETING && !l->caller)
        return LINK_DOWN;
    ssize_t n = recv(l->fd, l->in + l->got, link_expected_bytes(l) - l->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return LINK_NOTHING;
    if (n <= 0) {
        errno = n ? errno : ECONNRESET;
        return LINK_DOWN;
    }
    l->got += (size_t)n;
    return l->got == link_expected_bytes(l) ? link_decode(l, m) : LINK_NOTHING;
}

void link_reset(struct cm_link *l)
{
    *l = (struct cm_link){.fd = -1};
}
