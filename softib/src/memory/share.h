/* share.h: large copies between the private memories of two processes. The kernel copies page by page and
 * spends more time on looking up pages than on copying, so that one processor reaches a third of the speed of
 * memcpy. With two processors it is faster: the copy is cut into pieces, and the sender and the target's
 * process (its engine thread or a polling thread) each take the next piece until none is left. If nobody
 * helps, the sender completes the copy alone and does not ask again for a while.
 *
 * SPDX-License-Identifier: Apache-2.0 */
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
