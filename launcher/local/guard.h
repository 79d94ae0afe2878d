/* guard.h: two processes instead of one, so that one always survives to clean up. The front process is the
 * one the user started: it owns the terminal and waits. The worker does everything else, in a session of its
 * own. If either is killed, even by SIGKILL, the other ends all ranks and whatever they started.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_GUARD_H
#define FP_LAUNCHER_GUARD_H

#include <stdbool.h>

#include "core/loop.h"

/* Runs worker in a child and returns its status; a worker that was killed counts as 128 plus the signal. */
int guard_run(char **argv, int (*worker)(void *ctx, int front), void *ctx);

struct guard_events {
    void (*signal)(void *ctx, int sig);      /* sent to mpiexec; TSTP and CONT as well */
    void (*foreground)(void *ctx, bool yes); /* whether we may read from the terminal */
    void (*front_died)(void *ctx);
};

/* In the worker: watches the front process. `front` is the descriptor that guard_run passed. */
void guard_watch_signals(struct loop *l, int front, const struct guard_events *ev, void *ctx);

/* Standard input is a terminal that belongs to another job of the shell. */
bool guard_in_background(void);

#endif
