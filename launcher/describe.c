/*
 * Sets of ranks in words, host by host: "rank 3 on host a, ranks 4-6 and 9 on host b".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "job.h"

#define RANGES_MAX 8 /* a host; after that "..." */

static void write_ranges(FILE *f, const struct job *j, uint32_t host, const bool *wanted, bool value)
{
    uint32_t written = 0, size = j->layout->size;
    for (uint32_t r = 0; r < size; r++) {
        if (j->layout->host_of[r] != host || wanted[r] != value)
            continue;
        uint32_t last = r;
        while (last + 1 < size && j->layout->host_of[last + 1] == host && wanted[last + 1] == value)
            last++;
        if (written++ == RANGES_MAX) {
            fputs(", ...", f);
            return;
        }
        fprintf(f, last > r ? "%s%u-%u" : "%s%u", written > 1 ? ", " : "", r, last);
        r = last;
    }
}

void job_describe(const struct job *j, const bool *wanted, bool value, char *out, size_t size)
{
    FILE *f = fmemopen(out, size, "w");
    uint32_t hosts = 0, *count = xcalloc(j->nhosts, sizeof *count);
    if (!f)
        die(1, "Out of memory.");
    for (uint32_t r = 0; r < j->layout->size; r++)
        count[j->layout->host_of[r]] += wanted[r] == value;
    for (uint32_t h = 0; h < j->nhosts; h++) {
        if (count[h] == 0)
            continue;
        fprintf(f, "%s%s ", hosts++ ? "; " : "", count[h] == 1 ? "rank" : "ranks");
        write_ranges(f, j, h, wanted, value);
        fprintf(f, " on host %s", j->hosts[h].name);
    }
    if (hosts == 0)
        fputs("no rank", f);
    fclose(f);
    out[size - 1] = '\0';
    free(count);
}
