/* assemble.h: from the command line to a running job: environment, plans, hosts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_ASSEMBLE_H
#define FP_LAUNCHER_ASSEMBLE_H

#include "options/options.h"

/* Runs the job to its end and returns the exit status. */
int run_job(struct options *o, char **argv);

#endif
