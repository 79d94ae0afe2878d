/* stripe.h: divides a large message into stripes, one for each rail, by weights [Liu04 8.2.4]. Pure
 * arithmetic. Even striping uses equal weights.
 *
 * A stripe below `smallest` bytes costs more than it gains: its rail gets no stripe, and the others share its
 * bytes. A message shorter than two smallest stripes is one stripe, on the rail with the largest weight.
 * Stripes but the last end at the nearest multiple of `align`, so that no two rails write to one cache line
 * or page.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_RAILS_STRIPE_H
#define FP_NET_RAILS_STRIPE_H

#include "net/rails/rail.h"

struct stripe_rules {
    uint64_t smallest; /* bytes, at least 1 */
    uint64_t align;    /* bytes, at least 1; `smallest` is a multiple of `align`, or smaller */
};

struct stripe {
    uint64_t offset, bytes;
    uint8_t rail;
};

/* Divides `bytes` among the rails of the set `up`. Each rail of the set `probe` (a part of `up`) gets a
 * stripe of at least the smallest size, if the message is long enough, so that its speed can be measured. The
 * stripes are contiguous. Returns their number: 0 only if `up` is empty. */
unsigned stripe_cut(const struct stripe_rules *rules, const double *weight, uint32_t up, uint32_t probe,
                    uint64_t bytes, struct stripe out[RAILS_MAX]);

#endif
