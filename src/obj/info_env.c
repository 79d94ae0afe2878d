/* info_env.c: the contents of MPI_INFO_ENV and MPI_Info_create_env: the known parameters with which this
 * process was started.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/tunable.h"
#include "obj/errhandler.h"
#include "obj/info.h"

/* Sets a value, truncated if it is too long for an info value. */
static int set_truncated(struct info *i, const char *key, const char *value)
{
    char cut[MPI_MAX_INFO_VAL];
    snprintf(cut, sizeof(cut), "%s", value);
    return info_set(i, key, cut);
}

/* The arguments after the command, separated by blanks. */
static int set_arguments(struct info *i, int argc, char **argv)
{
    char text[MPI_MAX_INFO_VAL] = "";
    size_t used = 0;
    for (int k = 1; k < argc && argv[k] && used < sizeof(text); k++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", k > 1 ? " " : "", argv[k]);
    return used ? info_set(i, "argv", text) : MPI_SUCCESS;
}

/* Reads the command line from /proc/self/cmdline if the program passed none to MPI_Init. */
static int set_command_line(struct info *i)
{
    char text[4096];
    char *argv[256];
    int argc = 0;
    FILE *f = fopen("/proc/self/cmdline", "r");
    if (!f)
        return MPI_SUCCESS;
    size_t len = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[len] = '\0';
    for (size_t at = 0; at < len && argc < (int)COUNT_OF(argv); at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    int rc = argc ? set_truncated(i, "command", argv[0]) : MPI_SUCCESS;
    return rc ? rc : set_arguments(i, argc, argv);
}

static int set_machine(struct info *i)
{
    char folder[MPI_MAX_INFO_VAL];
    struct utsname name;
    int rc = MPI_SUCCESS;
    if (uname(&name) == 0)
        rc = set_truncated(i, "arch", name.machine);
    if (!rc && getcwd(folder, sizeof(folder)))
        rc = info_set(i, "wdir", folder);
    return rc;
}

/* Sets keys from the launcher's environment variables, which exist before MPI_Init too. */
static int set_job(struct info *i)
{
    char host[256] = "";
    const char *size = env_get("PMI_SIZE"), *name = env_get("FISHPLATE_HOST");
    int rc = info_set(i, "maxprocs", size ? size : "1");
    if (!name && gethostname(host, sizeof(host) - 1) == 0)
        name = host;
    return rc || !name ? rc : set_truncated(i, "host", name);
}

static int set_errhandler(struct info *i)
{
    char name[64];
    errhandler_open();
    tunable_format(tunables_find("INITIAL_ERRHANDLER"), name, sizeof(name));
    return info_set(i, "mpi_initial_errhandler", name);
}

int info_create_env(int argc, char **argv, struct info **out)
{
    struct info *i;
    int rc = info_create(&i);
    if (rc)
        return rc;
    if (argc > 0 && argv && argv[0]) {
        rc = set_truncated(i, "command", argv[0]);
        if (!rc)
            rc = set_arguments(i, argc, argv);
    } else {
        rc = set_command_line(i);
    }
    if (!rc)
        rc = set_machine(i);
    if (!rc)
        rc = set_job(i);
    if (!rc)
        rc = set_errhandler(i);
    if (rc) {
        info_release(i);
        return rc;
    }
    *out = i;
    return MPI_SUCCESS;
}
