/* share.h: large copies between the private memories of two processes. The kernel copies page by page and
 * spends more time on looking up pages than on copying, so that one processor reaches a third of the speed of
 * memcpy. With two processors it is faster: the copy is cut into pieces, and the sender and the target's
 * process (its engine thread or a polling thread) each take the next piece until none is left. If nobody
 * helps, the sender completes the copy alone and does not ask again for a while. The engine thread of a process that
 * copies itself is not woken: it would take the processor from that thread, which helps when it polls again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SHARE_H
#define SOFTIB_SHARE_H

#include "base/dma.h"
#include "fabric/proc.h"
#include <sys/uio.h>

#define SHARE_MIN (64u << 10) /* below this the sender is done before help comes */

/* Copies by the kernel between `mine` and the other process's memory, and announces the copy to the other processes. */
static inline ssize_t share_move(pid_t pid, bool read, const struct iovec *mine, unsigned long nm,
                                 const struct iovec *theirs, unsigned long nt)
{
    atomic_fetch_add_explicit(&proc.arena->copying, 1, memory_order_relaxed);
    dma_begin();
    ssize_t got = read ? process_vm_readv(pid, mine, nm, theirs, nt, 0)
                       : process_vm_writev(pid, mine, nm, theirs, nt, 0);
    dma_end();
    atomic_fetch_sub_explicit(&proc.arena->copying, 1, memory_order_relaxed);
    return got;
}

bool share_is_worthwhile(struct peer *p);
/* Copies n bytes from near (this process) to far (process p), or back if `inward`. False: nothing was copied;
 * the caller copies alone. */
bool share_copy(struct peer *p, bool inward, const struct iovec *far, int nfar, const struct iovec *near,
                int nnear, uint64_t n);

static inline bool share_open(void)
{
    return atomic_load_explicit(&proc.arena->copies_open, memory_order_relaxed) != 0;
}

/* Called by threads that poll: copies one piece of each open shared copy. */
void share_help(void);
/* Called by the engine thread before it sleeps: helps while copies keep coming, but not beyond `due`, when it has
 * other work. Returns true if it should call again instead of sleeping. */
bool share_help_or_sleep(uint64_t due);
/* Stops helping with copies whose sender has died. */
void share_release_dead(void);

#endif
