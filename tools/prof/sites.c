/* sites.c: calls and time of each MPI function by call site. A call site is a return address; `fishplate
 * prof` resolves file and line.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "prof.h"
#include "ticks.h"

enum { SITES = 1024, PROBES = 16 };

static struct {
    const void *caller; /* NULL: unused entry */
    int call;
    uint64_t calls, ticks;
} sites[SITES];

void prof_site(const struct prof_span *span)
{
    const uintptr_t key = (uintptr_t)span->caller * 31 + (uintptr_t)span->call;
    for (unsigned i = 0; i < PROBES; i++) {
        const size_t at = (key * 0x9e3779b97f4a7c15ull >> 40) + i;
        const size_t k = at % SITES;
        if (!sites[k].caller) {
            sites[k].caller = span->caller;
            sites[k].call = span->call;
        }
        if (sites[k].caller == span->caller && sites[k].call == span->call) {
            sites[k].calls++;
            sites[k].ticks += span->spent;
            return;
        }
    }
    /* Table full: later call sites are not recorded; those in loops appear early. */
}

/* Finds the file that contains an address; for the main program, which dladdr reports as invoked, through
 * /proc/self/exe. */
static bool find_file(const void *address, Dl_info *there, char *path, size_t size)
{
    if (!dladdr((const char *)address - 1, there) || !there->dli_fname)
        return false;
    if (there->dli_fname[0] == '/')
        return (size_t)snprintf(path, size, "%s", there->dli_fname) < size;
    const ssize_t n = readlink("/proc/self/exe", path, size - 1);
    path[n > 0 ? n : 0] = '\0';
    return n > 0;
}

void prof_sites_put(FILE *out)
{
    char path[168];
    Dl_info there;
    for (size_t i = 0; i < SITES; i++)
        if (sites[i].caller && find_file(sites[i].caller, &there, path, sizeof(path)) && !strchr(path, '\n'))
            fprintf(out, "site %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n",
                    prof_functions[sites[i].call].name, sites[i].calls, ticks_to_ns(sites[i].ticks),
                    (uint64_t)((uintptr_t)sites[i].caller - (uintptr_t)there.dli_fbase), path);
}
