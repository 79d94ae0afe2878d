/* load.c: /proc/stat counts the time of all programs, getrusage that of our own commands; the difference is
 * the time of other programs. The load average is no measure of it because our own commands raise it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <sys/resource.h>
#include <unistd.h>

bool load_parse(const char *line, double ticks_per_second, struct load *out)
{
    double t[8] = {0}, all = 0;
    /* user, nice, system, idle, iowait, irq, softirq, steal; user includes guests. */
    if (sscanf(line, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6],
               &t[7]) < 4)
        return false;
    for (int i = 0; i < 8; i++)
        all += t[i] / ticks_per_second;
    out->all = all;
    out->busy = all - (t[3] + t[4]) / ticks_per_second;
    return true;
}

static double timeval_seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

bool load_read(struct load *out)
{
    char line[512];
    struct rusage own;
    FILE *f = fopen("/proc/stat", "r");
    const bool good = f && fgets(line, sizeof(line), f) && getrusage(RUSAGE_CHILDREN, &own) == 0 &&
                      load_parse(line, (double)sysconf(_SC_CLK_TCK), out);
    if (f)
        fclose(f);
    if (good)
        out->own = timeval_seconds(own.ru_utime) + timeval_seconds(own.ru_stime);
    return good;
}

double load_share_of_others(const struct load *before, const struct load *after)
{
    const double all = after->all - before->all,
                 others = after->busy - before->busy - (after->own - before->own);
    if (!(all > 0) || !(others > 0))
        return 0;
    return others < all ? others / all : 1;
}
