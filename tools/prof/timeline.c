/* timeline.c: records every call with its time, for `fishplate prof --timeline`. FISHPLATE_PROF_TIMELINE is
 * the number of calls that a rank stores; later calls are only counted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "prof.h"
#include "ticks.h"

enum { BLOCK = 4096 };

struct event {
    uint64_t start, spent;
    int call, thread;
    bool moved; /* the members below are valid; `fishplate-lab sim replay` needs them */
    int to, from;
    int64_t out, in; /* bytes; -1: no such buffer */
};

struct block {
    struct block *next;
    int used;
    struct event events[BLOCK];
};

static struct {
    struct block *first, *last;
    uint64_t kept, records_max, dropped;
    uint64_t ticks;  /* time-stamp counter at the start of the time line */
    int64_t wall_ns; /* wall-clock time (ns since 1970) at that moment; the hosts' clocks may differ */
    int threads;
} line;

static __thread int thread __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void timeline_begin(void)
{
    const char *wanted = getenv("FISHPLATE_PROF_TIMELINE");
    struct timespec now;
    if (!wanted || !*wanted)
        return;
    line.records_max = strtoull(wanted, NULL, 10);
    clock_gettime(CLOCK_REALTIME, &now);
    line.ticks = prof_read_ticks();
    line.wall_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    prof.timeline = line.records_max > 0;
}

void prof_event(const struct prof_span *span)
{
    if (thread == 0)
        thread = ++line.threads;
    if (line.kept == line.records_max) {
        line.dropped++;
        return;
    }
    if (!line.last || line.last->used == BLOCK) {
        struct block *b = malloc(sizeof(*b));
        if (!b) {
            line.dropped++;
            return;
        }
        b->next = NULL;
        b->used = 0;
        *(line.last ? &line.last->next : &line.first) = b;
        line.last = b;
    }
    line.kept++;
    line.last->events[line.last->used++] =
        (struct event){.start = span->start, .spent = span->spent, .call = span->call, .thread = thread};
}

/* Called with the lock held, after prof_event of the same call. */
void prof_event_add_transfer(const struct prof_op *op)
{
    struct event *e = line.last && line.last->used ? &line.last->events[line.last->used - 1] : NULL;
    if (!e || e->thread != thread || e->call != op->call || line.dropped)
        return;
    e->moved = true;
    e->to = op->send.given && !op->collective ? op->to : PROF_NOBODY;
    e->from = op->receive.given && !op->collective ? op->from : PROF_NOBODY;
    e->out = op->send.given ? (int64_t)op->send.bytes : -1;
    e->in = op->receive.given ? (int64_t)op->receive.bytes : -1;
}

static void put_event(FILE *out, const struct event *e)
{
    fprintf(out, "event %s %" PRIu64 " %" PRIu64 " %d", prof_functions[e->call].name,
            ticks_to_ns(e->start - line.ticks), ticks_to_ns(e->spent), e->thread);
    if (e->moved)
        fprintf(out, " %d %d %" PRId64 " %" PRId64, e->to, e->from, e->out, e->in);
    putc('\n', out);
}

void prof_timeline_put(FILE *out)
{
    if (!prof.timeline)
        return;
    fprintf(out, "timeline %" PRId64 " %" PRIu64 "\n", line.wall_ns, line.dropped);
    for (const struct block *b = line.first; b; b = b->next)
        for (int i = 0; i < b->used; i++) {
            const struct event *e = &b->events[i];
            if (e->start >= line.ticks)
                put_event(out, e);
        }
}
