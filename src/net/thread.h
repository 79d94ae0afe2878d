/* thread.h: the progress thread (FISHPLATE_PROGRESS=thread), which sleeps on the doorbell while the program
 * computes and handles arrivals. While a thread of the program is inside MPI, that thread makes progress and
 * the progress thread is not woken.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_THREAD_H
#define FP_NET_THREAD_H

#include <pthread.h>

#include "net/net.h"

struct net_thread {
    struct net *net;
    pthread_t thread;
    _Atomic int inside; /* threads of the program inside MPI; changed under the lock */
    _Atomic bool stop;
    bool announced; /* the thread is counted in doorbell.sleepers. Under the lock */
    bool working;   /* the thread was woken and makes progress. Under the lock */
};

/* True if the user requested the progress thread. Every call then takes the lock, at any MPI thread level. */
bool net_thread_is_enabled(void);

/* Requires net->lock. If no thread can be created, the job continues without it and a warning is printed. */
void net_thread_start(struct net *net);
/* Ends the thread. The caller does not hold the lock, and no call is in progress. */
void net_thread_stop(struct net *net);

/* Called when a thread of the program has taken the lock, and before it releases the lock. */
void net_thread_pause(struct net_thread *t);
void net_thread_resume(struct net_thread *t);

#endif
