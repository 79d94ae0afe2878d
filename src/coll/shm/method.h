/* method.h: how long data of a shared-memory collective moves from one rank to another: through slots (two
 * copies, both processors work at once), read by the receiver from the sender's memory (one copy, and the
 * sender waits), or read while the sender writes a part of it (one copy, both processors work). The fastest
 * depends on the machine, the operation, the size, and on whether the other rank has a processor: a client of
 * tune/tune.h.
 *
 * Rank 0 of the communicator leads. It keeps a tuner for each operation and class of sizes, and publishes the
 * method with the turn of the tuner in the shared block; all ranks read both when a call begins, and publish
 * what the call cost them with that turn. A rank may see a decision one call early or late: the flag of each
 * contribution carries its method.
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

#define SHARED_SHORT   8192 /* bytes: blocks up to this size always go through slots */
#define SHARED_CLASSES 12   /* of sizes, by factors of two from SHARED_SHORT */

static inline unsigned shared_class(size_t bytes)
{
    unsigned c = 0;
    for (bytes /= SHARED_SHORT; bytes > 1 && c < SHARED_CLASSES - 1; bytes /= 2)
        c++;
    return c;
}

struct shared;

/* The tuner of one operation and class of sizes, at rank 0. */
struct shared_tuner {
    struct tune tune;
    struct tune_ticket ticket; /* of the calls that use the published decision */
};

/* One operation and class of sizes, at every rank. */
struct shared_key {
    uint32_t calls;             /* the same at all ranks */
    uint32_t turn;              /* turn of the tuner (tune.h) in the last call */
    uint32_t since;             /* calls in this turn */
    uint32_t summed;            /* calls whose time `ns` holds */
    uint64_t ns;                /* sum of the times of the calls of a sample */
    struct shared_tuner *tuner; /* at rank 0; NULL until used */
};

/* What one call uses. */
struct shared_decision {
    enum shared_method method;
    uint32_t turn;
    bool measured; /* true for some of the calls only, because reading the clock takes time */
};

/* A call of `bytes` a block begins. may_split: the method is possible. period: calls of one sample, 1, or
 * more where ranks take turns on processors: there a call takes as long as what others do meanwhile, and one
 * that finds its data takes no time, so only the mean of several is a sample. */
struct shared_decision shared_method_begin(struct shared *b, enum coll_kind kind, size_t bytes,
                                           bool may_split, uint32_t period);
/* Reports the cost of the call at this rank. */
void shared_method_report(struct shared *b, enum coll_kind kind, size_t bytes,
                          const struct shared_decision *d, uint64_t ns, uint32_t period);
/* Rank 0: discards the measurements because the slots have changed. */
void shared_method_restart(struct shared *b);
void shared_method_close(struct shared *b);

#endif
