/* channel.c: see channel.h. Nothing that arrives is trusted until its code is verified.
 *     connects --> {magic, nonce}
 *     accepts  --> {magic, nonce, code of "accept" and both nonces}
 *     connects --> {code of "connect" and both nonces}
 *     both     --> {length, bytes, code of direction, number, length and bytes} ...
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
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "obj/proc.h"

#define GREETING_SECONDS 20u /* for a greeting: whoever connects and says nothing must not keep a server */
#define SILENCE_SECONDS  600u

static const char magic[8] = "fpmeet1";

struct greeting {
    char magic[8];
    uint8_t nonce[CHANNEL_NONCE];
};

static uint64_t deadline_in(uint64_t seconds)
{
    return clock_ns() + seconds * 1000000000u;
}

/* Short naps: whatever else this process is to do goes on meanwhile. */
static int nap(struct proc *p, int fd, short events)
{
    struct pollfd ready = {.fd = fd, .events = events};
    int n = poll(&ready, 1, 0);
    if (n != 0 || net_progress(p->net) > 0)
        return n;
    if (p->net->lock)
        biglock_drop(p->net->lock);
    n = poll(&ready, 1, 1);
    if (p->net->lock)
        biglock_take(p->net->lock);
    return n;
}

int channel_wait(struct proc *p, int fd, short events, uint64_t deadline, const struct channel_watch *watch)
{
    for (;;) {
        if (nap(p, fd, events) > 0)
            return 0;
        int rc = watch ? watch->look(watch->arg) : 0;
        if (rc)
            return rc;
        if (clock_ns() > deadline)
            return err_set(MPI_ERR_PORT, "the other side of the connection does not answer");
    }
}

static int lost(const char *what)
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
            return lost("sending");
        int rc = n < 0 ? channel_wait(c->proc, c->fd, POLLOUT, deadline, NULL) : 0;
        if (rc)
            return rc;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int read_all(struct channel *c, void *data, size_t len, uint64_t deadline,
                    const struct channel_watch *watch)
{
    char *at = data;
    while (len > 0) {
        errno = 0;
        ssize_t n = recv(c->fd, at, len, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return lost("receiving");
        int rc = n < 0 ? channel_wait(c->proc, c->fd, POLLIN, deadline, watch) : 0;
        if (rc)
            return rc;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static void prove(const uint8_t *key, const char *who, const uint8_t *connects, const uint8_t *accepts,
                  uint8_t out[SHA256_SIZE])
{
    struct hmac_sha256 h;
    hmac_sha256_init(&h, key, CHANNEL_KEY);
    hmac_sha256_add(&h, who, strlen(who));
    hmac_sha256_add(&h, connects, CHANNEL_NONCE);
    hmac_sha256_add(&h, accepts, CHANNEL_NONCE);
    hmac_sha256_end(&h, out);
}

static int unproven(void)
{
    return err_set(
        MPI_ERR_PORT,
        "the other side of the connection does not know the port's key, or is not Fishplate of this version");
}

static int greet_as_connector(struct channel *c, const uint8_t *key, struct greeting *mine,
                              struct greeting *theirs, const struct channel_watch *watch)
{
    uint8_t code[SHA256_SIZE], want[SHA256_SIZE];
    int rc = write_all(c, mine, sizeof(*mine), deadline_in(GREETING_SECONDS));
    /* The other side may accept much later. */
    rc = rc ? rc : read_all(c, theirs, sizeof(*theirs), UINT64_MAX, watch);
    rc = rc ? rc : read_all(c, code, sizeof(code), deadline_in(GREETING_SECONDS), NULL);
    if (rc)
        return rc;
    prove(key, "accept", mine->nonce, theirs->nonce, want);
    if (memcmp(theirs->magic, magic, sizeof(magic)) != 0 || !secret_equal(code, want, sizeof(code)))
        return unproven();
    prove(key, "connect", mine->nonce, theirs->nonce, code);
    prove(key, "session", mine->nonce, theirs->nonce, c->session);
    return write_all(c, code, sizeof(code), deadline_in(GREETING_SECONDS));
}

static int greet_as_acceptor(struct channel *c, const uint8_t *key, struct greeting *mine,
                             struct greeting *theirs)
{
    uint8_t code[SHA256_SIZE], want[SHA256_SIZE];
    uint64_t deadline = deadline_in(GREETING_SECONDS);
    int rc = read_all(c, theirs, sizeof(*theirs), deadline, NULL);
    if (rc == 0 && memcmp(theirs->magic, magic, sizeof(magic)) != 0)
        return unproven();
    prove(key, "accept", theirs->nonce, mine->nonce, code);
    rc = rc ? rc : write_all(c, mine, sizeof(*mine), deadline);
    rc = rc ? rc : write_all(c, code, sizeof(code), deadline);
    rc = rc ? rc : read_all(c, code, sizeof(code), deadline, NULL);
    if (rc)
        return rc;
    prove(key, "connect", theirs->nonce, mine->nonce, want);
    prove(key, "session", theirs->nonce, mine->nonce, c->session);
    return secret_equal(code, want, sizeof(code)) ? 0 : unproven();
}

int channel_open(struct channel *c, struct proc *p, int fd, bool own_fd, bool accepts,
                 const uint8_t key[CHANNEL_KEY], const struct channel_watch *watch)
{
    struct greeting mine, theirs;
    *c = (struct channel){.proc = p, .fd = fd, .own_fd = own_fd, .accepts = accepts};
    /* A message is written in pieces: the kernel would keep the second until the other side acknowledges the first, which it delays
     * for 40 ms. A user's socket (MPI_Comm_join) stays as it is, whatever kind it has. */
    if (own_fd)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    memcpy(mine.magic, magic, sizeof(magic));
    int rc = getrandom(mine.nonce, sizeof(mine.nonce), 0) == (ssize_t)sizeof(mine.nonce)
                 ? 0
                 : err_set(MPI_ERR_PORT, "the kernel gave no random bytes");
    if (rc == 0)
        rc = accepts ? greet_as_acceptor(c, key, &mine, &theirs)
                     : greet_as_connector(c, key, &mine, &theirs, watch);
    if (rc)
        channel_close(c);
    return rc;
}

void channel_close(struct channel *c)
{
    if (c->fd >= 0 && c->own_fd)
        close(c->fd);
    c->fd = -1;
    secret_wipe(c->session, sizeof(c->session));
}

static void seal(const struct channel *c, bool by_acceptor, uint64_t number, const void *data, uint32_t len,
                 uint8_t out[SHA256_SIZE])
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
    uint64_t deadline = deadline_in(SILENCE_SECONDS);
    seal(c, c->accepts, c->sent++, data, length, code);
    int rc = write_all(c, &length, sizeof(length), deadline);
    rc = rc ? rc : write_all(c, data, len, deadline);
    return rc ? rc : write_all(c, code, sizeof(code), deadline);
}

int channel_receive(struct channel *c, void **data, size_t *len)
{
    uint8_t code[SHA256_SIZE], want[SHA256_SIZE];
    uint32_t length;
    uint64_t deadline = deadline_in(SILENCE_SECONDS);
    int rc = read_all(c, &length, sizeof(length), deadline, NULL);
    if (rc)
        return rc;
    char *bytes = length <= CHANNEL_MAX ? malloc((size_t)length + 1) : NULL;
    if (!bytes)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %u bytes from the other side of the connection",
                       length);
    rc = read_all(c, bytes, length, deadline, NULL);
    rc = rc ? rc : read_all(c, code, sizeof(code), deadline, NULL);
    if (rc == 0) {
        seal(c, !c->accepts, c->received++, bytes, length, want);
        rc = secret_equal(code, want, sizeof(code)) ? 0 : unproven();
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
