/* debug.h: FISHPLATE_DEBUG=coll: in every collective each rank compares the operation and its arguments with
 * those of its neighbour.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_DEBUG_H
#define FP_COLL_DEBUG_H

#include "coll/select/call.h"

extern bool debug_coll;

/* Reads FISHPLATE_DEBUG. */
void debug_open(void);

/* A message with this record waits for its receive at a rank that waits for another call: warns once if ranks
 * call in different orders. */
void debug_check_record(const struct comm *c, const void *record, uint64_t length);

/* Sends this call's record to the next rank and compares the previous one's; ends the job with both when they
 * differ. `wait`: not before that is known. */
int debug_check(const struct coll_args *args, const struct call *call, bool wait);

#endif
