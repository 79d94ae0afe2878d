/* call.h: converts a user's call to the shape that algorithms use, and to the inputs of the selection.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SELECT_CALL_H
#define FP_COLL_SELECT_CALL_H

#include "coll/select/select.h"
#include "coll/comm_state.h"

struct call {
    const struct coll_args *args;
    const struct coll_args *messages_of; /* the user's call, whose number and tag the messages use */
    struct coll_state *state;
    enum coll_form form;
    struct coll_shape shape;
    struct coll_where where;
    bool on_device;     /* a buffer is in GPU memory */
    bool device_direct; /* schedules run directly on GPU memory (device_collectives.h) */
    bool device_agreed; /* the data of all ranks is in GPU memory; the same at every rank */
    bool device_posted; /* shared_all_on_device() was called for this call */
    int64_t few[17];    /* reduce_scatter: shape.starts of at most 16 ranks */
    int64_t *starts;    /* reduce_scatter: shape.starts of more ranks; allocated */
};

int call_make(struct call *call, const struct coll_args *args, struct coll_state *state, enum coll_form form);
void call_free(struct call *call);

/* Copies the parameters of the choice to call->shape; a segment is converted from bytes to items. */
void call_choose(struct call *call, const struct coll_choice *choice);

/* True if the algorithm splits the data of a broadcast, so that the data must be contiguous. */
bool call_can_split(const struct call *call, const struct coll_algorithm *a);

#endif
