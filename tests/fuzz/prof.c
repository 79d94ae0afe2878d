/* prof.c: records of the profiler, as `fishplate prof --read` reads them and writes its reports from them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tools/fishplate/prof.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

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
        prof_write_text(j, true, out);
        prof_write_json(j, out);
        prof_write_html(j, out);
    }
    prof_jobs_free(jobs);
    return 0;
}
