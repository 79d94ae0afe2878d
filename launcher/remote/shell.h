/* shell.h: remote shells: the commands that start agents on other hosts, by ssh, by srun, or by a command
 * that the user names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_SHELL_H
#define FP_LAUNCHER_SHELL_H

#include <sys/types.h>

#include "core/util.h"

/* The remote shell that starts agents: the user's choice, the same on every host. */
struct shell {
    char *launcher; /* ssh, rsh or slurm */
    char *command;  /* -launcher-exec; "": none */
};

/* True if one command starts the agents of all hosts, which then identify their hosts by name. */
bool shell_starts_all_hosts(const struct shell *s);

/* Returns the launcher's name for messages. */
const char *shell_name(const struct shell *s);

/* Runs this program on the host with these arguments; with Slurm, on all `n` hosts. The child reads `secret`
 * from standard input. -1 with a message in *why (to be freed) if the command cannot be started. */
pid_t shell_start_agent(const struct shell *s, char *const *hosts, uint32_t n, const char *const *words,
                        const char *secret, char **why);

#endif
