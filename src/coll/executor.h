/* executor.h: an executor is one mechanism that carries out collective calls: schedules over messages, the
 * shared memory of a node, flags between nodes for barriers, multicast. The selection chooses an algorithm;
 * the first executor of the table that fits the choice runs the call, in any form: blocking, nonblocking,
 * persistent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_EXECUTOR_H
#define FP_COLL_EXECUTOR_H

#include "coll/select/call.h"

struct coll_executor {
    const char *name;
    /* Whether the executor can run the call by this choice; must be the same at every rank. */
    bool (*fits)(const struct call *call, const struct coll_choice *choice);
    /* Runs a blocking call (request NULL); else makes the request, and starts it unless it is persistent.
     * False: declined, at every rank or none, because what it needs cannot be had. */
    bool (*run)(struct call *call, const struct coll_choice *choice, struct request **request, int *rc);
    /* Runs calls whose data is in GPU memory (call->device_direct). Others run on copies in host memory:
     * device_collectives.h. */
    bool takes_device_memory;
    /* NULL: never. True, at every rank or none: the data of all ranks is in GPU memory, so the call is
     * declined. */
    bool (*declines_device)(struct call *call);
    /* NULL: nothing to do. Another choice may be made from now on, at all ranks. */
    void (*reselect)(struct coll_state *state);
    void (*close)(struct coll_state *state);
};

/* executors.c: the table, in the order in which executors are tried. */
extern const struct coll_executor *const coll_executors[];

/* Runs the call by this choice if an executor fits and accepts it. */
bool executor_try(struct call *call, const struct coll_choice *choice, struct request **request, int *rc);
/* Runs the call like executor_try(). If no executor accepts, continues with the next choices of the rules,
 * the last of which always fits. */
int executor_run(struct call *call, const struct coll_choice *choice, struct request **request);

/* Called when all ranks may make another choice: executors drop the state that depends on the last choice. */
void executors_reselect(struct coll_state *state);

#endif
