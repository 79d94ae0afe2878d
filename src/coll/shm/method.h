/* method.h: chooses how long data of a shared-memory collective is copied: through slots (two copies, both
 * processors work in parallel), read by the receiver from the sender's memory (one copy, the sender waits),
 * or split, where the sender writes a part while the receiver reads the rest (one copy, both processors
 * work). The fastest method depends on the machine, the operation, the size, and on whether each rank has its
 * own processor, so it is measured with tune/tune.h.
 *
 * Rank 0 of the communicator has a tuner for each operation and size class, and publishes the chosen method
 * and the turn of the tuner in the shared block. All ranks read both when a call begins, and publish the time
 * of the call with that turn. A rank may see a decision one call early or late, so the flag of each
 * contribution states its method.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHM_METHOD_H
#define FP_COLL_SHM_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/sched/algorithm.h"
#include "tune/tune.h"

enum shared_method { METHOD_SLOTS, METHOD_READ, METHOD_SPLIT, SHARED_METHODS };

#define SHARED_SHORT   8192 /* blocks up to this size in bytes always use slots */
#define SHARED_CLASSES 12   /* number of size classes, by factors of two from SHARED_SHORT */

static inline unsigned shared_class(size_t bytes)
{
    unsigned c = 0;
    for (bytes /= SHARED_SHORT; bytes > 1 && c < SHARED_CLASSES - 1; bytes /= 2)
        c++;
    return c;
}

struct shared;

/* The tuner of one operation and size class, at rank 0. */
struct shared_tuner {
    struct tune tune;
    struct tune_ticket ticket; /* ticket of the calls that use the published decision */
};

/* State of one operation and size class, at every rank. */
struct shared_key {
    uint32_t calls;             /* calls so far; the same at all ranks */
    uint32_t turn;              /* turn of the tuner (tune.h) in the last call */
    uint32_t since;             /* calls in this turn */
    uint32_t summed;            /* number of calls whose times are summed in `ns` */
    uint64_t ns;                /* sum of the times of the calls of a sample */
    struct shared_tuner *tuner; /* only at rank 0; NULL until used */
};

/* Decision that one call uses. */
struct shared_decision {
    enum shared_method method;
    uint32_t turn;
    bool measured; /* true for some of the calls only, because reading the clock takes time */
};

/* Called when a call with blocks of `bytes` bytes begins; returns the method to use. may_split:
 * METHOD_SPLIT is possible. period: calls of one sample; more than 1 if ranks share processors, since the
 * time of a single call then depends on the scheduler and only a mean is useful. */
struct shared_decision shared_method_begin(struct shared *b, enum coll_kind kind, size_t bytes,
                                           bool may_split, uint32_t period);
/* Reports the time of the call at this rank. */
void shared_method_report(struct shared *b, enum coll_kind kind, size_t bytes,
                          const struct shared_decision *d, uint64_t ns, uint32_t period);
void shared_method_close(struct shared *b);

#endif
