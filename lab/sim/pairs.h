/* pairs.h: tables keyed by two ranks: how many messages went between them, and which of message and receive came first. Only
 * pairs that talk take memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_PAIRS_H
#define FP_SIM_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair {
    uint32_t from, to, order;
    uint32_t value; /* a count, or who came first */
    bool used;
};

struct pairs {
    struct pair *slots; /* open addressing; capacity is a power of two */
    size_t count, capacity;
    bool failed; /* memory ran out */
};

/* How many times this was called for the pair before: 0, 1, 2, ... */
uint32_t pairs_count(struct pairs *p, uint32_t from, uint32_t to);

/* True for the second that comes with this key; *first is then the first one's value, or mine if the first one's was
 * UINT32_MAX. The key is forgotten. */
bool pairs_match(struct pairs *p, uint32_t from, uint32_t to, uint32_t order, uint32_t mine, uint32_t *first);

void pairs_free(struct pairs *p);

#endif
