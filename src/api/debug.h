/* debug.h: FISHPLATE_DEBUG=leaks and match: what the program forgot to free, and messages that are received
 * as other types than they were sent as. Both reports contain the place in the program. (`coll` is in
 * src/coll/coll_debug.c, `rma` in src/rma/conflict_watch.c.)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_DEBUG_H
#define FP_API_DEBUG_H

#include "obj/proc.h"
#include "p2p/note.h"

/* Called at start, before the program has any object or message. */
void debug_watch_open(struct proc *p);

/* Called in MPI_Finalize, while the objects still exist: reports those that were not freed. */
void debug_watch_close(struct proc *p);

/* Record a message that MPI_Mprobe has matched, and its receive. */
void debug_message_probed(const void *message);
void debug_message_received(const void *message);

#endif
