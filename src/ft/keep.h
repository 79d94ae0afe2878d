/* keep.h: how long a process retains a decided agreement for members that have not received the decision.
 * With its words, each process contributes the number of the first agreement on the communicator that it has
 * not decided; the decision includes the minimum of these numbers. Every process that the decision does not
 * name dead has contributed. So all living processes have decided all agreements below that number, however
 * many agreements are in progress at once. A process retains no more agreements than the program has in
 * progress.
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
