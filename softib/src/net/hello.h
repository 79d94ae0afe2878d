/* hello.h: the bytes of the handshake. The caller sends its name and that of the process that it calls,
 * and both sides prove that they know the key of the fabric:
 *     caller                                    called
 *     HELLO       names, challenge      ------>
 *               <------  challenge, proof over both challenges       HELLO_ACK
 *     PROOF       proof over both challenges -->
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_HELLO_H
#define SOFTIB_HELLO_H

#include "net/frame.h"
#include "net/key.h"

struct conn;

#define HELLO_BYTES     (FRAME_BYTES + FRAME_HELLO_BYTES)
#define HELLO_ACK_BYTES (FRAME_BYTES + FRAME_HELLO_ACK_BYTES)
#define PROOF_BYTES     (FRAME_BYTES + FRAME_PROOF_BYTES)

void greet_hello(const struct conn *c, uint8_t out[HELLO_BYTES]);
/* Result of a check of the answer to a HELLO. */
enum greet_answer { GREET_GOOD, GREET_OTHER_PROCESS, GREET_WRONG_KEY };
enum greet_answer greet_check(const uint8_t hello[HELLO_BYTES], const uint8_t ack[HELLO_ACK_BYTES]);
void greet_proof(const uint8_t hello[HELLO_BYTES], const uint8_t ack[HELLO_ACK_BYTES],
                 uint8_t out[PROOF_BYTES]);

/* Writes the HELLO_ACK that answers a HELLO addressed to this process. */
void greet_answer(const uint8_t hello[HELLO_BYTES], uint8_t out[HELLO_ACK_BYTES]);

#endif
