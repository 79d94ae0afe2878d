/* small_thread.h: starts threads of the library that mainly wait. They block all signals, which the
 * program's threads handle, and have a small stack.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SMALL_THREAD_H
#define FP_BASE_SMALL_THREAD_H

#include <pthread.h>

/* Returns 0 or an errno. */
int small_thread_start(pthread_t *thread, void *(*body)(void *arg), void *arg);

#endif
