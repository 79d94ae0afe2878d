/* run_tool.c: runs `fishplate` as a child. The end of the tool closes its end of a pipe, which is an event of the
 * loop; the process itself is reaped with the other children.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "local/run_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/util.h"

static _Noreturn void exec_tool(int keep, enum tool_output output, const char *tool, char *const argv[])
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output == TOOL_TO_PIPE ? keep : STDERR_FILENO, STDOUT_FILENO);
    fcntl(keep, F_SETFD, 0); /* inherited by the tool: it closes when the tool ends */
    execv(tool, argv);
    dprintf(STDERR_FILENO, "mpiexec: Cannot run %s, which prints what the ranks wait for: %s.\n", tool,
            strerror(errno));
    _exit(127);
}

bool tool_start(struct loop *l, struct watch *end, enum tool_output output, char *const argv[])
{
    char tool[PATH_MAX + 16];
    int ends[2];
    snprintf(tool, sizeof(tool), "%s", self_path());
    char *slash = strrchr(tool, '/');
    snprintf(slash ? slash + 1 : tool, sizeof(tool) - (size_t)(slash ? slash + 1 - tool : 0), "fishplate");
    if (access(tool, X_OK) != 0 || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    const pid_t child = fork();
    if (child == 0)
        exec_tool(ends[1], output, tool, argv);
    close(ends[1]);
    if (child < 0 || !loop_add(l, end, ends[0], EPOLLIN)) {
        close(ends[0]);
        return false;
    }
    return true;
}
