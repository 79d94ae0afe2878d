/* singleton_spawn.h: MPI_Comm_spawn in a process without a launcher: the mpiexec beside the library starts
 * the new processes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_SINGLETON_SPAWN_H
#define FP_BOOT_SINGLETON_SPAWN_H

#include "base/mapping.h"
#include "base/util.h"
#include "boot/boot.h"

struct singleton_spawn {
    unsigned count;         /* spawns so far: the id of the last one */
    struct mapping mapping; /* mapping of struct spawn_state_table; opened by the first spawn */
};

struct singleton {
    struct boot boot;
    struct singleton_spawn spawned;
    struct entry *entries; /* values that this rank has published */
};

static inline struct singleton *singleton_of(struct boot *b)
{
    return container_of(b, struct singleton, boot);
}

/* Functions of the back end (backend.h). */
int singleton_spawn_start(struct boot *b, const struct boot_program *programs, int n, const char *port,
                          char id[BOOT_SPAWN_ID]);
int singleton_spawn_poll(struct boot *b, const char *id);
/* The spawned processes are connected: from now on a failure of this process ends them, and the reverse. */
void singleton_spawn_connected(struct boot *b, const char *id);

/* MPI_Finalize has been called: a failure of one job no longer ends the other. */
void singleton_spawn_finish(struct boot *b);

#endif
