/* handshake.h: mutual proof of two processes that they know a key, without sending it: a state machine over
 * any connected socket. Received data is trusted only after its code is verified:
 *     connector --> {magic, nonce}
 *     acceptor  --> {magic, nonce, code of "accept" and both nonces}
 *     connector --> {code of "connect" and both nonces}
 * Codes are HMAC-SHA-256 with the key.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DYN_HANDSHAKE_H
#define FP_DYN_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

#define HANDSHAKE_KEY   16
#define HANDSHAKE_NONCE 16

struct greeting {
    char magic[8];
    uint8_t nonce[HANDSHAKE_NONCE];
};

/* HANDSHAKE_MORE: call again when the socket is ready. HANDSHAKE_LOST: the connection ended; errno is the
 * reason (0: the other side closed it). HANDSHAKE_STRANGER: the other side does not know the key or uses
 * another protocol. */
enum handshake_result { HANDSHAKE_MORE, HANDSHAKE_DONE, HANDSHAKE_LOST, HANDSHAKE_STRANGER };

struct handshake {
    const uint8_t *key;
    bool accepts;
    bool has_greeting; /* `theirs` has been received */
    bool has_verified; /* the other side knows the key; only output may be pending */
    struct greeting mine, theirs;
    size_t in_len, in_done, out_len, out_done;
    uint8_t in[sizeof(struct greeting) + SHA256_SIZE], out[sizeof(struct greeting) + SHA256_SIZE];
    uint8_t session[SHA256_SIZE]; /* key of later messages, known to both sides when the handshake is done */
};

/* Starts a handshake. `key` must remain valid until its end. Returns 0, or MPI_ERR_PORT if the kernel
 * provides no random bytes. */
int handshake_begin(struct handshake *h, bool accepts, const uint8_t key[HANDSHAKE_KEY]);

/* Advances the handshake without waiting; reads no bytes beyond the handshake. */
enum handshake_result handshake_advance(struct handshake *h, int fd);

/* The events of poll(2) that the handshake waits for. */
short handshake_events(const struct handshake *h);

/* Sets the error text for a failed handshake and returns its MPI error class. */
int handshake_error(enum handshake_result result);

#endif
