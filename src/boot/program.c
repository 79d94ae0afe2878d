/* program.c: reads the info keys of programs to spawn.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tunable.h"
#include "boot/launch_env.h"

const char *program_get_info(const struct boot_program *program, const char *key)
{
    for (int i = 0; i < program->nkeys; i++)
        if (strcmp(program->keys[i], key) == 0)
            return program->values[i];
    return NULL;
}

char *program_find_command(const struct boot_program *program)
{
    const char *folders = program_get_info(program, "path");
    while (folders && *folders && !strchr(program->command, '/')) {
        size_t len = strcspn(folders, ":");
        char *at = NULL;
        if (asprintf(&at, "%.*s/%s", (int)len, folders, program->command) < 0)
            return NULL;
        if (access(at, X_OK) == 0)
            return at;
        free(at);
        folders += len + (folders[len] == ':');
    }
    return strdup(program->command);
}

int program_read_parent_port(struct boot *b)
{
    const char *port = env_get(ENV_PARENT);
    if (!port)
        return 0;
    b->several = env_get(ENV_SEVERAL) != NULL;
    b->parent = strdup(port);
    unsetenv(ENV_PARENT); /* programs that this process starts by exec are not spawned ones */
    return b->parent ? 0 : err_set(MPI_ERR_NO_MEM, "Out of memory for the name of the parents' port.");
}
