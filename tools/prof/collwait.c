/* collwait.c: records the time of each collective call, to separate waiting for the last rank from moving
 * data: the last rank does not wait, so its time is the cost of the operation. Only calls on all ranks of the
 * world count, where the n-th call of a function is the same operation on every rank. Times are stored for
 * groups of consecutive calls; if there are too many groups, neighbours are merged.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "prof.h"
#include "ticks.h"

enum { GROUPS = 256 };

struct series {
    uint64_t ticks[GROUPS];
    uint64_t calls, width; /* calls so far; calls in a group, a power of two */
};
static struct series *series[CALLS];

static void collwait_fold_series(struct series *s)
{
    for (int i = 0; i < GROUPS / 2; i++)
        s->ticks[i] = s->ticks[2 * i] + s->ticks[2 * i + 1];
    for (int i = GROUPS / 2; i < GROUPS; i++)
        s->ticks[i] = 0;
    s->width *= 2;
}

void prof_collective(const struct prof_span *span, MPI_Comm comm)
{
    if (comm != MPI_COMM_WORLD && !prof_is_world(comm))
        return;
    bool locked = prof_lock();
    struct series **at = &series[span->call];
    if (!*at && (*at = calloc(1, sizeof(**at))))
        (*at)->width = 1;
    if (*at) {
        if ((*at)->calls == GROUPS * (*at)->width)
            collwait_fold_series(*at);
        (*at)->ticks[(*at)->calls++ / (*at)->width] += span->spent;
    }
    prof_unlock(locked);
}

void prof_collectives_put(FILE *out)
{
    for (int c = 0; c < CALLS; c++) {
        const struct series *s = series[c];
        if (!s)
            continue;
        const uint64_t groups = (s->calls + s->width - 1) / s->width;
        fprintf(out, "waits %s %" PRIu64 " %" PRIu64 " %" PRIu64, prof_functions[c].name, s->calls, s->width,
                groups);
        for (uint64_t i = 0; i < groups; i++)
            fprintf(out, " %" PRIu64, ticks_to_ns(s->ticks[i]));
        fputc('\n', out);
    }
}
