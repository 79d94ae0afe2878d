/* pmix_spawn.c: implements MPI_Comm_spawn by PMIx_Spawn_nb. The environment of the new processes contains the
 * name of their parents' port: no other attribute of PMIx is supported by every launcher.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/pmix_spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "boot/pmix_answer.h"
#include "boot/launch_env.h"
#include "boot/program.h"

/* ---- the request ---- */

static char **copy_arguments(const struct boot_program *program, char *command)
{
    size_t n = 0;
    while (program->argv && program->argv[n])
        n++;
    char **argv = calloc(n + 2, sizeof(*argv));
    if (argv) {
        argv[0] = command;
        for (size_t i = 0; i < n; i++)
            argv[i + 1] = program->argv[i];
    }
    return argv;
}

/* The variables ENV_PARENT and ENV_SEVERAL, and those of the info key env. The first entry is the
 * allocation of all of them. */
static char **build_environment(const struct boot_program *program, const struct boot *b, const char *port)
{
    const char *more = program_get_info(program, "env");
    bool several = b->several || b->nnodes > 1;
    char *words = NULL, **env = NULL, *kept = NULL;
    if (asprintf(&words, ENV_PARENT "=%s\n%s%s", port, several ? ENV_SEVERAL "=1\n" : "", more ? more : "") <
        0)
        return NULL;
    size_t n = 2;
    for (const char *at = words; *at; at++)
        n += *at == '\n';
    env = calloc(n, sizeof(*env));
    if (!env) {
        free(words);
        return NULL;
    }
    n = 0;
    for (char *word = strtok_r(words, "\n", &kept); word; word = strtok_r(NULL, "\n", &kept))
        env[n++] = word;
    return env;
}

/* Fills the description of one program for PMIx. An empty list of infos must be NULL: libpmix 4.2.2 reads
 * beyond it otherwise. app_free frees the lists and the strings that this function allocates; other
 * strings belong to the caller. */
static bool app_fill(struct px_app *app, const struct boot_program *program, const struct boot *b,
                     const char *port)
{
    const char *host = program_get_info(program, "host"), *folder = program_get_info(program, "wdir");
    app->cmd = program_find_command(program);
    app->argv = copy_arguments(program, app->cmd);
    app->env = build_environment(program, b, port);
    app->cwd = folder ? strdup(folder) : getcwd(NULL, 0);
    app->maxprocs = program->count;
    app->info = host ? calloc(1, sizeof(*app->info)) : NULL;
    if (!app->cmd || !app->argv || !app->env || !app->cwd || (host && !app->info))
        return false;
    if (host) {
        strcpy(app->info->key, PX_HOST);
        app->info->value = (struct px_value){.type = PX_STRING, .data.string = (char *)(uintptr_t)host};
        app->ninfo = 1;
    }
    return true;
}

static void app_free(struct px_app *app)
{
    free(app->cmd);
    free(app->argv);
    if (app->env)
        free(app->env[0]);
    free(app->env);
    free(app->cwd);
    free(app->info);
}

/* ---- the answer ---- */

struct started {
    struct pmix_answer *answer;
    char id[BOOT_SPAWN_ID];
};

static void pmix_on_spawned(int status, char *nspace, void *ctx)
{
    struct started *s = ctx;
    if (nspace)
        snprintf(s->id, sizeof(s->id), "%s", nspace);
    pmix_answer_complete(status, s->answer);
}

static int spawn_request(px_spawn_nb spawn, const struct px_app *apps, int n, char id[BOOT_SPAWN_ID])
{
    struct started *s = calloc(1, sizeof(*s));
    if (!s || !(s->answer = pmix_answer_new())) {
        free(s);
        return PX_NO_MEMORY;
    }
    int status = spawn(NULL, 0, apps, (size_t)n, pmix_on_spawned, s);
    if (status == PX_SUCCESS) {
        if (!pmix_answer_wait(s->answer))
            return PX_NO_ANSWER; /* a late answer is written through the pointers, so they are not freed */
        status = s->answer->status;
    }
    memcpy(id, s->id, sizeof(s->id));
    pmix_answer_free(s->answer);
    free(s);
    return status == PX_OPERATION_SUCCEEDED ? PX_SUCCESS : status;
}

int pmix_spawn_start(px_spawn_nb spawn, const struct boot *b, const struct boot_program *programs, int n,
                     const char *port, char id[BOOT_SPAWN_ID])
{
    struct px_app *apps = calloc((size_t)n, sizeof(*apps));
    bool good = apps != NULL;
    for (int i = 0; i < n && good; i++)
        good = app_fill(&apps[i], &programs[i], b, port);
    int status = good ? spawn_request(spawn, apps, n, id) : PX_NO_MEMORY;
    for (int i = 0; i < n && apps; i++)
        app_free(&apps[i]);
    free(apps);
    return status;
}
