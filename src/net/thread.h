/* thread.h: progress without the program's help (FISHPLATE_PROGRESS=thread): a thread that sleeps on the
 * doorbell while the program computes and handles what arrives. While a thread of the program is inside MPI,
 * that thread makes the progress and the progress thread is not woken.
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
    bool announced; /* the thread counts as a sleeper on the doorbell. Under the lock */
    bool working;   /* the thread was woken and makes progress. Under the lock */
};

/* The user requested the thread. Then every call takes the lock, whatever the level of threads. */
bool net_thread_is_enabled(void);

/* Needs net->lock. When no thread can be had the job goes on without it and prints a warning. */
void net_thread_start(struct net *net);
/* Ends the thread. The caller does not hold the lock, and no call is in progress. */
void net_thread_stop(struct net *net);

/* Called when a thread of the program has taken the lock, and before it releases the lock. */
void net_thread_pause(struct net_thread *t);
void net_thread_resume(struct net_thread *t);

#endif
