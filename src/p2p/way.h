/* way.h: which way a large message goes, when two are open: in pieces (two copies, both processors work at
 * once), read from the sender's memory, or written into the receiver's. Which is faster depends on the
 * machine, on the size and on what the sender is doing meanwhile, so the receiver measures both and takes
 * the better. A pure state machine: times in, choices out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_WAY_H
#define FP_P2P_WAY_H

#include <stdint.h>

enum way { WAY_PIECES, WAY_READ, WAY_WRITE, WAYS };

#define WAY_CLASSES 12

/* Per size class: what 64 KiB cost each way, in nanoseconds. */
struct way_state {
    uint32_t cost[WAYS];
    uint32_t samples[WAYS];
    uint32_t picks;
};

struct way_table {
    struct way_state classes[WAY_CLASSES];
};

/* One of the two; the other when that has proved clearly cheaper. */
enum way way_pick(struct way_table *t, uint64_t bytes, enum way one, enum way other);
void way_learn(struct way_table *t, enum way way, uint64_t bytes, uint64_t ns);

#endif
