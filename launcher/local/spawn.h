/* spawn.h: starts one process: a fork, a few system calls, an exec. Only this file and the guard fork.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_SPAWN_H
#define FP_LAUNCHER_SPAWN_H

#include <sys/resource.h>
#include <sys/types.h>

#include "plan/topo.h"

struct spawn {
    const char *path; /* already searched for */
    char *const *argv, *const *env;
    const char *wdir;        /* NULL: stay */
    int in, out, err;        /* become 0, 1, 2 */
    const int *keep;         /* files that stay open under their own numbers, ended by -1; may be NULL */
    const struct cpus *cpus; /* NULL: no binding */
};

enum spawn_step { SPAWN_OK, SPAWN_FILES, SPAWN_WDIR, SPAWN_EXEC };

/* A child's report of why exec failed; in memory from spawn_map_faults. */
struct spawn_fault {
    enum spawn_step step;
    int error;
};

/* Memory shared with children, all zero. */
struct spawn_fault *spawn_map_faults(uint32_t n);

/* The new process leads its own process group and is killed by the kernel when its parent dies. -1 if fork
 * fails. Later failures are in *fault (may be NULL) once the process has ended: waiting for each exec would
 * serialise the start of ranks. */
pid_t spawn_process(const struct spawn *s, struct spawn_fault *fault);

/* Saves the limits and the signal mask with which mpiexec started; children get them back. */
void spawn_save_limits(void);

/* Finds a program as a shell does, by PATH and relative to `wdir`, then in `wdir` itself, because users type
 * `mpiexec -n 2 a.out`. Allocated; NULL with errno ENOENT, EACCES or EISDIR. */
char *spawn_find(const char *name, const char *path_list, const char *wdir);

#endif
