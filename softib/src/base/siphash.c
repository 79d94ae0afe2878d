/* siphash.c: computes SipHash-2-4.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/siphash.h"
#include <endian.h>
#include <string.h>

static uint64_t siphash_rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static void siphash_rounds(uint64_t v[4], int n)
{
    uint64_t a = v[0], b = v[1], c = v[2], d = v[3];
    for (; n; n--) {
        a += b;
        b = siphash_rotate(b, 13) ^ a;
        a = siphash_rotate(a, 32);
        c += d;
        d = siphash_rotate(d, 16) ^ c;
        a += d;
        d = siphash_rotate(d, 21) ^ a;
        c += b;
        b = siphash_rotate(b, 17) ^ c;
        c = siphash_rotate(c, 32);
    }
    v[0] = a, v[1] = b, v[2] = c, v[3] = d;
}

static void siphash_add_word(struct sip *s, uint64_t w)
{
    s->v[3] ^= w;
    siphash_rounds(s->v, 2);
    s->v[0] ^= w;
}

static uint64_t siphash_load(const uint8_t *p)
{
    uint64_t w;
    memcpy(&w, p, 8);
    return le64toh(w);
}

void sip_begin(struct sip *s, const uint8_t key[16])
{
    uint64_t a = siphash_load(key), b = siphash_load(key + 8);
    *s = (struct sip){.v = {a ^ 0x736f6d6570736575ull, b ^ 0x646f72616e646f6dull, a ^ 0x6c7967656e657261ull,
                            b ^ 0x7465646279746573ull}};
}

static void siphash_add_byte(struct sip *s, uint8_t b)
{
    s->part |= (uint64_t)b << 8 * (s->len++ & 7);
    if (s->len & 7)
        return;
    siphash_add_word(s, s->part);
    s->part = 0;
}

void sip_add(struct sip *s, const void *data, size_t n)
{
    const uint8_t *p = data;
    for (; n && s->len & 7; n--)
        siphash_add_byte(s, *p++);
    for (; n >= 8; n -= 8, p += 8, s->len += 8)
        siphash_add_word(s, siphash_load(p));
    for (; n; n--)
        siphash_add_byte(s, *p++);
}

uint64_t sip_end(struct sip *s)
{
    siphash_add_word(s, s->part | s->len << 56);
    s->v[2] ^= 0xff;
    siphash_rounds(s->v, 4);
    return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}
