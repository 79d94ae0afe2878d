/* executor.h: an executor is one mechanism for collective calls: schedules over messages, the shared memory
 * of a node, inter-node barriers, or multicast. The selection chooses an algorithm; the first executor of the
 * table that fits the choice runs the call (blocking, nonblocking or persistent).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_EXECUTOR_H
#define FP_COLL_EXECUTOR_H

#include "coll/select/call.h"

struct coll_executor {
    const char *name;
    /* True if the executor can run the call with this choice; must be the same at every rank. */
    bool (*fits)(const struct call *call, const struct coll_choice *choice);
    /* Runs a blocking call (request NULL); else creates the request, and starts it unless it is
     * persistent. Returns false, at all ranks or none, if a resource of the executor is not available. */
    bool (*run)(struct call *call, const struct coll_choice *choice, struct request **request, int *rc);
    /* True if the executor runs directly on GPU memory (call->device_direct). Calls of other executors run
     * on copies in host memory (device_collectives.h). */
    bool takes_device_memory;
    /* Optional. Returns true, at all ranks or none, if the data of all ranks is in GPU memory, so that the
     * executor declines the call. */
    bool (*declines_device)(struct call *call);
    /* Optional. Called when all ranks may make another choice from now on. */
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
