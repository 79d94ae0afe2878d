/* heir.h: ends the job when this rank dies, where the launcher does not do so: under srun without -K the
 * other ranks would wait for ever, even for a rank that was killed. A tiny child process outlives the rank
 * just long enough to ask the launcher to end the job: on the PMI connection, or with Slurm's scancel,
 * because the PMIx library cannot be used in the child.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_HEIR_H
#define FP_BOOT_HEIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "boot/boot.h"

struct heir {
    pid_t pid; /* 0: there is none */
    int end;   /* our end of a pipe: a byte, and then its end, say that all is well */
};

/* Where Slurm is the launcher of several ranks; elsewhere nothing happens. pmi: the connection on which PMI-1's abort is
 * sent, -1: scancel ends the job step. A failure to start is not an error. */
void heir_start(struct heir *h, const struct boot *b, int pmi);

/* The rank has finished as it should, or its job is being ended by somebody else. */
void heir_stop(struct heir *h);

/* For any process that is forked: closes all files from that one on; gives all signals back to the kernel but
 * SIGPIPE, which is ignored. Neither allocates nor locks. */
void heir_close_from(unsigned first);
void heir_default_signals(void);

#endif
