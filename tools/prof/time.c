/* time.c: counts and times calls, and switches recording on and off.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "base/clock.h"
#include "prof.h"
#include "ticks.h"

struct prof_record prof = {.on = true};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool many; /* MPI_THREAD_MULTIPLE: set before a second thread can call MPI */

/* Depth of nested calls: a user's callback may call MPI. TLS model initial-exec: accessed without a
 * function call. */
static __thread int depth __attribute__((tls_model("initial-exec")));

static __thread int current __attribute__((tls_model("initial-exec"))) = -1;
static __thread uint64_t current_start __attribute__((tls_model("initial-exec")));

int prof_current_call(uint64_t *start)
{
    *start = current_start;
    return current;
}

static uint64_t first_ns, first_ticks;

__attribute__((constructor)) static void begin_ticks(void)
{
    first_ns = clock_ns();
    first_ticks = prof_read_ticks();
}

uint64_t ticks_to_ns(uint64_t count)
{
    static double ns; /* nanoseconds per tick */
    if (ns == 0)
        ns = (double)(clock_ns() - first_ns) / (double)(prof_read_ticks() - first_ticks);
    return (uint64_t)((double)count * ns + 0.5);
}

void prof_threads(int level)
{
    if (level == MPI_THREAD_MULTIPLE)
        __atomic_store_n(&many, true, __ATOMIC_RELAXED);
}

bool prof_lock(void)
{
    const bool locks = __atomic_load_n(&many, __ATOMIC_RELAXED);
    if (locks)
        pthread_mutex_lock(&lock);
    return locks;
}

void prof_unlock(bool locked)
{
    if (locked)
        pthread_mutex_unlock(&lock);
}

struct prof_span prof_begin_at(int call, const void *caller)
{
    struct prof_span span = {.call = call,
                             .caller = caller,
                             .on = PROF_GET(prof.on) && !PROF_GET(prof.shipped),
                             .outermost = depth++ == 0 && PROF_GET(prof.running)};
    if (span.on)
        span.start = prof_read_ticks();
    if (span.outermost) {
        current = call;
        current_start = span.start;
    }
    return span;
}

void prof_end(struct prof_span *span)
{
    if (--depth == 0)
        current = -1;
    if (!span->on)
        return;
    const uint64_t now = prof_read_ticks(), spent = now > span->start ? now - span->start : 0;
    span->spent = spent;
    struct prof_stat *s = &prof.calls[span->call];
    const bool locked = prof_lock();
    s->calls++;
    s->ticks += spent;
    if (spent > s->ticks_max)
        s->ticks_max = spent;
    if (span->outermost) {
        prof.mpi_ticks += spent;
        prof_site(span);
    }
    if (prof.timeline && span->outermost)
        prof_event(span);
    prof_unlock(locked);
}

/* Handles MPI_Pcontrol: 0 switches recording off, 1 on. MPI-5.0, 15.2.4 leaves other levels to the
 * profiler; they have no effect. */
void prof_set_enabled(int level)
{
    if (level != 0 && level != 1)
        return;
    const bool locked = prof_lock();
    const uint64_t now = clock_ns();
    if (level == 0 && prof.on_since) {
        prof.on_ns += now - prof.on_since;
        prof.on_since = 0;
    } else if (level == 1 && !prof.on && prof.running) {
        prof.on_since = now;
    }
    PROF_SET(prof.on, level == 1);
    prof_unlock(locked);
}
