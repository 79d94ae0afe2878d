/*
 * Large copies between two processes' private memory. The kernel moves them page by page and spends more time
 * on finding the pages than on copying, so one processor reaches a third of the speed of memcpy. Both sides
 * have a processor: the copy is cut into pieces, and the sender and the target's process, its engine thread
 * or a thread that polls, each take the next one until none is left. Where nobody comes to help the sender
 * has soon done it alone, and does not ask again for a while.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SOFTIB_SHARE_H
#define SOFTIB_SHARE_H

#include "fabric/proc.h"
#include <sys/uio.h>

#define SHARE_MIN (64u << 10) /* below this the sender is done before help comes */

bool share_wanted(struct peer *p);
/* n bytes from near (here) to far (in p), or the other way when `inward`. False: not done, do it alone. */
bool share_copy(struct peer *p, bool inward, const struct iovec *far, int nfar, const struct iovec *near,
                int nnear, uint64_t n);

static inline bool share_open(void)
{
    return atomic_load_explicit(&proc.arena->copies_open, memory_order_relaxed) != 0;
}

/* For pollers: takes a piece of each copy that a sender has opened. */
void share_help(void);
/* For the engine thread, before it sleeps: helps as long as copies keep coming, but not beyond `due`, when it
 * has other work. True: come again, do not sleep. */
bool share_attend(uint64_t due);
/* No thread of ours helps any more with copies whose sender died. */
void share_bury(void);

#endif
