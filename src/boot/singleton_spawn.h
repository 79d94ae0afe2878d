/* singleton_spawn.h: MPI_Comm_spawn in a process that was started by hand: a mpiexec of ours starts the new processes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_SINGLETON_SPAWN_H
#define FP_BOOT_SINGLETON_SPAWN_H

#include "boot/boot.h"

struct singleton_spawn {
    unsigned count; /* of all that were started: the name of the last one */
    struct keep_book *book;
    int book_fd;
};

int singleton_spawn_start(struct singleton_spawn *s, const struct boot_program *programs, int n,
                          const char *port, char id[BOOT_SPAWN_ID]);
int singleton_spawn_poll(const struct singleton_spawn *s, const char *id);

/* The spawned processes are connected: from now on a failure of this process ends them, and the reverse. */
void singleton_spawn_connected(const struct singleton_spawn *s, const char *id);

/* MPI_Finalize has been called: a failure of one job no longer ends the other. */
void singleton_spawn_finish(const struct singleton_spawn *s);

void singleton_spawn_close(struct singleton_spawn *s);

#endif
