/* share.h: large copies between the private memories of two processes. The kernel copies page by page and
 * needs more time to look up pages than to copy them, so that one processor reaches a third of the speed
 * of memcpy. Two processors are faster: the copy is divided into pieces, and the sender and a thread of
 * the target's process (its engine thread or a polling thread) copy piece after piece until none is left.
 * If no thread of the target helps, the sender completes the copy alone and requests no help for the next
 * copies. The engine thread of a process is not woken while another thread of the process copies: it would
 * compete for the processor with that thread, which helps at its next poll.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SHARE_H
#define SOFTIB_SHARE_H

#include "base/dma.h"
#include "fabric/proc.h"
#include <sys/uio.h>

#define SHARE_MIN (64u << 10) /* the sender completes shorter copies before help arrives */

/* Copies between `mine` and the other process's memory by the kernel. arena->copying shows other processes
 * that this process copies. */
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
/* Copies n bytes from `near` (this process) to `far` (process p), or in the other direction if `inward`.
 * False: nothing was copied, and the caller copies alone. */
bool share_copy(struct peer *p, bool inward, const struct iovec *far, int nfar, const struct iovec *near,
                int nnear, uint64_t n);

static inline bool share_has_open_copies(void)
{
    return atomic_load_explicit(&proc.arena->copies_open, memory_order_relaxed) != 0;
}

/* Called by polling threads: copies one piece of each open shared copy. */
void share_help(void);
/* Called by the engine thread before it sleeps: helps with copies until `due`, when the thread has other
 * work. Returns true if the thread should call this function again instead of sleeping. */
bool share_help_or_sleep(uint64_t due);
/* Stops helping with copies whose sender has died. */
void share_release_dead(void);

#endif
