/* call.h: from a user's call to the shape that algorithms see, and to the numbers that choose one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SELECT_CALL_H
#define FP_COLL_SELECT_CALL_H

#include "coll/select/select.h"
#include "coll/comm_state.h"

struct call {
    const struct coll_args *args;
    const struct coll_args
        *messages_of; /* call that numbers and tags the messages: `args`, or the user's call
                                          * if `args` is a call of the library within it */
    struct coll_state *state;
    enum coll_form form;
    struct coll_shape shape;
    struct coll_where where;
    bool on_device;     /* a buffer is in GPU memory */
    bool device_direct; /* schedules run on that GPU memory without host copies (device_collectives.h) */
    bool device_agreed; /* the data of all ranks is in GPU memory; the same at every rank */
    bool device_posted; /* shared_all_on_device() was called for this call */
    int64_t few[17];    /* reduce_scatter: shape.starts of at most 16 ranks */
    int64_t *starts;    /* reduce_scatter: shape.starts of more ranks; allocated */
};

int call_make(struct call *call, const struct coll_args *args, struct coll_state *state, enum coll_form form);
void call_free(struct call *call);

/* Copies the choice's parameters to the shape, in items. */
void call_choose(struct call *call, const struct coll_choice *choice);

/* True if this choice addresses parts of a broadcast's data. */
bool call_can_split(const struct call *call, const struct coll_algorithm *a);

#endif
