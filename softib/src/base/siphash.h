/* siphash.h: SipHash-2-4 (Aumasson and Bernstein, 2012): a 64-bit authentication code over a short message,
 * which only a holder of the 128-bit key can compute, at about one byte per cycle. Bytes may be added in
 * pieces.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SIPHASH_H
#define SOFTIB_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct sip {
    uint64_t v[4];
    uint64_t part; /* bytes of an incomplete word */
    uint64_t len;  /* bytes added so far */
};

void sip_begin(struct sip *s, const uint8_t key[16]);
void sip_add(struct sip *s, const void *data, size_t n);
uint64_t sip_end(struct sip *s);

#endif
