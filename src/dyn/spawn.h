/* spawn.h: MPI_Comm_spawn and MPI_Comm_spawn_multiple, and the connection of the new processes to their
 * parents.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DYN_SPAWN_H
#define FP_DYN_SPAWN_H

#include "boot/boot.h"
#include "obj/comm.h"
#include "obj/info.h"

/* One program of the user's call; significant at the root. */
struct spawn_program {
    const char *command;
    char *const *argv; /* MPI_ARGV_NULL is NULL */
    int maxprocs;
    struct info *info; /* may be NULL */
};

/* Collective. root_error: an error that the root has found in the arguments, returned at all ranks.
 * programs, n: significant at the root. errcodes: MPI_ERRCODES_IGNORE (at any rank), or one code for each
 * process of maxprocs. */
int spawn_programs(struct comm *comm, int root, int root_error, const struct spawn_program *programs, int n,
                   struct comm **out, int *errcodes);

/* Called in MPI_Init: a spawned job connects to its parents. The result is p->parent. */
int spawn_connect_to_parents(struct proc *p);

/* Copies the info object of a program: the keys in its key file replace the key `file`, and `arch` is
 * checked and removed. *out is NULL if `given` is NULL. */
int spawn_info(const struct info *given, struct info **out);

#endif
