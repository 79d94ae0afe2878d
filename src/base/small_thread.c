/* small_thread.c: starts threads with a small stack and blocked signals.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/small_thread.h"

#include <errno.h>
#include <signal.h>

#define STACK (64 * 1024)

int small_thread_start(pthread_t *thread, void *(*body)(void *arg), void *arg)
{
    pthread_attr_t attr;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    int error = pthread_create(thread, &attr, body, arg);
    /* glibc allocates the program's thread-local variables on the stack; they may be larger than STACK. */
    if (error == EINVAL)
        error = pthread_create(thread, NULL, body, arg);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
