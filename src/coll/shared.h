/* shared.h: collectives of ranks on one node through memory they share: small barrier, bcast, reduce,
 * allreduce. Not schedules but an executor of its own, which blocks; chosen by the same selection under the
 * name "shared".
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHARED_H
#define FP_COLL_SHARED_H

#include "coll/call.h"

/* Runs the call and returns true, or returns false when it has to be left to a schedule (everywhere or
 * nowhere). */
bool shared_run(const struct coll_args *args, struct coll_state *state, const struct call *call, int *rc);

void shared_close(struct coll_state *state);

#endif
