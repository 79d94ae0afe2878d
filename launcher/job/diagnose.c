/* diagnose.c: runs `fishplate why` as a child process (run_tool.c) and continues when the child ends or the time limit
 * is over.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "job/diagnose.h"

#include <stdio.h>

#include "local/run_tool.h"

#define PATIENCE_MS 15000

struct tool_run {
    struct job *job;
    struct watch end; /* readable when the child has ended */
    struct timer limit;
    void (*done)(struct job *j);
};

static void why_finish(struct tool_run *a)
{
    void (*done)(struct job *) = a->done;
    a->done = NULL;
    loop_cancel_timer(&a->job->loop, &a->limit);
    if (done)
        done(a->job);
}

/* `a` is not freed: the event loop may still refer to its watch, and the tool runs seldom. */
static void why_on_end(void *ctx, uint32_t events)
{
    struct tool_run *a = ctx;
    (void)events;
    loop_close(&a->job->loop, &a->end);
    why_finish(a);
}

static void why_on_limit(void *ctx)
{
    why_finish(ctx);
}

static bool why_start(struct tool_run *a, char *const argv[])
{
    return tool_start(&a->job->loop, &a->end, TOOL_TO_STDERR, argv);
}

static struct tool_run *diagnosis_new(struct job *j, void (*done)(struct job *))
{
    struct tool_run *a = xcalloc(1, sizeof(*a));
    *a = (struct tool_run){.job = j, .done = done};
    a->end = (struct watch){.fd = -1, .fn = why_on_end, .ctx = a};
    a->limit = (struct timer){.fn = why_on_limit, .ctx = a};
    return a;
}

void why_print(struct job *j, void (*done)(struct job *))
{
    struct tool_run *a = diagnosis_new(j, done);
    if (why_start(a, (char *[]){"fishplate", "why", "--if-any", (char *)j->id, NULL}))
        loop_set_timer(&j->loop, &a->limit, PATIENCE_MS);
    else
        why_finish(a);
}

void why_watch_for_hang(struct job *j, long seconds)
{
    char text[32];
    snprintf(text, sizeof(text), "%ld", seconds);
    if (!why_start(diagnosis_new(j, NULL),
                   (char *[]){"fishplate", "why", "--hang-after", text, (char *)j->id, NULL}))
        message_print(
            "-hang-after needs the program fishplate in the directory of mpiexec, but it is not there.");
}
