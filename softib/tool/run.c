/* run.c: softib run: starts a program with softib before the system's libibverbs in the library path, and
 * with a preload library for programs that require a device file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void prepend_to_variable(const char *var, const char *value)
{
    const char *old = getenv(var);
    size_t n = strlen(value) + (old ? strlen(old) : 0) + 2;
    char *all = malloc(n);
    if (!all)
        return;
    snprintf(all, n, "%s%s%s", value, old && *old ? ":" : "", old ? old : "");
    setenv(var, all, 1);
    free(all);
}

int cmd_run(const struct options *o, char **argv)
{
    char exe[PATH_MAX], dir[PATH_MAX + 32], preload[PATH_MAX + 64];
    struct fabric f;
    struct stat st;
    (void)o;
    if (!tool_fabric(&f))
        return 2;
    fabric_free(&f);
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = 0;
    for (int up = 0; up < 2; up++) { /* removes bin/softib from PREFIX/bin/softib */
        char *slash = strrchr(exe, '/');
        if (slash)
            *slash = 0;
    }
    snprintf(dir, sizeof(dir), "%s/lib/softib", exe);
    if (stat(dir, &st)) {
        fprintf(stderr, "softib: the folder of the library, %s, does not exist\n", dir);
        return 2;
    }
    prepend_to_variable("LD_LIBRARY_PATH", dir);
    snprintf(preload, sizeof(preload), "%s/libsoftib-devnode.so", dir);
    if (stat("/dev/infiniband", &st) && !stat(preload, &st)) {
        prepend_to_variable("LD_PRELOAD", preload);
        /* The address sanitizer refuses to start behind a preload library. */
        prepend_to_variable("ASAN_OPTIONS", "verify_asan_link_order=0");
    }
    execvp(argv[0], argv);
    fprintf(stderr, "softib: cannot run %s: %s\n", argv[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
