/* keep.h: the contract between a process that was started by hand and the mpiexec that starts what it spawns: the library
 * (singleton_spawn.c) and launcher/keep.c include it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_KEEP_H
#define FP_BOOT_KEEP_H

#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* The first argument of that mpiexec, and the second: the number of the program's process, a colon, which spawn it is. */
#define KEEP_OPTION "--fishplate-keep"

/* Files that are open in it: the program, as a pidfd (not there on old kernels), the book, and the rest of the command line
 * (command.h), which the next two arguments name. */
enum { KEEP_PROGRAM_FD = 3, KEEP_BOOK_FD = 4, KEEP_COMMAND_FD = 5 };

#define KEEP_SPAWNS 256

/* States of a spawn: its processes are starting; they have connected to the parents; their mpiexec has ended. */
enum keep_state { KEEP_COMING, KEEP_MET, KEEP_ENDED };

/* State of the last jobs that a program has spawned, in memory shared with the processes that keep them. */
struct keep_book {
    atomic_int finished; /* MPI_Finalize has been called: a failure of one job no longer ends the other */
    atomic_uchar state[KEEP_SPAWNS];
};

/* A pidfd of the process, readable when it has ended; -1 on old kernels. */
static inline int keep_open_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

#endif
