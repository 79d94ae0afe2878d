/* split_pieces.h: divides a contribution between two ranks that copy it: the reader reads pieces from the
 * front, the owner writes pieces from the back. Each rank claims a piece before copying it, so that every
 * byte is copied exactly once at any speed of the ranks, even if one of them does not run. Pure functions on
 * one word; split_copy.c updates the word in shared memory by compare and swap.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHM_SPLIT_PIECES_H
#define FP_COLL_SHM_SPLIT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPLIT_UNIT  4096 /* bytes; the last unit of a contribution may be shorter */
#define SPLIT_MIN   4    /* minimum units of a piece: a system call takes as long as copying a few units */
#define SPLIT_MAX   30   /* limit of units of a piece: the other rank may have to wait for its end */
#define SPLIT_CRUMB 2    /* a remainder of fewer units is added to the last piece */

/* Units 0 .. front - 1 are claimed by the reader, units back .. all - 1 by the owner. */
struct split {
    uint32_t front, back;
};

struct split_piece {
    uint32_t first, count; /* first unit, number of units; count 0: nothing is left */
};

static inline uint64_t split_pack(struct split c)
{
    return (uint64_t)c.back << 32 | c.front;
}

static inline struct split split_unpack(uint64_t word)
{
    return (struct split){.front = (uint32_t)word, .back = (uint32_t)(word >> 32)};
}

static inline uint32_t split_units(size_t bytes)
{
    return (uint32_t)((bytes + SPLIT_UNIT - 1) / SPLIT_UNIT);
}

/* Returns the units of the next piece: half of the rest, so that both ranks finish together. */
static inline uint32_t split_piece(struct split c)
{
    const uint32_t left = c.back - c.front;
    uint32_t n = left / 2;
    n = n < SPLIT_MIN ? SPLIT_MIN : n > SPLIT_MAX ? SPLIT_MAX : n;
    return left < n + SPLIT_CRUMB ? left : n;
}

static inline struct split_piece split_front(struct split *c)
{
    const uint32_t n = split_piece(*c);
    c->front += n;
    return (struct split_piece){c->front - n, n};
}

static inline struct split_piece split_back(struct split *c)
{
    const uint32_t n = split_piece(*c);
    c->back -= n;
    return (struct split_piece){c->back, n};
}

#endif
