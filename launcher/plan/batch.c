/* batch.c: see batch.h. PBS and LSF repeat a host for each of its slots; Grid Engine has one line for each host, with the number of
 * slots as its second word. The text comes from outside, so it is checked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "plan/batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/util.h"
#include "cli/number.h"

static const struct {
    const char *system, *job, *file; /* variables: of the job's number, and of the file with its hosts */
    bool counts;                     /* a line has the number of slots */
} systems[] = {
    {"PBS", "PBS_JOBID", "PBS_NODEFILE", false},
    {"LSF", "LSB_JOBID", "LSB_DJOB_HOSTFILE", false},
    {"Grid Engine", "JOB_ID", "PE_HOSTFILE", true},
};

/* The system whose job this process belongs to; -1: none. */
static int batch_system(void)
{
    for (unsigned i = 0; i < COUNT_OF(systems); i++) {
        const char *job = getenv(systems[i].job), *file = getenv(systems[i].file);
        if (job && *job && file && *file)
            return (int)i;
    }
    return -1;
}

bool batch_is_allocation(void)
{
    return batch_system() >= 0;
}

static void batch_line(int system, char *line, const char *where, batch_add_fn *add, void *arg)
{
    char *save = NULL;
    const char *host = strtok_r(line, " \t\r\n", &save), *count = strtok_r(NULL, " \t\r\n", &save);
    long slots = 1;
    if (!host)
        return;
    if (systems[system].counts && (!count || !number_parse_integer(count, 1, 1 << 20, &slots)))
        launcher_die(STATUS_USAGE, "In %s, the second word should be the number of slots of host \"%.200s\".",
                     where, host);
    add(arg, host, slots, where);
}

bool batch_hosts(batch_add_fn *add, void *arg)
{
    const int system = batch_system();
    if (system < 0)
        return false;
    const char *name = systems[system].system, *variable = systems[system].file, *path = getenv(variable);
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;
    if (!f)
        launcher_die(
            STATUS_USAGE,
            "The hosts of this %s job cannot be read: %s=%.300s: %s. Name the hosts with -hosts, or unset "
            "%s.",
            name, variable, path, strerror(errno), variable);
    for (unsigned n = 1; getline(&line, &cap, f) >= 0; n++) {
        char *where = xstrf("line %u of %.300s (%s)", n, path, variable);
        batch_line(system, line, where, add, arg);
        free(where);
    }
    free(line);
    fclose(f);
    return true;
}
