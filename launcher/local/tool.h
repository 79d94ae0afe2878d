/* tool.h: runs the `fishplate` tool that lies beside mpiexec as a child: for what only it knows (`why`, `ps`).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_TOOL_H
#define FP_LAUNCHER_TOOL_H

#include "core/loop.h"

enum tool_output {
    TOOL_TO_STDERR, /* nothing comes through the watched file; it ends when the tool does */
    TOOL_TO_US,     /* its standard output comes through the watched file */
};

/* False when there is no such tool, or no process for it. `end` is readable from then on; its `fn` must be set. The
 * process is collected with the other children. */
bool tool_start(struct loop *l, struct watch *end, enum tool_output output, char *const argv[]);

#endif
