/* shell.h: remote shells: the commands that start agents on other hosts, by ssh, by srun, or by a command
 * that the user names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_SHELL_H
#define FP_LAUNCHER_SHELL_H

#include <sys/types.h>

#include "core/util.h"

/* How other hosts are reached; as the user said, and the same on every host. */
struct shell {
    char *launcher; /* ssh, rsh or slurm */
    char *command;  /* -launcher-exec; "": none */
};

/* One command starts the agents of all hosts at once, which then tell their hosts by name. */
bool shell_starts_all_hosts(const struct shell *s);

/* What the user would call it, for messages. */
const char *shell_name(const struct shell *s);

/*
 * Runs this very program on the host with these words; of a shell that starts all, on the `n` hosts.
 * `secret` is what it reads on standard input. -1 with a sentence in *why (to be freed) when that cannot
 * even be tried.
 */
pid_t shell_run(const struct shell *s, char *const *hosts, uint32_t n, const char *const *words,
                const char *secret, char **why);

#endif
