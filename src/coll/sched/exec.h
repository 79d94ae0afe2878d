/* exec.h: runs a schedule over point-to-point messages, as a request that advances inside progress.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SCHED_EXEC_H
#define FP_COLL_SCHED_EXEC_H

#include "coll/executor.h"
#include "net/net.h"

struct coll_request {
    struct request base;  /* first */
    struct net_hook hook; /* linked while steps can be executed */
    struct coll_state *state;
    struct plan *plan;
    struct binding binding;
    struct op *op;
    struct comm *comm;
    uint32_t next;    /* next step to execute */
    uint32_t pending; /* messages in flight */
    int tag;
    uint64_t number; /* the call's number on its communicator, shown by `fishplate why`; 0: not numbered */
    int error;
    bool running; /* inside exec_advance(), which handles messages that complete meanwhile */
    bool scratch; /* `temp` is coll_state.scratch */
    bool owns;    /* retains datatypes and operator (nonblocking and persistent calls) */
    void *temp;   /* memory of BUF_TEMP */
    /* an address in memory of the GPU on which reductions run and `temp` is allocated; NULL: host memory */
    const void *near;
    bool temp_on_device;        /* `temp` is from gpu_get_temporary */
    struct dtype *types[2];     /* datatypes of both sides, retained */
    struct dtype **block_types; /* datatypes of the blocks of w variants, retained; allocated array */
    int nblock_types;
    void *arrays;               /* copies of the user's counts, displacements and types; allocated */
    struct coll_request *spare; /* next in coll_state.spare */
};

/* The executor of all calls for which an algorithm generates a schedule. */
extern const struct coll_executor schedule_executor;

extern const struct request_ops coll_request_ops, coll_persistent_ops;

#endif
