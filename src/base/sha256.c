/* sha256.c: the functions of FIPS 180-4, section 6.2, in plain C: no tables indexed by secrets, no branches
 * on secrets, the same result on either byte order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sha256.h"

#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t sha256_rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static uint32_t sha256_load(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void sha256_store(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void sha256_schedule(uint32_t w[64], const uint8_t *block)
{
    for (int t = 0; t < 16; t++)
        w[t] = sha256_load(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = sha256_rotate(w[t - 15], 7) ^ sha256_rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = sha256_rotate(w[t - 2], 17) ^ sha256_rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
}

/* One round. The eight words stay in place; the names of the arguments rotate, with a period of eight
 * rounds. */
static inline void sha256_round(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f,
                                uint32_t g, uint32_t *h, uint32_t add)
{
    uint32_t choose = g ^ (e & (f ^ g)), majority = (a & b) | (c & (a | b));
    uint32_t t = *h + (sha256_rotate(e, 6) ^ sha256_rotate(e, 11) ^ sha256_rotate(e, 25)) + choose + add;
    *d += t;
    *h = t + (sha256_rotate(a, 2) ^ sha256_rotate(a, 13) ^ sha256_rotate(a, 22)) + majority;
}

static void sha256_compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    sha256_schedule(w, block);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t += 8) {
        const uint32_t *k = constants + t, *x = w + t;
        sha256_round(a, b, c, &d, e, f, g, &h, k[0] + x[0]);
        sha256_round(h, a, b, &c, d, e, f, &g, k[1] + x[1]);
        sha256_round(g, h, a, &b, c, d, e, &f, k[2] + x[2]);
        sha256_round(f, g, h, &a, b, c, d, &e, k[3] + x[3]);
        sha256_round(e, f, g, &h, a, b, c, &d, k[4] + x[4]);
        sha256_round(d, e, f, &g, h, a, b, &c, k[5] + x[5]);
        sha256_round(c, d, e, &f, g, h, a, &b, k[6] + x[6]);
        sha256_round(b, c, d, &e, f, g, h, &a, k[7] + x[7]);
    }
    const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += sum[i];
}

void sha256_init(struct sha256 *s)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->state, first, sizeof(first));
    s->len = 0;
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
    const uint8_t *p = data;
    size_t used = s->len % SHA256_BLOCK;
    s->len += len;
    if (used > 0) {
        size_t room = SHA256_BLOCK - used, n = len < room ? len : room;
        if (n > 0)
            memcpy(s->block + used, p, n);
        if (n < room)
            return;
        sha256_compress(s->state, s->block);
        p += n;
        len -= n;
    }
    for (; len >= SHA256_BLOCK; p += SHA256_BLOCK, len -= SHA256_BLOCK)
        sha256_compress(s->state, p);
    if (len > 0)
        memcpy(s->block, p, len);
}

void sha256_end(struct sha256 *s, uint8_t out[SHA256_SIZE])
{
    static const uint8_t padding[SHA256_BLOCK] = {0x80};
    uint64_t bits = s->len * 8;
    uint8_t length[8];
    size_t used = s->len % SHA256_BLOCK;
    sha256_store(length, (uint32_t)(bits >> 32));
    sha256_store(length + 4, (uint32_t)bits);
    sha256_add(s, padding, used < 56 ? 56 - used : 120 - used);
    sha256_add(s, length, sizeof(length));
    for (int i = 0; i < 8; i++)
        sha256_store(out + 4 * i, s->state[i]);
}

static void sha256_begin_keyed(struct sha256 *s, const uint8_t key[SHA256_BLOCK], uint8_t pad)
{
    uint8_t block[SHA256_BLOCK];
    for (int i = 0; i < SHA256_BLOCK; i++)
        block[i] = key[i] ^ pad;
    sha256_init(s);
    sha256_add(s, block, sizeof(block));
    secret_wipe(block, sizeof(block));
}

void hmac_sha256_init(struct hmac_sha256 *h, const void *key, size_t len)
{
    uint8_t block[SHA256_BLOCK] = {0};
    if (len > SHA256_BLOCK) {
        struct sha256 s;
        sha256_init(&s);
        sha256_add(&s, key, len);
        sha256_end(&s, block);
    } else if (len > 0) {
        memcpy(block, key, len);
    }
    sha256_begin_keyed(&h->inner, block, 0x36);
    sha256_begin_keyed(&h->outer, block, 0x5c);
    secret_wipe(block, sizeof(block));
}

void hmac_sha256_add(struct hmac_sha256 *h, const void *data, size_t len)
{
    sha256_add(&h->inner, data, len);
}

void hmac_sha256_end(struct hmac_sha256 *h, uint8_t out[SHA256_SIZE])
{
    uint8_t digest[SHA256_SIZE];
    sha256_end(&h->inner, digest);
    sha256_add(&h->outer, digest, sizeof(digest));
    sha256_end(&h->outer, out);
}

void hmac_sha256(const void *key, size_t key_len, const void *data, size_t len, uint8_t out[SHA256_SIZE])
{
    struct hmac_sha256 h;
    hmac_sha256_init(&h, key, key_len);
    hmac_sha256_add(&h, data, len);
    hmac_sha256_end(&h, out);
    secret_wipe(&h, sizeof(h));
}

bool secret_equal(const void *a, const void *b, size_t len)
{
    const volatile uint8_t *x = a, *y = b;
    uint8_t differ = 0;
    for (size_t i = 0; i < len; i++)
        differ |= x[i] ^ y[i];
    return differ == 0;
}

void secret_wipe(void *secret, size_t len)
{
    volatile uint8_t *p = secret;
    while (len-- > 0)
        *p++ = 0;
}
