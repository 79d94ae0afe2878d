/* keep.h: the interface between a process without a launcher that spawns processes (singleton.c) and
 * the mpiexec that starts them (launcher/main.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_KEEP_H
#define FP_BOOT_KEEP_H

#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* First argument of the mpiexec that a process without a launcher starts to spawn processes. The second
 * argument is PID:N, the id of the spawning process and the number of the spawn. */
#define KEEP_OPTION "--fishplate-keep"

/* Descriptors that mpiexec inherits: a pidfd of the spawning process (closed on old kernels), the file of
 * struct spawn_state_table, and the file with the rest of the command line (spawn_command.h), which the third and the
 * fourth argument name. */
enum { KEEP_PROGRAM_FD = 3, KEEP_BOOK_FD = 4, KEEP_COMMAND_FD = 5 };

#define KEEP_SPAWNS 256

enum keep_state {
    KEEP_STARTING,  /* the processes are starting */
    KEEP_CONNECTED, /* the processes have connected to their parents */
    KEEP_ENDED      /* the mpiexec has ended */
};

/* States of the last KEEP_SPAWNS jobs that a process has spawned, in memory shared with their mpiexecs. */
struct spawn_state_table {
    atomic_int finished; /* MPI_Finalize has been called: a failure of one job no longer ends the other */
    atomic_uchar state[KEEP_SPAWNS];
};

/* A pidfd of the process, readable when it has ended; -1 on old kernels. */
static inline int open_process_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

#endif
