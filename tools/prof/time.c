/* time.c: counts and times calls, and switches recording on and off.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "base/clock.h"
#include "prof.h"

struct prof_record prof = {.on = true};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool many; /* several threads: set before any of them can be here */

/* Calls inside calls: a user's callback may call MPI. Initial-exec: reached without a function call. */
static __thread int depth __attribute__((tls_model("initial-exec")));

void prof_threads(int level)
{
    if (level == MPI_THREAD_MULTIPLE)
        __atomic_store_n(&many, true, __ATOMIC_RELAXED);
}

void prof_lock(void)
{
    if (__atomic_load_n(&many, __ATOMIC_RELAXED))
        pthread_mutex_lock(&lock);
}

void prof_unlock(void)
{
    if (__atomic_load_n(&many, __ATOMIC_RELAXED))
        pthread_mutex_unlock(&lock);
}

struct prof_span prof_begin(int call)
{
    struct prof_span span = {.call = call,
                             .on = PROF_GET(prof.on) && !PROF_GET(prof.shipped),
                             .outermost = depth++ == 0 && PROF_GET(prof.running)};
    if (span.on)
        span.start = clock_ns();
    return span;
}

void prof_end(struct prof_span *span)
{
    depth--;
    if (!span->on)
        return;
    const uint64_t ns = clock_ns() - span->start;
    struct prof_stat *s = &prof.calls[span->call];
    prof_lock();
    s->calls++;
    s->ns += ns;
    if (ns > s->ns_max)
        s->ns_max = ns;
    if (span->outermost)
        prof.mpi_ns += ns;
    prof_unlock();
}

/* MPI-5.0, 15.2.4: 0 switches profiling off, 1 on; what other levels do is ours to say: nothing. */
void prof_control(int level)
{
    if (level != 0 && level != 1)
        return;
    prof_lock();
    const uint64_t now = clock_ns();
    if (level == 0 && prof.on_since) {
        prof.on_ns += now - prof.on_since;
        prof.on_since = 0;
    } else if (level == 1 && !prof.on && prof.running) {
        prof.on_since = now;
    }
    PROF_SET(prof.on, level == 1);
    prof_unlock();
}
