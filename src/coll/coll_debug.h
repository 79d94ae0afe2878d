/* coll_debug.h: FISHPLATE_DEBUG=coll: in every collective each rank compares the operation and its arguments with
 * the operation and arguments of its neighbour.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_COLL_DEBUG_H
#define FP_COLL_COLL_DEBUG_H

#include "coll/select/call.h"

extern bool debug_coll;

/* Reads FISHPLATE_DEBUG. */
void debug_open(void);

/* Called for an unexpected message that contains a record, while this rank waits in another call: warns
 * once if ranks call in different orders. */
void debug_check_record(const struct comm *c, const void *record, uint64_t length);

/* Sends this call's record to the next rank and compares it with the record of the previous rank; ends the
 * job with both records if they differ. wait: return only after the comparison. */
int debug_check(const struct coll_args *args, const struct call *call, bool wait);

#endif
