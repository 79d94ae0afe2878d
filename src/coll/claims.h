/* claims.h: one contribution that two ranks move together: who takes it reads pieces from the front, and who owns it
 * writes pieces from the back, until they meet. Each claims a piece before it moves it, so that no byte is moved twice
 * and none is left out, however fast either is, also when one of them does not run at all. Pure: a word in, a word out;
 * shared_help.c changes the word in shared memory by compare and swap.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_CLAIMS_H
#define FP_COLL_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLAIMS_UNIT  4096 /* bytes; the last unit of a contribution may be shorter */
#define CLAIMS_MIN   4    /* units of a piece: a call of the kernel should be worth it, */
#define CLAIMS_MAX   30   /* and the other should not have to wait long for the end of a piece; */
#define CLAIMS_CRUMB 2    /* a rest of fewer units goes with the last piece */

/* Units 0 .. front - 1 are claimed by the reader, units back .. all - 1 by the owner. */
struct claims {
    uint32_t front, back;
};

struct claim {
    uint32_t first, count; /* units; count 0: nothing is left */
};

static inline uint64_t claims_pack(struct claims c)
{
    return (uint64_t)c.back << 32 | c.front;
}

static inline struct claims claims_unpack(uint64_t word)
{
    return (struct claims){.front = (uint32_t)word, .back = (uint32_t)(word >> 32)};
}

static inline uint32_t claims_units(size_t bytes)
{
    return (uint32_t)((bytes + CLAIMS_UNIT - 1) / CLAIMS_UNIT);
}

/* Half of what is left, so that both end at about the same time. */
static inline uint32_t claims_piece(struct claims c)
{
    const uint32_t left = c.back - c.front;
    uint32_t n = left / 2;
    n = n < CLAIMS_MIN ? CLAIMS_MIN : n > CLAIMS_MAX ? CLAIMS_MAX : n;
    return left < n + CLAIMS_CRUMB ? left : n;
}

static inline struct claim claims_front(struct claims *c)
{
    const uint32_t n = claims_piece(*c);
    c->front += n;
    return (struct claim){c->front - n, n};
}

static inline struct claim claims_back(struct claims *c)
{
    const uint32_t n = claims_piece(*c);
    c->back -= n;
    return (struct claim){c->back, n};
}

#endif
