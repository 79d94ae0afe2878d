/* progress.c: prints progress lines and estimates the time left (progress.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static const double silent_seconds = 5;
/* Share of the work that must be done before the time left is estimated. */
static const double known_part = 0.03;

double progress_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_start(struct progress *p, const char *program)
{
    p->program = program;
    p->started = p->reported = progress_clock();
}

void progress_reset(struct progress *p)
{
    p->reported = progress_clock();
}

void progress_report(struct progress *p, double done, double all, const char *format, ...)
{
    const double now = progress_clock(), took = now - p->started;
    va_list args;
    if (now - p->reported < silent_seconds)
        return;
    p->reported = now;
    fprintf(stderr, "%s: %.0f s: ", p->program, took);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    if (done > known_part * all && done < all)
        fprintf(stderr, "; about %.0f s remain", took / done * (all - done));
    fputc('\n', stderr);
}
