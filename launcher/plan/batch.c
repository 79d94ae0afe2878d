/* batch.c: reads the host files of PBS, LSF and Grid Engine. PBS and LSF repeat a host for each of its slots;
 * Grid Engine has one line for each host, with the number of slots as its second word. The text comes from
 * outside, so it is checked.
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
    /* `job`, `file`: variables that hold the job's number and the path of its host file */
    const char *system, *job, *file;
    bool counts; /* each line contains a number of slots */
} systems[] = {
    {"PBS", "PBS_JOBID", "PBS_NODEFILE", false},
    {"LSF", "LSB_JOBID", "LSB_DJOB_HOSTFILE", false},
    {"Grid Engine", "JOB_ID", "PE_HOSTFILE", true},
};

/* Returns the index of the batch system in whose job this process runs; -1: none. */
static int batch_find_system(void)
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
    return batch_find_system() >= 0;
}

struct batch_file {
    int system;
    batch_add_fn *add;
    void *arg;
};

static void batch_read_line(void *ctx, char *line, unsigned number)
{
    const struct batch_file *f = ctx;
    const char *variable = systems[f->system].file;
    char *save = NULL, *where = xstrf("line %u of %.300s (%s)", number, getenv(variable), variable);
    const char *host = strtok_r(line, " \t\r\n", &save), *count = strtok_r(NULL, " \t\r\n", &save);
    long slots = 1;
    if (host && systems[f->system].counts && (!count || !number_parse_integer(count, 1, 1 << 20, &slots)))
        launcher_die(STATUS_USAGE, "In %s, the second word should be the number of slots of host \"%.200s\".",
                     where, host);
    if (host)
        f->add(f->arg, host, slots, where);
    free(where);
}

bool batch_list_hosts(batch_add_fn *add, void *arg)
{
    const int system = batch_find_system();
    if (system < 0)
        return false;
    const char *name = systems[system].system, *variable = systems[system].file, *path = getenv(variable);
    if (!file_for_each_line(path, batch_read_line, &(struct batch_file){system, add, arg}))
        launcher_die(
            STATUS_USAGE,
            "The hosts of this %s job cannot be read: %s=%.300s: %s. Name the hosts with -hosts, or unset "
            "%s.",
            name, variable, path, strerror(errno), variable);
    return true;
}
