/* facts.c: collects the facts of this host: limits, memory, processors, adapters.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../command.h"
#include "api/inside.h"
#include "check.h"

static int read_number(const char *path, int otherwise)
{
    int n = otherwise;
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%d", &n) != 1)
        n = otherwise;
    if (f)
        fclose(f);
    return n;
}

/* Tests CMA: true if this process can read a child's memory. Containers may forbid the system call. */
static int can_read_memory(void)
{
    static volatile int there = 1;
    int here = 0, go[2];
    if (pipe(go) != 0)
        return 0;
    const pid_t child = fork();
    if (child == 0) {
        char c;
        close(go[1]);
        _exit(read(go[0], &c, 1) < 0);
    }
    struct iovec to = {&here, sizeof(here)}, from = {(void *)(uintptr_t)&there, sizeof(here)};
    const bool ok = child > 0 && process_vm_readv(child, &to, 1, &from, 1, 0) == sizeof(here) && here == 1;
    close(go[0]);
    close(go[1]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return ok;
}

static void gather_ports(struct facts *out)
{
    struct net_port *ports = NULL;
    size_t count = 0;
    const char *why = "";
    if (get_library_table()->ports(&ports, &count, &why) != 0)
        snprintf(out->no_ports, sizeof(out->no_ports), "%s", why);
    out->nports = (int32_t)count;
    for (size_t i = 0; i < count && i < FACT_PORTS; i++)
        out->ports[i] = ports[i];
    free(ports);
}

void facts_gather(struct facts *out)
{
    struct utsname system;
    struct statvfs shm;
    struct rlimit lock;
    cpu_set_t cpus;
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int len = 0;
    memset(out, 0, sizeof(*out));
    MPI_Get_processor_name(name, &len);
    snprintf(out->own_name, sizeof(out->own_name), "%.63s", name);
    snprintf(out->host, sizeof(out->host), "%.63s", name);
    MPI_Comm_rank(MPI_COMM_WORLD, &out->rank);
    snprintf(out->version, sizeof(out->version), "%s", FISHPLATE_VERSION);
    if (uname(&system) == 0)
        snprintf(out->kernel, sizeof(out->kernel), "%.48s %.20s", system.release, system.machine);
    if (getrlimit(RLIMIT_MEMLOCK, &lock) == 0)
        out->memlock = lock.rlim_max == RLIM_INFINITY ? UINT64_MAX : lock.rlim_max;
    if (statvfs("/dev/shm", &shm) == 0) {
        out->shm_total = (uint64_t)shm.f_blocks * shm.f_frsize;
        out->shm_free = (uint64_t)shm.f_bavail * shm.f_frsize;
    }
    out->memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
        out->cpus = CPU_COUNT(&cpus);
    out->ptrace = read_number("/proc/sys/kernel/yama/ptrace_scope", -1);
    out->cma = can_read_memory();
    gather_ports(out);
}
