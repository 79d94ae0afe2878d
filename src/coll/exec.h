/* exec.h: runs a schedule over point-to-point messages, as a request that advances inside progress.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_EXEC_H
#define FP_COLL_EXEC_H

#include "coll/state.h"
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
    struct dtype *types[2];     /* held */
    struct dtype **block_types; /* held; allocated */
    int nblock_types;
    void *arrays; /* copies of the user's counts, displacements and types; allocated */
    struct coll_request *spare;
};

/* Numbers the call, which gives its messages their tag. */
void coll_request_number(struct coll_request *r, const struct coll_args *args, enum coll_form form);

/* Takes the plan's reference. */
int coll_request_new(struct coll_state *state, const struct coll_args *args, const struct coll_shape *shape,
                     struct plan *plan, bool splits, struct coll_request **out);
void coll_request_begin(struct coll_request *r);
void coll_request_free(struct coll_request *r);
void coll_requests_free(struct coll_state *state);
/* Retains what the user may free while it runs; from now on request_free() lets go of it. */
int coll_request_hold(struct coll_request *r, const struct coll_args *args);

void coll_state_close(struct comm *c);

extern const struct request_ops coll_request_ops, coll_persistent_ops;

#endif
