/* run_tool.h: runs the `fishplate` tool of this installation as a child process (`why`, `ps`).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_RUN_TOOL_H
#define FP_LAUNCHER_RUN_TOOL_H

#include "core/loop.h"

enum tool_output {
    TOOL_TO_STDERR, /* no data on the watched descriptor; it closes when the tool ends */
    TOOL_TO_PIPE,   /* the watched descriptor receives the tool's standard output */
};

/* Starts the tool. `end`, whose `fn` must be set, becomes readable when output arrives or the tool ends.
 * False if the tool is not installed or cannot be started. The process is reaped with the other children. */
bool tool_start(struct loop *l, struct watch *end, enum tool_output output, char *const argv[]);

#endif
