/* exec.h: runs a schedule over point-to-point messages, as a request that advances inside progress.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SCHED_EXEC_H
#define FP_COLL_SCHED_EXEC_H

#include "coll/executor.h"
#include "net/net.h"

struct coll_request {
    struct request base;  /* first */
    struct net_hook hook; /* linked while it is ready to go on */
    struct coll_state *state;
    struct plan *plan;
    struct binding binding;
    struct op *op;
    struct comm *comm;
    uint32_t next;    /* step */
    uint32_t pending; /* messages under way */
    int tag;
    uint64_t number; /* of the call on its communicator, for the doctor; 0: not numbered */
    int error;
    bool running; /* inside advance(): completions need not link the hook */
    bool scratch; /* temp is the state's */
    bool owns;    /* nonblocking and persistent: references to types and operator are held */
    void *temp;
    const void
        *near; /* memory on the GPU that reduces, and where temporary data goes; NULL: in host memory */
    bool temp_on_device;        /* by gpu_get_temporary */
    struct dtype *types[2];     /* held */
    struct dtype **block_types; /* held; allocated */
    int nblock_types;
    void *arrays; /* copies of the user's counts, displacements and types; allocated */
    struct coll_request *spare;
};

/* A schedule over point-to-point messages: any call for which an algorithm generates one. */
extern const struct coll_executor schedule_executor;

extern const struct request_ops coll_request_ops, coll_persistent_ops;

#endif
