/* rankenv.h: the environment of a rank: the user's variables, without those of an outer launcher, plus the
 * variables of this launcher (src/boot/launch_env.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_RANKENV_H
#define FP_LAUNCHER_RANKENV_H

#include "plan/plan.h"

/* True if launchers set this NAME=value, so that ranks must not inherit it. */
bool rankenv_is_launcher_variable(const char *entry);

/* Returns the value of `name` in a list of NAME=value; NULL if it is not set. */
const char *rankenv_get(char *const *env, const char *name);

/* Returns the folder of this mpiexec's library if neither the program nor LD_LIBRARY_PATH finds such a
 * library; else NULL. */
const char *rankenv_library_folder(const char *program, char *const *env);

/* Builds app->env and the variables of one rank. The result is valid until the next call, which reuses its
 * memory: starting a rank must not cost an allocation per variable. library_folder: added to
 * LD_LIBRARY_PATH; may be NULL. */
char *const *rankenv_build(const struct plan *p, const struct place *at, int pmi_fd, int node_fd,
                           int notices_fd, const char *library_folder);

#endif
