/* prof_waits.c: separates waiting from moving data in collective calls. In a call that all ranks made, the
 * rank with the least time came last: its time is the cost of the operation, and the excess of each other
 * rank is waiting for it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "prof.h"

enum { GROUPS_MAX = 1 << 16 };

/* Parses "CALLS WIDTH GROUPS NS NS ...". */
bool prof_waits_read(struct prof_series *s, const char *rest)
{
    int used = 0;
    uint64_t ns;
    struct prof_series made = {0};
    if (s->seconds || sscanf(rest, "%" SCNu64 " %" SCNu64 " %" SCNu64 "%n", &made.calls, &made.width,
                             &made.groups, &used) != 3)
        return false;
    if (made.groups < 1 || made.groups > GROUPS_MAX || made.width < 1)
        return false;
    made.seconds = calloc(made.groups, sizeof(*made.seconds));
    for (uint64_t i = 0; made.seconds && i < made.groups; i++) {
        int step = 0;
        rest += used;
        if (sscanf(rest, "%" SCNu64 "%n", &ns, &step) != 1) {
            free(made.seconds);
            return false;
        }
        made.seconds[i] = (double)ns * 1e-9;
        used = step;
    }
    *s = made;
    return made.seconds != NULL;
}

/* Merges neighbouring groups until each has `width` calls. */
static void series_merge_groups(struct prof_series *s, uint64_t width)
{
    while (s->width < width) {
        const uint64_t groups = (s->groups + 1) / 2;
        for (uint64_t i = 0; i < groups; i++)
            s->seconds[i] = s->seconds[2 * i] + (2 * i + 1 < s->groups ? s->seconds[2 * i + 1] : 0);
        s->groups = groups;
        s->width *= 2;
    }
}

/* Merges groups until the series of all ranks have the same width. Returns the number of groups that all
 * ranks have; 0 if some rank has no series. */
static uint64_t waits_align_series(const struct prof_job *job, struct prof_function *f)
{
    uint64_t width = 1, groups = UINT64_MAX;
    for (int r = 0; r < job->size; r++)
        if (job->ranks[r].has_record && f->waits[r].width > width)
            width = f->waits[r].width;
    for (int r = 0; r < job->size; r++) {
        if (!job->ranks[r].has_record)
            continue;
        if (!f->waits[r].seconds)
            return 0;
        series_merge_groups(&f->waits[r], width);
        groups = f->waits[r].groups < groups ? f->waits[r].groups : groups;
    }
    return groups;
}

/* Handles one group of calls: adds each rank's waiting to `waited`, and attributes it to the rank that came
 * last. */
static void attribute_group_waits(const struct prof_job *job, struct prof_function *f, uint64_t group,
                                  double *blame)
{
    int last = -1;
    double waited = 0;
    for (int r = 0; r < job->size; r++)
        if (job->ranks[r].has_record &&
            (last < 0 || f->waits[r].seconds[group] < f->waits[last].seconds[group]))
            last = r;
    const double least = f->waits[last].seconds[group];
    for (int r = 0; r < job->size; r++)
        if (job->ranks[r].has_record) {
            const double more = f->waits[r].seconds[group] - least;
            f->waits[r].waited += more;
            waited += more;
        }
    f->moving += least;
    blame[last] += waited;
    f->waiting += waited;
}

void prof_waits_sum_up(struct prof_job *job)
{
    double *blame = calloc((size_t)job->size + 1, sizeof(*blame)),
           *of_all = calloc((size_t)job->size + 1, sizeof(*of_all));
    for (size_t i = 0; blame && of_all && i < job->nfunctions && job->nrecords > 1; i++) {
        struct prof_function *f = &job->functions[i];
        const uint64_t groups = f->waits ? waits_align_series(job, f) : 0;
        if (groups == 0)
            continue;
        memset(blame, 0, (size_t)job->size * sizeof(*blame));
        for (uint64_t g = 0; g < groups; g++)
            attribute_group_waits(job, f, g, blame);
        f->split = true;
        f->late = 0;
        for (int r = 0; r < job->size; r++) {
            of_all[r] += blame[r];
            if (blame[r] > blame[f->late])
                f->late = r;
        }
        f->late_share = f->waiting > 0 ? blame[f->late] / f->waiting : 0;
        f->waiting /= job->nrecords; /* mean over all ranks */
        job->waiting += f->waiting;
        job->moving += f->moving;
    }
    for (int r = 0; of_all && r < job->size; r++)
        if (of_all[r] > of_all[job->late])
            job->late = r;
    job->late_share = job->waiting > 0 ? of_all[job->late] / (job->waiting * job->nrecords) : 0;
    free(blame);
    free(of_all);
}
