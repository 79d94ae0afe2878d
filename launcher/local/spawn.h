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

/* Where a child says why it could not become the program; in memory from spawn_faults. */
struct spawn_fault {
    enum spawn_step step;
    int error;
};

/* Memory shared with children, all zero. */
struct spawn_fault *spawn_faults(uint32_t n);

/*
 * The new process leads a session of its own and is killed by the kernel when we die. -1 when none can be
 * made. What goes wrong later is in *fault (may be NULL) once the process has ended: waiting for its exec
 * here would start ranks one after the other instead of side by side.
 */
pid_t spawn_process(const struct spawn *s, struct spawn_fault *fault);

/* What to give back to children: limits and signal mask as they were when mpiexec started. */
void spawn_save_limits(void);

/*
 * Finds a program as a shell would, by the given PATH and relative to `wdir`, and failing that in `wdir`
 * itself, since `mpiexec -n 2 a.out` is what people type. Allocated; NULL with errno ENOENT or EACCES.
 */
char *spawn_find(const char *name, const char *path_list, const char *wdir);

#endif
