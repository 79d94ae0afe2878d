/* debugger.h: ranks under a debugger: -gdb and -xterm.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_DEBUGGER_H
#define FP_LAUNCHER_DEBUGGER_H

#include "options/options.h"

/* Ends mpiexec with a message if the requested debugger cannot run. With one rank under gdb, that rank gets
 * standard input. */
void debug_check(struct options *o, uint32_t size);

bool debug_is_selected(const struct options *o, uint32_t rank);

/* Returns the command line that runs `argv` under the debugger. */
char **debug_build_command(const struct options *o, char **argv);

#endif
