/* sha256.h: SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), with which the launcher's agents and
 * softib's TCP wire prove that they know a key without sending it. Depends on libc alone, because
 * launcher/ and softib/ compile it, too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SHA256_H
#define FP_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE  32 /* bytes of a digest or of an authentication code */
#define SHA256_BLOCK 64

struct sha256 {
    uint32_t state[8];
    uint64_t len; /* bytes added so far */
    uint8_t block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_end(struct sha256 *s, uint8_t out[SHA256_SIZE]);

/* A copy of the state made after hmac_sha256_init authenticates another message with the same key at half the
 * cost of a new initialisation. */
struct hmac_sha256 {
    struct sha256 inner, outer;
};

void hmac_sha256_init(struct hmac_sha256 *h, const void *key, size_t len);
void hmac_sha256_add(struct hmac_sha256 *h, const void *data, size_t len);
void hmac_sha256_end(struct hmac_sha256 *h, uint8_t out[SHA256_SIZE]);

/* The HMAC of one message in one call. */
void hmac_sha256(const void *key, size_t key_len, const void *data, size_t len, uint8_t out[SHA256_SIZE]);

/* Compares all bytes in constant time: the duration does not depend on the position of the first
 * difference. */
bool secret_equal(const void *a, const void *b, size_t len);

/* Overwrites a secret with zeros; the compiler may not omit this. */
void secret_wipe(void *secret, size_t len);

#endif
