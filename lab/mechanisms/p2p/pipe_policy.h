/* pipe_policy.h: into how many pieces PIPE (rendezvous_pipe.c) cuts a message whose memory is not registered yet, so that one piece is
 * registered while others move. Pure.
 *
 * Both sides register and then the data moves, one after the other, where the message goes as one: 2 R + M. In pieces
 * the two sides register at the same time, and the data of a piece moves meanwhile: about R + R / pieces, and each piece
 * costs something of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_MECHANISMS_P2P_PIPE_POLICY_H
#define FP_LAB_MECHANISMS_P2P_PIPE_POLICY_H

#include <stdint.h>

enum {
    PIPE_PIECES = 16,    /* at most */
    PIPE_LEAST = 65536,  /* bytes of a piece */
    PIPE_UNIT = 65536,   /* bytes that `unit_ns` is for */
    PIPE_PIECE_NS = 2000 /* of one piece more: an answer, a registration and a write of its own */
};

/* Bytes of a piece, a power of two, so that the next message from the same memory finds its pieces registered; 0: the
 * message is better registered as one. Registering takes base_ns and unit_ns for each PIPE_UNIT bytes. */
static inline uint64_t pipe_piece_bytes(uint64_t bytes, uint64_t base_ns, uint64_t unit_ns)
{
    const uint64_t whole = base_ns + unit_ns * (bytes / 1024) / (PIPE_UNIT / 1024);
    uint64_t best = 0,
             least = whole - whole / 4; /* less than a quarter of a registration saved is not worth it */
    for (uint64_t piece = PIPE_LEAST; piece < bytes; piece *= 2) {
        const uint64_t count = (bytes + piece - 1) / piece;
        const uint64_t cost = unit_ns * piece / PIPE_UNIT + count * (base_ns + PIPE_PIECE_NS);
        if (count <= PIPE_PIECES && cost < least) {
            best = piece;
            least = cost;
        }
    }
    return best;
}

/* The same when pieces are forced regardless of their cost. */
static inline uint64_t pipe_piece_forced(uint64_t bytes)
{
    uint64_t piece = 64;
    while (piece < (bytes + PIPE_PIECES / 2 - 1) / (PIPE_PIECES / 2))
        piece *= 2;
    return piece;
}

#endif
