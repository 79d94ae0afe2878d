/* guard.h: splits mpiexec into processes of which one always survives to clean up. The front process is the
 * one that the user started: it owns the terminal and waits. The worker does everything else, in a session of
 * its own. If either is killed, even by SIGKILL, the ranks and all their descendants are ended.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_GUARD_H
#define FP_LAUNCHER_GUARD_H

#include <stdbool.h>

#include "core/loop.h"

/* Runs worker in a child and returns its status; a worker that was killed counts as 128 plus the signal. */
int guard_run(char **argv, int (*worker)(void *ctx, int front), void *ctx);

struct guard_events {
    void (*signal)(void *ctx, int sig); /* a signal was sent to mpiexec, SIGTSTP and SIGCONT included */
    /* mpiexec moved to the foreground (may read from the terminal) or the background */
    void (*foreground)(void *ctx, bool yes);
    void (*front_died)(void *ctx);
};

/* In the worker: watches the front process. `front` is the descriptor that guard_run passed. */
void guard_watch_signals(struct loop *l, int front, const struct guard_events *ev, void *ctx);

/* True if standard input is a terminal and mpiexec is in the background. */
bool guard_in_background(void);

#endif
