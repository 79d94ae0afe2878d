/* proof.c: the messages and codes of the proof. Every signed part has a fixed position or its length in
 * front.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote/proof.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

void proof_fill_random(void *out, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = getrandom((char *)out + done, len - done, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            launcher_die(1, "mpiexec cannot get random bytes from the kernel (getrandom): %s.",
                         strerror(errno));
        done += (size_t)n;
    }
}

void proof_make_cookie(char cookie[COOKIE_LEN + 1])
{
    uint8_t bytes[COOKIE_LEN / 2];
    proof_fill_random(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        sprintf(cookie + 2 * i, "%02x", bytes[i]);
}

void proof_hello_encode(const struct hello *h, struct buf *out)
{
    buf_add(out, h->nonce, sizeof(h->nonce));
    buf_add(out, h->who, strlen(h->who) + 1);
    buf_add(out, h->version, strlen(h->version) + 1);
}

/* Reads a zero-terminated string; returns its end, or NULL if it is missing, empty or too long. */
static const char *parse_text(const char *at, const char *end, char *out, size_t size)
{
    const char *zero = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
    if (!zero || zero == at || (size_t)(zero - at) >= size)
        return NULL;
    memcpy(out, at, (size_t)(zero - at) + 1);
    return zero + 1;
}

bool proof_hello_decode(const char *data, size_t len, struct hello *out)
{
    const char *end = data + len, *at;
    memset(out, 0, sizeof(*out));
    if (len < sizeof(out->nonce))
        return false;
    memcpy(out->nonce, data, sizeof(out->nonce));
    at = parse_text(data + sizeof(out->nonce), end, out->who, sizeof(out->who));
    at = at ? parse_text(at, end, out->version, sizeof(out->version)) : NULL;
    return at == end;
}

void proof_challenge_encode(const struct challenge *c, struct buf *out)
{
    buf_add(out, c->nonce, sizeof(c->nonce));
    buf_add(out, c->code, sizeof(c->code));
}

bool proof_challenge_decode(const char *data, size_t len, struct challenge *out)
{
    if (len != sizeof(out->nonce) + sizeof(out->code))
        return false;
    memcpy(out->nonce, data, sizeof(out->nonce));
    memcpy(out->code, data + sizeof(out->nonce), sizeof(out->code));
    return true;
}

/* Each field has a fixed size or ends with its zero byte, so that different inputs give different bytes. */
static void proof_compute_code(const char *cookie, const char *label, const struct hello *h,
                               const uint8_t *mpiexec_nonce, uint8_t out[SHA256_SIZE])
{
    struct hmac_sha256 m;
    hmac_sha256_init(&m, cookie, COOKIE_LEN);
    hmac_sha256_add(&m, label, strlen(label) + 1);
    hmac_sha256_add(&m, h->nonce, sizeof(h->nonce));
    hmac_sha256_add(&m, mpiexec_nonce, NONCE_SIZE);
    hmac_sha256_add(&m, h->who, strlen(h->who) + 1);
    hmac_sha256_add(&m, h->version, strlen(h->version) + 1);
    hmac_sha256_end(&m, out);
}

void proof_compute_session(const char *cookie, const struct hello *h, const uint8_t mpiexec_nonce[NONCE_SIZE],
                           struct session *out)
{
    proof_compute_code(cookie, "fishplate mpiexec knows", h, mpiexec_nonce, out->mpiexec_code);
    proof_compute_code(cookie, "fishplate agent knows", h, mpiexec_nonce, out->agent_code);
    proof_compute_code(cookie, "fishplate frames down", h, mpiexec_nonce, out->down);
    proof_compute_code(cookie, "fishplate frames up", h, mpiexec_nonce, out->up);
}

void seal_init(struct seal *s, const uint8_t key[SHA256_SIZE])
{
    hmac_sha256_init(&s->keyed, key, SHA256_SIZE);
    s->sequence = 0;
}

static void seal_authenticate_frame(struct seal *s, const void *head, size_t head_len, const void *data,
                                    size_t len, uint8_t out[SHA256_SIZE])
{
    struct hmac_sha256 m = s->keyed;
    uint8_t number[8];
    for (int i = 0; i < 8; i++)
        number[i] = (uint8_t)(s->sequence >> (56 - 8 * i));
    s->sequence++;
    hmac_sha256_add(&m, number, sizeof(number));
    hmac_sha256_add(&m, head, head_len);
    hmac_sha256_add(&m, data, len);
    hmac_sha256_end(&m, out);
}

void seal_compute_next(struct seal *s, const void *head, size_t head_len, const void *data, size_t len,
                       uint8_t out[SEAL_SIZE])
{
    uint8_t full[SHA256_SIZE];
    seal_authenticate_frame(s, head, head_len, data, len, full);
    memcpy(out, full, SEAL_SIZE);
}

bool seal_check(struct seal *s, const void *head, size_t head_len, const void *data, size_t len,
                const void *given)
{
    uint8_t full[SHA256_SIZE];
    seal_authenticate_frame(s, head, head_len, data, len, full);
    return secret_equal(full, given, SEAL_SIZE);
}
