/* run.c: one job: runs mpiexec with virtual nodes and tunables, several times, and reads the figures that its
 * rank 0 reports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ib.h"
#include "peers.h"

enum { NAME_MAX_LEN = 96, ARGUMENTS_MAX = 96, TIMEOUT_SECONDS = 180 };

struct figure {
    char name[NAME_MAX_LEN];
    double value;
};

struct ib_figures {
    struct figure *list;
    int n, room;
};

static void run_store_figure(struct ib_figures *f, char kind, const char *name, double value)
{
    for (int i = 0; i < f->n; i++) {
        double *old = &f->list[i].value;
        if (strcmp(f->list[i].name, name) != 0)
            continue;
        if (kind == IB_COUNT || (kind == IB_TIME && value < *old) || (kind == IB_RATE && value > *old))
            *old = value;
        return;
    }
    if (f->n == f->room) {
        f->room = f->room ? 2 * f->room : 64;
        f->list = realloc(f->list, sizeof(*f->list) * (size_t)f->room);
        if (!f->list)
            abort();
    }
    snprintf(f->list[f->n].name, sizeof(f->list[f->n].name), "%s", name);
    f->list[f->n++].value = value;
}

double ib_find_figure(const struct ib_figures *f, const char *name, ...)
{
    char wanted[NAME_MAX_LEN];
    va_list ap;
    va_start(ap, name);
    vsnprintf(wanted, sizeof(wanted), name, ap);
    va_end(ap);
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->list[i].name, wanted) == 0)
            return f->list[i].value;
    return NAN;
}

void ib_figures_free(struct ib_figures *f)
{
    free(f->list);
    free(f);
}

static void run_print_progress(struct ib_driver *d, const struct ib_job *job, int repetition)
{
    if (d->terminal)
        fprintf(stderr, "\r\033[K%s: %d ranks, run %d, %s (%.0f s)", job->topic, job->ranks, repetition + 1,
                job->peer          ? job->peer->name
                : job->settings[0] ? job->settings
                                   : "defaults",
                ib_now_seconds() - d->started);
    else if (strcmp(d->doing, job->topic) != 0)
        fprintf(stderr, "fishplate-lab %s: %s (%.0f s)\n", d->command, job->topic,
                ib_now_seconds() - d->started);
    snprintf(d->doing, sizeof(d->doing), "%s", job->topic);
}

/* Cuts text at spaces, in place, and puts the word `before` in front of each part. */
static int run_split_words(char *text, const char *before, char **argv, int n)
{
    for (char *save = NULL, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (n + 2 >= ARGUMENTS_MAX)
            break;
        if (before)
            argv[n++] = (char *)before;
        argv[n++] = word;
    }
    return n;
}

static void run_exec_job(struct ib_driver *d, const struct ib_job *job, char *args)
{
    char ranks[16], nodes[16], timeout[16], *settings = strdup(job->settings), *argv[ARGUMENTS_MAX];
    int n = 0;
    snprintf(ranks, sizeof(ranks), "%d", job->ranks);
    snprintf(nodes, sizeof(nodes), "%d", job->nodes);
    snprintf(timeout, sizeof(timeout), "%d", TIMEOUT_SECONDS);
    const char *front[] = {d->mpiexec, "-n", ranks, "-vnodes", nodes, "-timeout", timeout, "-stdin", "none"};
    for (size_t i = 0; i < sizeof(front) / sizeof(front[0]); i++)
        argv[n++] = (char *)front[i];
    if (job->ranks <= d->cores) {
        argv[n++] = "-bind-to";
        argv[n++] = "core";
    }
    if (job->hcas) {
        argv[n++] = "-hcas";
        argv[n++] = (char *)job->hcas;
    }
    if (job->alternate_nodes) {
        argv[n++] = "-map-by";
        argv[n++] = "node";
    }
    if (settings)
        n = run_split_words(settings, "-genv", argv, n);
    argv[n++] = d->program;
    argv[n++] = (char *)d->command;
    argv[n++] = "rank";
    argv[n++] = (char *)job->topic;
    n = run_split_words(args, NULL, argv, n);
    argv[n] = NULL;
    unsetenv("FISHPLATE_STATS");
    execv(d->mpiexec, argv);
    fprintf(stderr, "fishplate-lab %s: cannot run %s: %s\n", d->command, d->mpiexec, strerror(errno));
    _exit(127);
}

/* Reads the output of the job's rank 0: stores figures and prints all other lines. */
static void run_read_output(struct ib_driver *d, FILE *in, struct ib_figures *f)
{
    char line[512], name[NAME_MAX_LEN], kind;
    double value;
    while (fgets(line, sizeof(line), in))
        if (sscanf(line, "figure %c %95s %lf", &kind, name, &value) == 3)
            run_store_figure(f, kind, name, value);
        else if (strncmp(line, "adapter ", 8) == 0)
            snprintf(d->adapter, sizeof(d->adapter), "%.*s", (int)strcspn(line + 8, "\n"), line + 8);
        else
            fputs(line, stderr);
}

static bool run_job_once(struct ib_driver *d, const struct ib_job *job, char *args, struct ib_figures *f)
{
    int fd[2], status = -1;
    if (pipe(fd) != 0)
        return false;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(fd[1], STDOUT_FILENO);
        close(fd[0]);
        close(fd[1]);
        if (job->peer)
            ib_peer_exec(job, args);
        run_exec_job(d, job, args);
    }
    close(fd[1]);
    FILE *in = fdopen(fd[0], "r");
    if (child > 0 && in)
        run_read_output(d, in, f);
    if (in)
        fclose(in);
    if (child > 0)
        waitpid(child, &status, 0);
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct ib_figures *ib_run_job(struct ib_driver *d, const struct ib_job *job, const char *args, ...)
{
    struct ib_figures *f = calloc(1, sizeof(*f));
    int repeat = job->repeat ? job->repeat : d->repeat;
    char text[512];
    va_list ap;
    if (!f)
        abort();
    va_start(ap, args);
    int used = vsnprintf(text, sizeof(text) - 16, args, ap);
    va_end(ap);
    snprintf(text + used, sizeof(text) - (size_t)used, " quick=%d", d->quick);
    for (int i = 0; i < repeat; i++) {
        run_print_progress(d, job, i);
        d->jobs++;
        if (run_job_once(d, job, text, f))
            continue;
        if (job->peer) {
            ib_peers_report_failure(job->peer);
            break;
        }
        d->failures++;
        fprintf(stderr,
                "%sfishplate-lab %s: this command failed: mpiexec -n %d -vnodes %d%s%s%s with %s: "
                "fishplate-lab %s "
                "rank %s "
                "%s\n",
                d->terminal ? "\r\033[K" : "", d->command, job->ranks, job->nodes,
                job->alternate_nodes ? " -map-by node" : "", job->hcas ? " -hcas " : "",
                job->hcas ? job->hcas : "", job->settings[0] ? job->settings : "the default tunables",
                d->command, job->topic, text);
        break;
    }
    return f;
}
