/* keep.h: how long a decided agreement is kept for members that have not received the decision. With its words, each process contributes the number of
 * the first agreement on the communicator that it has not decided; the least of these numbers comes with the decision. Every
 * process that is not named dead in the decision has contributed, so all who live have decided what is below that number,
 * however many agreements are under way at once. What is kept is bounded by what the program has under way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_FT_KEEP_H
#define FP_FT_KEEP_H

#include "ft/agree.h"

/* The last word of a contribution. Words are combined by maximum; the complement makes it a minimum. */
static inline uint64_t keep_encode_first_open(uint32_t first_open)
{
    return ~(uint64_t)first_open;
}

/* The first agreement that some process may still need; valid once decided. */
static inline uint32_t keep_decode_first_open(const struct agree *a)
{
    return (uint32_t)~agree_get_result(a)[a->nwords - 1];
}

#endif
