/* death_watcher.h: ends the job when this rank dies if the launcher does not: under srun without -K the
 * other ranks would wait for a dead rank for ever. A child process outlives the rank and requests the end
 * of the job from the launcher, on the PMI connection or by Slurm's scancel, because the child cannot use
 * the PMIx library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_DEATH_WATCHER_H
#define FP_BOOT_DEATH_WATCHER_H

#include <stdbool.h>
#include <sys/types.h>

#include "boot/boot.h"

struct death_watcher {
    pid_t pid; /* 0: no child process */
    /* write end of a pipe: a byte reports that the rank has finished, end of file alone that it died */
    int end;
};

/* Starts the watcher if Slurm has started several ranks; elsewhere does nothing. pmi: the connection for
 * PMI-1's abort; with -1 scancel ends the job step. A failure to start is not an error. */
void death_watcher_start(struct death_watcher *h, const struct boot *b, int pmi);

/* Ends the watcher: the rank has called MPI_Finalize, or another process ends the job. */
void death_watcher_stop(struct death_watcher *h);

/* For forked processes: closes all files from `first` on; sets all signals to their defaults, except that
 * SIGPIPE is ignored. Neither function allocates or locks. */
void child_close_files(unsigned first);
void child_default_signals(void);

#endif
