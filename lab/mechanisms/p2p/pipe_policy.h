/* pipe_policy.h: number of pieces into which PIPE (rendezvous_pipe.c) cuts a message whose memory is not
 * registered yet, so that one piece is registered while others are transferred. Pure functions. R is the time
 * to register the message on one side, M the time of the transfer. A message in a single piece takes 2 R + M.
 * With several pieces both sides register at the same time, and pieces are transferred meanwhile: about
 * R + R / pieces, plus a fixed cost for each piece.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_MECHANISMS_P2P_PIPE_POLICY_H
#define FP_LAB_MECHANISMS_P2P_PIPE_POLICY_H

#include <stdint.h>

enum {
    PIPE_PIECES = 16,       /* largest number of pieces */
    PIPE_PIECE_MIN = 65536, /* smallest piece in bytes */
    PIPE_UNIT = 65536,      /* bytes that are registered in `unit_ns` */
    PIPE_PIECE_NS = 2000    /* fixed cost of each further piece: an answer, a registration and a write */
};

/* Bytes of a piece, a power of two, so that the next message from the same memory finds its pieces
 * registered; 0: registering the message as one is faster. A registration takes base_ns, and unit_ns for each
 * PIPE_UNIT bytes. */
static inline uint64_t pipe_piece_bytes(uint64_t bytes, uint64_t base_ns, uint64_t unit_ns)
{
    const uint64_t whole = base_ns + unit_ns * (bytes / 1024) / (PIPE_UNIT / 1024);
    uint64_t best = 0, least = whole - whole / 4; /* pieces must save at least a quarter of a registration */
    for (uint64_t piece = PIPE_PIECE_MIN; piece < bytes; piece *= 2) {
        const uint64_t count = (bytes + piece - 1) / piece;
        const uint64_t cost = unit_ns * piece / PIPE_UNIT + count * (base_ns + PIPE_PIECE_NS);
        if (count <= PIPE_PIECES && cost < least) {
            best = piece;
            least = cost;
        }
    }
    return best;
}

/* Bytes of a piece if a setting forces pieces regardless of their cost: about PIPE_PIECES / 2 pieces. */
static inline uint64_t pipe_piece_forced(uint64_t bytes)
{
    uint64_t piece = 64;
    while (piece < (bytes + PIPE_PIECES / 2 - 1) / (PIPE_PIECES / 2))
        piece *= 2;
    return piece;
}

#endif
