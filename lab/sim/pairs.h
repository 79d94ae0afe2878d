/* pairs.h: a table keyed by two ranks. It counts the messages from one rank to the other, and matches each
 * message with its receive. Only pairs with traffic use memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_PAIRS_H
#define FP_SIM_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair {
    uint32_t from, to, order;
    uint32_t value; /* pairs_count: number of calls; pairs_match: value of the first call */
    bool used;
};

struct pairs {
    struct pair *slots; /* open addressing; capacity is a power of two */
    size_t count, capacity;
    bool failed; /* memory ran out */
};

/* Number of earlier calls for this pair: 0, 1, 2, ... */
uint32_t pairs_count(struct pairs *p, uint32_t from, uint32_t to);

/* True for the second call with this key; *first is then the value of the first call, or `mine` if that was
 * UINT32_MAX. The key is removed. */
bool pairs_match(struct pairs *p, uint32_t from, uint32_t to, uint32_t order, uint32_t mine, uint32_t *first);

void pairs_free(struct pairs *p);

#endif
