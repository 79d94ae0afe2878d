/* lab.c: `fishplate lab`: runs fishplate-lab, which is installed in the same folder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int command_lab(int argc, char **argv)
{
    char path[PATH_MAX + 16];
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    (void)argc;
    path[length > 0 ? length : 0] = 0;
    const char *slash = strrchr(path, '/');
    snprintf(path + (slash ? slash + 1 - path : 0), 16, "fishplate-lab");
    execv(path, argv);
    fprintf(stderr,
            "fishplate: cannot run %s: %s. The laboratory (simulator, figures of the papers, studies of "
            "protocols) is a "
            "program of its own: build it with `make lab`, or install the package fishplate-lab.\n",
            path, strerror(errno));
    return 2;
}

int command_forward_to_lab(int argc, char **argv)
{
    return command_lab(argc + 1, argv - 1); /* argv[-1] exists: the name of the program, or "bench" */
}
