/* proof.h: how mpiexec and an agent prove to each other that they know the cookie, without sending it. All
 * functions work on bytes only, without sockets or a clock, so that a test or a fuzzer can call them.
 *     agent -> mpiexec   HELLO      the agent's random number, who it is, its version
 *     mpiexec -> agent   CHALLENGE  mpiexec's random number, and a code that proves knowledge of the cookie
 *     agent -> mpiexec   PROOF      the agent's code
 * Codes are HMAC-SHA-256 with the cookie as key, over a label, both random numbers and the whole HELLO. Each
 * side has its own label, so that neither can be sent its own code back. Each later frame carries a code made
 * with a key of this connection and direction and with the frame's sequence number: a frame that was changed,
 * left out, repeated or sent by a stranger is detected.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_PROOF_H
#define FP_LAUNCHER_PROOF_H

#include "base/sha256.h"
#include "core/util.h"

#define COOKIE_LEN  32 /* hexadecimal digits */
#define NONCE_SIZE  32
#define SEAL_SIZE   16 /* bytes of a frame's code that are sent */
#define WHO_MAX     200
#define VERSION_MAX 32

struct hello {
    uint8_t nonce[NONCE_SIZE];
    char who[WHO_MAX], version[VERSION_MAX];
};

struct challenge {
    uint8_t nonce[NONCE_SIZE], code[SHA256_SIZE];
};

/* Keys and codes that both sides compute from the cookie and the two random numbers. */
struct session {
    uint8_t mpiexec_code[SHA256_SIZE], agent_code[SHA256_SIZE];
    uint8_t down[SHA256_SIZE], up[SHA256_SIZE]; /* keys of later frames, from mpiexec and from the agent */
};

/* Fills `out` with random bytes of the kernel; ends the process if the kernel provides none. */
void proof_fill_random(void *out, size_t len);
void proof_make_cookie(char cookie[COOKIE_LEN + 1]);

void proof_hello_encode(const struct hello *h, struct buf *out);
bool proof_hello_decode(const char *data, size_t len, struct hello *out);
void proof_challenge_encode(const struct challenge *c, struct buf *out);
bool proof_challenge_decode(const char *data, size_t len, struct challenge *out);

void proof_compute_session(const char *cookie, const struct hello *h, const uint8_t mpiexec_nonce[NONCE_SIZE],
                           struct session *out);

/* Authentication of one direction of a connection: the key and the number of the next frame. */
struct seal {
    struct hmac_sha256 keyed;
    uint64_t sequence;
};

void seal_init(struct seal *s, const uint8_t key[SHA256_SIZE]);

/* Computes the code of the next frame. */
void seal_compute_next(struct seal *s, const void *head, size_t head_len, const void *data, size_t len,
                       uint8_t out[SEAL_SIZE]);

/* True if `code` is the code of the next frame. */
bool seal_check(struct seal *s, const void *head, size_t head_len, const void *data, size_t len,
                const void *code);

#endif
