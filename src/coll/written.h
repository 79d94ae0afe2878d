/* written.h: the barrier by RDMA writes, for communicators whose ranks are all on different nodes. An executor of its own, as
 * the shared block is within a node.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_WRITTEN_H
#define FP_COLL_WRITTEN_H

#include "coll/call.h"

/* Runs the barrier and returns true; false when some rank cannot do it this way, and then it is false at all of them. */
bool written_run(const struct coll_args *args, struct coll_state *state, const struct coll_choice *choice,
                 int *rc);
void written_close(struct coll_state *state);

#endif
