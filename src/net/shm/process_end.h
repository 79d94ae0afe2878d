/* process_end.h: reports the end of processes of other jobs on this machine. No launcher reports deaths to a
 * job that another mpiexec started; the kernel does, by a process descriptor (pidfd) that becomes readable. A
 * thread waits for these descriptors, rings the doorbell and blocks until the ended processes have been
 * popped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_SHM_PROCESS_END_H
#define FP_NET_SHM_PROCESS_END_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/net.h"

struct process_end;

struct process_ends {
    struct net *net;
    struct list list; /* process_end.link */
    pthread_t thread;
    int set;           /* epoll set of the processes */
    int turn;          /* eventfd on which the thread blocks */
    _Atomic bool news; /* ended processes may be pending; cleared by process_ends_pop */
    _Atomic bool stop;
    bool is_open;
};

/* A watched process. The caller sets the first two members. */
struct process_end {
    uint32_t number; /* number of the guest */
    void *owner;     /* private to the caller */
    struct list link;
    int pidfd;
};

/* Watches a process. Returns 0, ESRCH (the process has ended) or another errno (its end will not be
 * reported). The first call starts the thread. */
int process_ends_add(struct process_ends *e, struct net *net, int32_t pid, struct process_end *p);
void process_ends_remove(struct process_ends *e, struct process_end *p);

/* Removes and returns a watched process that has ended; NULL: none. Must be called until it returns NULL, so
 * that the thread continues. */
struct process_end *process_ends_pop(struct process_ends *e);

/* Called if the caller has detected an end itself. */
static inline void process_ends_set_pending(struct process_ends *e)
{
    atomic_store_explicit(&e->news, true, memory_order_relaxed);
}

static inline bool process_ends_is_pending(const struct process_ends *e)
{
    return atomic_load_explicit(&e->news, memory_order_acquire);
}

/* Stops the thread; all processes must have been removed. */
void process_ends_close(struct process_ends *e);

#endif
