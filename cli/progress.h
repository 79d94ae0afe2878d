/* progress.h: a line on standard error every few seconds for a command that is silent for long, with the time left.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_CLI_PROGRESS_H
#define FP_CLI_PROGRESS_H

struct progress {
    const char *program;
    double started, reported; /* seconds of a monotonic clock */
};

double progress_clock(void);

void progress_start(struct progress *p, const char *program);

/* Called after other output of the command: restarts the 5 seconds of silence. */
void progress_reset(struct progress *p);

/* Prints "PROGRAM: 12 s: TEXT; about 30 s remain" if nothing was printed for 5 seconds. `done` of `all` units of work are
 * complete; the time left is estimated from their ratio, and omitted while it is unknown (`all` 0, or too little is done). */
void progress_report(struct progress *p, double done, double all, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
