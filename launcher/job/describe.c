/* describe.c: builds the texts of messages about ranks. Sets of ranks are listed by host: "rank 3 on host a,
 * ranks 4-6 and 9 on host b".
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "job/job.h"

#define RANGES_MAX 8 /* ranges of ranks listed for each host; then "..." */

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
    uint32_t hosts = 0, *count = xcalloc(j->nhosts, sizeof(*count));
    if (!f)
        launcher_die(1, "Out of memory.");
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

const char *job_signal_hint(int sig)
{
    switch (sig) {
    case SIGKILL:
        return " mpiexec did not send the signal; often the kernel sends it when memory runs out "
               "(see dmesg).";
    case SIGXFSZ:
        return " It wrote a file larger than the file size limit (ulimit -f).";
    case SIGXCPU:
        return " It reached its limit of processor time (ulimit -t).";
    default:
        return "";
    }
}

static void describe_failures_after_finalize(const struct job *j)
{
    char who[2048];
    if (j->failed || j->late.n == 0)
        return;
    if (j->late.n == 1) {
        message_print("Rank %u on host %s exited with status %d after MPI_Finalize.", j->late.first,
                      j->hosts[j->layout->host_of[j->late.first]].name, j->late.code);
        return;
    }
    job_describe(j, j->late.who, true, who, sizeof(who));
    message_print("%u ranks exited with a nonzero status after MPI_Finalize, the first with %d: %s.",
                  j->late.n, j->late.code, who);
}

static void describe_exit_codes(const struct job *j)
{
    bool *who = xcalloc(j->layout->size, sizeof(*who));
    char text[2048];
    for (int code = 0; code < 256; code++) {
        uint32_t n = 0;
        for (uint32_t r = 0; r < j->layout->size; r++)
            n += who[r] = j->ranks[r].state == RANK_ENDED && j->ranks[r].code == code;
        if (n == 0)
            continue;
        job_describe(j, who, true, text, sizeof(text));
        message_print("Exit status %d: %s.", code, text);
    }
    free(who);
}

/* Reports that no rank of a program of another MPI library contacted mpiexec: each may have been a job of
 * its own. */
static void describe_foreign_library(const struct job *j)
{
    if (j->opt->foreign && !j->failed && pmi_inited_count(j->pmi) == 0)
        message_print(
            "No rank contacted this mpiexec of Fishplate in MPI_Init, so each may have run as a job of "
            "one rank: %s, or compile it with Fishplate's mpicc.",
            j->opt->foreign);
}

/* Reports the ranks that died while the job continued (-enable-recovery). */
static void describe_dead_ranks(const struct job *j)
{
    char who[2048];
    if (j->dead.n == 0 || j->failed || j->opt->report_fd > 0)
        return;
    job_describe(j, j->dead.who, true, who, sizeof(who));
    if (j->dead.n == 1)
        message_print("%s The others went on without it (-enable-recovery).", j->dead.how);
    else
        message_print(
            "%u ranks died and the others went on without them (-enable-recovery): %s. The first: %s",
            j->dead.n, who, j->dead.how);
}

void job_report_end(const struct job *j)
{
    describe_failures_after_finalize(j);
    describe_dead_ranks(j);
    describe_foreign_library(j);
    if (j->opt->exit_codes)
        describe_exit_codes(j);
}
