/* shell.c: builds the command line of a remote shell and runs it. A secret is passed through the shell's
 * standard input, never on a command line, where every user of the host could read it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options/options.h"
#include "local/spawn.h"

extern char **environ;

bool shell_starts_all_hosts(const struct shell *s)
{
    return !*s->command && strcmp(s->launcher, "slurm") == 0;
}

const char *shell_name(const struct shell *s)
{
    return *s->command ? s->command : shell_starts_all_hosts(s) ? "srun" : s->launcher;
}

/* Quotes a word if needed: a remote shell passes its arguments to another shell. */
static char *shell_quote_word(const char *word)
{
    struct buf b = {0};
    if (word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,+@%-")] == '\0')
        return xstrdup(word);
    buf_add(&b, "'", 1);
    for (; *word; word++) {
        if (*word == '\'')
            buf_add(&b, "'\\''", 4);
        else
            buf_add(&b, word, 1);
    }
    buf_add(&b, "'", 2);
    return b.data;
}

/* Builds srun's command: one task on each node. --overlap permits other job steps; --cpu-bind=none,
 * because mpiexec binds the ranks itself. */
static void build_srun_command(char *const *hosts, uint32_t n, struct strings *words)
{
    static const char *const fixed[] = {"srun",
                                        "--quiet",
                                        "--ntasks-per-node=1",
                                        "--overlap",
                                        "--mpi=none",
                                        "--input=all",
                                        "--cpu-bind=none",
                                        "--wait=0",
                                        "--kill-on-bad-exit=0"};
    struct buf list = {0};
    for (uint32_t i = 0; i < n; i++) {
        buf_add(&list, i ? "," : "--nodelist=", i ? 1 : 11);
        buf_add(&list, hosts[i], strlen(hosts[i]));
    }
    buf_add(&list, "", 1);
    for (size_t i = 0; i < COUNT_OF(fixed); i++)
        strings_add(words, fixed[i]);
    char *nodes = xstrf("--nodes=%u", n), *tasks = xstrf("--ntasks=%u", n);
    strings_add(words, nodes);
    strings_add(words, tasks);
    strings_add(words, list.data);
    free(nodes);
    free(tasks);
    buf_free(&list);
}

/* Builds the command to which the agent's command line is appended; false if -launcher-exec is empty. */
static bool build_shell_command(const struct shell *s, char *const *hosts, uint32_t n, struct strings *words)
{
    if (shell_starts_all_hosts(s)) {
        build_srun_command(hosts, n, words);
        return true;
    }
    char *copy = xstrdup(shell_name(s)), *save = NULL;
    for (char *w = strtok_r(copy, " \t", &save); w; w = strtok_r(NULL, " \t", &save))
        strings_add(words, w);
    free(copy);
    if (words->n == 0)
        return false;
    if (!*s->command && strcmp(s->launcher, "ssh") == 0) {
        /* The remote shell has no terminal to ask for a password. */
        strings_add(words, "-x");
        strings_add(words, "-oBatchMode=yes");
    }
    strings_add(words, hosts[0]);
    return true;
}

pid_t shell_start_agent(const struct shell *s, char *const *hosts, uint32_t n, const char *const *words,
                        const char *secret, char **why)
{
    struct strings all = {0};
    const char *self = self_path();
    int in[2] = {-1, -1};
    if (!build_shell_command(s, hosts, n, &all)) {
        *why = xstrdup("-launcher-exec names no command");
        return -1;
    }
    strings_add(&all, shell_starts_all_hosts(s) ? self : shell_quote_word(self));
    for (; *words; words++)
        strings_add(&all, *words);
    char *path = spawn_find(all.v[0], getenv("PATH"), ".");
    pid_t pid = -1;
    if (path && pipe2(in, O_CLOEXEC) == 0) {
        ssize_t sent = write(in[1], secret, strlen(secret));
        (void)sent; /* an empty pipe has room for the cookie */
        close(in[1]);
        struct spawn sp = {.path = path, .argv = all.v, .env = environ, .in = in[0], .out = 2, .err = 2};
        pid = spawn_process(&sp, NULL);
    }
    if (pid < 0)
        *why = xstrf("the command %s, which should start its agent, cannot be run: %s", all.v[0],
                     strerror(errno));
    if (in[0] >= 0)
        close(in[0]);
    free(path);
    strings_free(&all);
    return pid;
}
