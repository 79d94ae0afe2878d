/* alloc.h: selects the rails of a message if adapters cannot send and receive at full speed at the same time
 * [Coll01].
 *
 *   static         Each node sends over half of its rails and receives over the others during the whole run.
 *                  No two nodes send over the same half, so between any two nodes there is a rail in each
 *                  direction.
 *   basic          One rail, in turns, whether it is busy or not.
 *   local-dynamic  Rails that neither send nor receive here; if there is none, wait (algorithm 1).
 *   dynamic        Rails that are reserved at both ends (reserve.h is the adapter's half, request.h the
 *                  sender's; algorithms 2 to 4).
 *   hybrid         Up to `shortest` bytes one rail in turns without a reservation, preferably a free one;
 *                  longer messages as dynamic (algorithm 5).
 *
 * The striping ratio is the fraction of the available rails that a message uses: 0 one rail, 1 all rails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_MECHANISMS_RAILS_ALLOC_H
#define FP_LAB_MECHANISMS_RAILS_ALLOC_H

#include "net/rails/rail.h"

enum alloc_policy { ALLOC_BASIC, ALLOC_LOCAL, ALLOC_DYNAMIC, ALLOC_HYBRID, ALLOC_STATIC };

struct alloc {
    enum alloc_policy policy;
    uint8_t rails;
    uint8_t last;      /* last rail that was selected; RAIL_NONE before the first */
    double ratio;      /* striping ratio, 0 to 1 */
    uint64_t shortest; /* hybrid: longer messages reserve */
};

enum alloc_verdict {
    ALLOC_SEND,   /* send over the rails in *set */
    ALLOC_WAIT,   /* wait until a rail is free, then call alloc_message again */
    ALLOC_RESERVE /* reserve the rails in *set at both ends, then call alloc_select with the granted rails */
};

void alloc_open(struct alloc *a, enum alloc_policy policy, unsigned rails, double ratio, uint64_t shortest);

/* Decides about a message of `bytes` bytes; `free`: rails that neither send nor receive here and are not
 * reserved. */
enum alloc_verdict alloc_message(struct alloc *a, uint64_t bytes, uint32_t free, uint32_t *set);

/* static: rails over which a node sends; 0 if there are more nodes than alloc_static_nodes (n choose n / 2).
 * A message uses a rail over which its sender sends and its receiver does not. */
uint32_t alloc_static_nodes(unsigned rails);
uint32_t alloc_static_rails(unsigned rails, uint32_t node);

/* Select_Tx_NICs of [Coll01]: as many rails of the set as the striping ratio permits, beginning after the
 * rail that was selected last. */
uint32_t alloc_select(struct alloc *a, uint32_t available);

#endif
