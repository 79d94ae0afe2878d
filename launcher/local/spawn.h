/* spawn.h: starts one process: a fork, a few system calls, an exec. Only this file and the guard fork.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_SPAWN_H
#define FP_LAUNCHER_SPAWN_H

#include <sys/resource.h>
#include <sys/types.h>

#include "plan/topo.h"

struct spawn {
    const char *path; /* path of the executable */
    char *const *argv, *const *env;
    const char *wdir;        /* NULL: the current directory */
    int in, out, err;        /* descriptors that become 0, 1 and 2 of the child */
    const int *keep;         /* files that stay open under their own numbers, ended by -1; may be NULL */
    const struct cpus *cpus; /* NULL: no binding */
};

enum spawn_step { SPAWN_OK, SPAWN_FILES, SPAWN_WDIR, SPAWN_EXEC };

/* Why exec failed, written by the child to memory from spawn_map_faults. */
struct spawn_fault {
    enum spawn_step step;
    int error;
};

/* Allocates `n` zeroed reports in memory shared with children. */
struct spawn_fault *spawn_map_faults(uint32_t n);

/* Forks and runs a process that leads its own process group and that the kernel kills when its parent
 * dies. -1 if fork fails. Later failures are in *fault (may be NULL) once the process has ended: waiting
 * for each exec would serialise the start of ranks. */
pid_t spawn_process(const struct spawn *s, struct spawn_fault *fault);

/* Saves the limits and the signal mask of mpiexec at its start; children run with the saved ones. */
void spawn_save_limits(void);

/* Finds a program as a shell does, by PATH and relative to `wdir`, then in `wdir` itself, because users type
 * `mpiexec -n 2 a.out`. Allocated; NULL with errno ENOENT, EACCES or EISDIR. */
char *spawn_find(const char *name, const char *path_list, const char *wdir);

#endif
