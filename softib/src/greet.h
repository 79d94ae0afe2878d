/*
 * See greet.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SOFTIB_GREET_H
#define SOFTIB_GREET_H

#include "frame.h"
#include "key.h"

struct conn;

#define HELLO_BYTES     (FRAME_BYTES + FRAME_HELLO_BYTES)
#define HELLO_ACK_BYTES (FRAME_BYTES + FRAME_HELLO_ACK_BYTES)
#define PROOF_BYTES     (FRAME_BYTES + FRAME_PROOF_BYTES)

/* Both ends of the greeting, as bytes: a HELLO, the answer to it, and the caller's proof. */
void greet_hello(const struct conn *c, uint8_t out[HELLO_BYTES]);
/* What an answer to that HELLO is worth. */
enum greet_answer { GREET_GOOD, GREET_SOMEBODY_ELSE, GREET_WRONG_KEY };
enum greet_answer greet_check(const uint8_t hello[HELLO_BYTES], const uint8_t ack[HELLO_ACK_BYTES]);
void greet_proof(const uint8_t hello[HELLO_BYTES], const uint8_t ack[HELLO_ACK_BYTES],
                 uint8_t out[PROOF_BYTES]);

/* Listens on those addresses of this machine that the fabric names; false: the port number is taken. */
bool greet_listen(uint16_t port);
bool greet_start(void);
void greet_tick(uint64_t now);
void greet_bury(void); /* no event is being worked on: frees those who are gone */
void greet_forget(void);

#endif
