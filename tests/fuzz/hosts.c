/* hosts.c: fuzzes host files, -hosts lists, Slurm's compressed host lists, and the arguments of mpiexec.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "launcher/plan/hosts.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "launcher/plan/slurm.h"

_Noreturn void __wrap_launcher_die(int status, const char *fmt, ...);
_Noreturn void __wrap_launcher_die(int status, const char *fmt, ...)
{
    (void)status, (void)fmt;
    fuzz_refused();
}

void __wrap_message_print(const char *fmt, ...);
void __wrap_message_print(const char *fmt, ...)
{
    (void)fmt;
}

static void lay_out_ranks(struct options *o, struct hosts *h)
{
    struct app_spec app = {.n = 5};
    struct layout l = {0};
    o->apps = &app;
    o->napps = 1;
    hosts_layout(o, h, &l);
    for (uint32_t r = 0; r < l.size; r++)
        FUZZ_CHECK(l.host_of[r] < h->n && l.node_of[r] < l.nnodes);
}

static void fuzz_hostfile(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    struct options o = {.hostfile = path};
    struct hosts h = {0};
    if (fd < 0) {
        fd = memfd_create("fuzz-hosts", 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    if (setjmp(fuzz_end) == 0) {
        hosts_list(&o, &h);
        FUZZ_CHECK(h.n > 0);
        if (h.n < 100)
            lay_out_ranks(&o, &h);
    }
}

static void fuzz_slurm_list(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct strings names = {0};
    if (slurm_expand(text, 100, &names))
        for (unsigned i = 0; i < names.n; i++)
            FUZZ_CHECK(names.v[i] != NULL);
    strings_free(&names);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_hostfile(data, size);
    if (size < 200)
        fuzz_slurm_list(data, size);
    return 0;
}
