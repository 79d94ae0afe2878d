/* handshake.c: the mutual authentication of handshake.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "dyn/handshake.h"

#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/err.h"

static const char magic[8] = "fpmeet1";

/* Computes the authentication code over a label and both nonces. */
static void compute_code(const struct handshake *h, const char *label, uint8_t out[SHA256_SIZE])
{
    const struct greeting *connector = h->accepts ? &h->theirs : &h->mine;
    const struct greeting *acceptor = h->accepts ? &h->mine : &h->theirs;
    struct hmac_sha256 m;
    hmac_sha256_init(&m, h->key, HANDSHAKE_KEY);
    hmac_sha256_add(&m, label, strlen(label));
    hmac_sha256_add(&m, connector->nonce, HANDSHAKE_NONCE);
    hmac_sha256_add(&m, acceptor->nonce, HANDSHAKE_NONCE);
    hmac_sha256_end(&m, out);
}

static void handshake_expect_bytes(struct handshake *h, size_t len)
{
    h->in_len = len;
    h->in_done = 0;
}

static void queue_output(struct handshake *h, const void *data, size_t len)
{
    if (h->out_done == h->out_len)
        h->out_len = h->out_done = 0;
    memcpy(h->out + h->out_len, data, len);
    h->out_len += len;
}

static void send_code(struct handshake *h, const char *label)
{
    uint8_t code[SHA256_SIZE];
    compute_code(h, label, code);
    queue_output(h, code, sizeof(code));
}

int handshake_begin(struct handshake *h, bool accepts, const uint8_t key[HANDSHAKE_KEY])
{
    *h = (struct handshake){.key = key, .accepts = accepts};
    memcpy(h->mine.magic, magic, sizeof(magic));
    if (getrandom(h->mine.nonce, HANDSHAKE_NONCE, 0) != HANDSHAKE_NONCE)
        return err_set(MPI_ERR_PORT, "the kernel gave no random bytes");
    handshake_expect_bytes(h, accepts ? sizeof(h->theirs) : sizeof(h->theirs) + SHA256_SIZE);
    if (!accepts)
        queue_output(h, &h->mine, sizeof(h->mine));
    return 0;
}

static bool is_code_valid(const struct handshake *h, const char *label, const uint8_t *code)
{
    uint8_t want[SHA256_SIZE];
    compute_code(h, label, want);
    return secret_equal(code, want, SHA256_SIZE);
}

static bool parse_greeting(struct handshake *h)
{
    memcpy(&h->theirs, h->in, sizeof(h->theirs));
    h->has_greeting = memcmp(h->theirs.magic, magic, sizeof(magic)) == 0;
    return h->has_greeting;
}

/* Handles a complete message. Returns false if the sender does not know the key or uses another protocol. */
static bool handle_input(struct handshake *h)
{
    const uint8_t *code = h->in;
    if (!h->has_greeting) {
        if (!parse_greeting(h))
            return false;
        if (h->accepts) {
            queue_output(h, &h->mine, sizeof(h->mine));
            send_code(h, "accept");
            handshake_expect_bytes(h, SHA256_SIZE);
            return true;
        }
        code += sizeof(h->theirs);
    }
    h->has_verified = is_code_valid(h, h->accepts ? "connect" : "accept", code);
    if (h->has_verified && !h->accepts)
        send_code(h, "connect");
    compute_code(h, "session", h->session);
    return h->has_verified;
}

/* Sends pending output. HANDSHAKE_DONE: nothing is left to send. */
static enum handshake_result send_now(struct handshake *h, int fd)
{
    while (h->out_done < h->out_len) {
        const ssize_t n =
            send(fd, h->out + h->out_done, h->out_len - h->out_done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? HANDSHAKE_MORE : HANDSHAKE_LOST;
        h->out_done += (size_t)n;
    }
    return HANDSHAKE_DONE;
}

/* Receives without waiting. HANDSHAKE_DONE: the expected message is complete. */
static enum handshake_result receive_now(struct handshake *h, int fd)
{
    while (h->in_done < h->in_len) {
        errno = 0;
        const ssize_t n = recv(fd, h->in + h->in_done, h->in_len - h->in_done, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return HANDSHAKE_MORE;
        if (n <= 0)
            return HANDSHAKE_LOST;
        h->in_done += (size_t)n;
    }
    return HANDSHAKE_DONE;
}

enum handshake_result handshake_advance(struct handshake *h, int fd)
{
    for (;;) {
        enum handshake_result r = send_now(h, fd);
        if (r != HANDSHAKE_DONE || h->has_verified)
            return r;
        r = receive_now(h, fd);
        if (r != HANDSHAKE_DONE)
            return r;
        if (!handle_input(h))
            return HANDSHAKE_STRANGER;
    }
}

short handshake_events(const struct handshake *h)
{
    return h->out_done < h->out_len ? POLLOUT : POLLIN;
}

int handshake_error(enum handshake_result result)
{
    if (result == HANDSHAKE_STRANGER)
        return err_set(MPI_ERR_PORT,
                       "the other side of the connection does not know the port's key, or is not "
                       "Fishplate of this version");
    return err_set(MPI_ERR_PORT, "the connection between the two groups was lost during the handshake: %s",
                   errno ? strerror(errno) : "the other side has closed it");
}
