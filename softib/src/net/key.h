/* key.h: the secret key of a fabric between machines: 128 random bits. Both ends of a connection prove
 * that they know the key without sending it. Every datagram contains an authentication code that is
 * computed with the key.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_KEY_H
#define SOFTIB_KEY_H

#include "base/sha256.h"
#include "base/siphash.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_BYTES   16
#define NONCE_BYTES 16

/* Reads SOFTIB_KEY, else the file SOFTIB_KEY_FILE, else ~/.softib.key. On failure returns false with a
 * sentence for the user in err. */
bool key_read(uint8_t key[KEY_BYTES], char *err, size_t errlen);
bool key_parse(const char *text, uint8_t key[KEY_BYTES]);

/* Sets the key of this process, which the functions below use. */
void key_set_fabric_key(const uint8_t key[KEY_BYTES], uint64_t fabric);

enum key_side { KEY_CALLER, KEY_CALLED };

/* The proof of one end of a connection: a MAC over the HELLO, which names caller and callee, and over the
 * challenges of both. */
void key_proof(enum key_side side, const uint8_t *hello, size_t hello_len, const uint8_t caller[NONCE_BYTES],
               const uint8_t called[NONCE_BYTES], uint8_t out[SHA256_SIZE]);
/* Derives a secret for one purpose, equal for all members of the fabric. */
void key_derive(const char *purpose, uint8_t out[SHA256_SIZE]);
void key_copy_siphash(struct sip *s); /* starts the MAC of a datagram */

#endif
