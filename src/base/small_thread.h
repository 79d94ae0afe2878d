/* small_thread.h: starts the library's threads that only wait: they block all signals, which belong to the program's threads, and have a
 * small stack.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SMALL_THREAD_H
#define FP_BASE_SMALL_THREAD_H

#include <pthread.h>

/* Returns 0 or an errno. */
int small_thread_start(pthread_t *thread, void *(*body)(void *arg), void *arg);

#endif
