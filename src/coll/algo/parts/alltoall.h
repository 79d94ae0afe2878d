/* alltoall.h: input buffer of an alltoall. In place, incoming blocks would overwrite blocks that are still to
 * be sent, so the input is copied first.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_ALGO_PARTS_ALLTOALL_H
#define FP_COLL_ALGO_PARTS_ALLTOALL_H

#include "coll/algo/parts/phases.h"

static inline struct loc alltoall_input(const struct coll_shape *shape, struct sched *s)
{
    if (!shape->in_place)
        return loc_make(BUF_SEND, 0);
    struct loc aside = sched_temp(s, shape->size);
    if (shape->adjacent) {
        sched_copy(s, loc_make(BUF_RECV, 0), aside, shape->size);
        return aside;
    }
    for (int r = 0; r < shape->size; r++)
        if (r != shape->rank)
            sched_copy(s, loc_make(BUF_RECV, r), loc_add(aside, r), 1);
    return aside;
}

#endif
