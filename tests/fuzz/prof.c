/* prof.c: fuzzes the profiler's records, which `fishplate prof --read` reads to write its reports. A
 * report takes 100 times as long as reading its record, so only three of four inputs are reported, each by
 * one of the three reports, selected by its bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tools/fishplate/prof.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

static unsigned choose_report(const uint8_t *data, size_t size)
{
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += data[i];
    return sum % 4;
}

static void write_report(const struct prof_job *job, unsigned report, FILE *out)
{
    if (report == 0)
        prof_write_text(job, true, out);
    else if (report == 1)
        prof_write_json(job, out);
    else if (report == 2)
        prof_write_html(job, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    static FILE *out;
    struct prof_job *jobs = NULL;
    if (fd < 0) {
        fd = memfd_create("fuzz-prof", 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        out = fopen("/dev/null", "w");
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    prof_read_file(path, &jobs);
    for (struct prof_job *j = jobs; j; j = j->next) {
        prof_job_sum_up(j);
        write_report(j, choose_report(data, size), out);
    }
    prof_jobs_free(jobs);
    return 0;
}
