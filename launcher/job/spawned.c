/* spawned.c: turns a request to spawn into the command of another mpiexec and watches that process. It
 * reports the state of its job through a pipe: 'i' when a rank is in MPI_Init, 'f' and a sentence when the
 * job could not be started, 'd' at the end when all of its ranks have died.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "job/spawned.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/spawn_command.h"
#include "boot/launch_env.h"
#include "local/spawn.h"
#include "job/spawn_request.h"

extern char **environ;

#define WHY_MAX 4000

/* A job that a rank of this job spawned, run by another mpiexec. */
struct spawned_job {
    struct spawned_job *next;
    unsigned number;
    pid_t pid;                 /* 0: its mpiexec has ended */
    uint32_t rank;             /* the rank that requested it */
    bool inited, failure_sent; /* failure_sent: the requesting rank received the reason of the failure */
    struct watch news;
    struct job *job;
    struct buf text;
    char *failure;
};

/* Building the command line of the other mpiexec. */

static void spawned_add_option(struct strings *s, const char *option, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void spawned_add_option(struct strings *s, const char *option, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *value = xvstrf(fmt, args);
    va_end(args);
    strings_add(s, option);
    strings_add(s, value);
    free(value);
}

/* Adds the number of the spawned job to the prefix of output lines: "[%r] " becomes "[2.%r] ". */
static char *make_spawned_prefix(const char *prefix, unsigned number)
{
    const char *at = strstr(prefix, "%r");
    size_t before = at ? (size_t)(at - prefix) : 0;
    return xstrf("%.*s%u.%s", (int)before, prefix, number, prefix + before);
}

/* Adds -hosts: the hosts named by the info key `host`, else those of this job. */
static void add_hosts(struct strings *s, const struct job *j, const struct spawn_request *r)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    bool named = false;
    if (!f)
        launcher_die(1, "Out of memory.");
    for (unsigned i = 0; i < r->n; i++)
        named |= r->programs[i].host != NULL;
    if (named) {
        const char *comma = "";
        for (unsigned i = 0; i < r->n; i++, comma = ",") {
            const struct spawn_program *w = &r->programs[i];
            const char *host = w->host ? w->host : j->hosts[0].name;
            bool counted = strpbrk(host, ":,") != NULL;
            fprintf(f, counted ? "%s%s" : "%s%s:%ld", comma, host, w->n);
        }
    } else if (j->remote) {
        for (uint32_t i = 0; i < j->nhosts; i++)
            fprintf(f, "%s%s:%u", i ? "," : "", j->hosts[i].name,
                    j->hosts[i].nranks ? j->hosts[i].nranks : 1);
    }
    if (fclose(f) != 0)
        launcher_die(1, "Out of memory.");
    if (*text)
        spawned_add_option(s, "-hosts", "%s", text);
    free(text);
}

static void add_environment(struct strings *s, const struct options *o)
{
    if (o->env_pass == ENV_PASS_NONE)
        strings_add(s, "-genvnone");
    if (o->env_pass == ENV_PASS_LIST) {
        char *list = xstrdup("");
        for (unsigned i = 0; i < o->genvlist.n; i++) {
            char *longer = xstrf("%s%s%s", list, *list ? "," : "", o->genvlist.v[i]);
            free(list);
            list = longer;
        }
        spawned_add_option(s, "-genvlist", "%s", list);
        free(list);
    }
    for (unsigned i = 0; i < o->genv.n; i++)
        spawned_add_option(s, "-genv", "%s", o->genv.v[i]);
}

/* Adds -vnodes. The virtual nodes of the new job join the fabric of this job, so that both can
 * communicate. */
static void add_vnodes(struct strings *s, const struct job *j, const struct spawn_request *r)
{
    const struct options *o = j->opt;
    const char *fabric = getenv(ENV_SOFTIB_FABRIC);
    long ranks = spawn_request_ranks(r);
    if (!o->vnodes)
        return;
    spawned_add_option(s, "-vnodes", "%ld", ranks < j->layout->nnodes ? ranks : (long)j->layout->nnodes);
    if (o->report_fd > 0)
        return; /* the first mpiexec has defined the fabric; -genv passes it on */
    if (!fabric || !strstr(fabric, "nodes="))
        spawned_add_option(s, "-genv", ENV_SOFTIB_FABRIC "=nodes=%u name=%s%s%s", j->layout->nnodes, j->id,
                           fabric ? " " : "", fabric ? fabric : "");
    spawned_add_option(s, "-genv", ENV_SOFTIB_TRACER "=%d", (int)getpid());
}

static void add_programs(struct strings *s, const struct spawn_request *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct spawn_program *w = &r->programs[i];
        char *found = w->path ? spawn_find(w->command, w->path, w->wdir ? w->wdir : ".") : NULL;
        if (i > 0)
            strings_add(s, ":");
        spawned_add_option(s, "-n", "%ld", w->n);
        if (w->wdir)
            spawned_add_option(s, "-wdir", "%s", w->wdir);
        for (unsigned k = 0; k < w->env.n; k++)
            spawned_add_option(s, "-env", "%s", w->env.v[k]);
        strings_add(s, found ? found : w->command);
        for (unsigned k = 0; k < w->args.n; k++)
            strings_add(s, w->args.v[k]);
        free(found);
    }
}

static void command_line(const struct job *j, const struct spawn_request *r,
                         const struct spawned_job *spawned, int fd, struct strings *s)
{
    const struct options *o = j->opt;
    const long together =
        /* MPI_UNIVERSE_SIZE is at least the number of running ranks */
        (long)j->layout->size + spawn_request_ranks(r);
    spawned_add_option(s, "-usize", "%ld", together > (long)j->universe ? together : (long)j->universe);
    spawned_add_option(s, "-report-fd", "%d", fd);
    if (o->recovery && j->notices.fd >= 0)
        spawned_add_option(s, "-notices", "%d,%d", j->notices.fd, j->notices.bell.fd);
    spawned_add_option(s, "-stdin", "none");
    strings_add(s, "-oversubscribe");
    if (o->prefix) {
        char *prefix = make_spawned_prefix(o->prefix, spawned->number);
        spawned_add_option(s, "-prepend-pattern", "%s", prefix);
        free(prefix);
    }
    if (o->verbose)
        strings_add(s, "-verbose");
    if (o->keep_running)
        strings_add(s, "-keep-running");
    if (o->launcher && j->remote)
        spawned_add_option(s, "-launcher", "%s", o->launcher);
    if (o->launcher_exec)
        spawned_add_option(s, "-launcher-exec", "%s", o->launcher_exec);
    if (o->network)
        spawned_add_option(s, "-iface", "%s", o->network);
    spawned_add_option(s, "-heartbeat", "%ld", o->heartbeat);
    add_environment(s, o);
    if (o->report_fd <= 0) {
        spawned_add_option(s, "-genv", "PMI_SPAWNED=1");
        if (j->layout->nnodes > 1)
            spawned_add_option(s, "-genv", ENV_SEVERAL "=1");
    }
    add_hosts(s, j, r);
    add_vnodes(s, j, r);
    for (unsigned i = 0; i < r->preputs.n; i++)
        spawned_add_option(s, "-preput", "%s", r->preputs.v[i]);
    add_programs(s, r);
}

/* Handling reports of the other mpiexec. */

static void spawned_fail(struct spawned_job *s, const char *why)
{
    if (!s->failure)
        s->failure = xstrdup(why);
}

static void spawned_on_report(void *ctx, uint32_t events)
{
    struct spawned_job *s = ctx;
    char data[512];
    ssize_t n = read(s->news.fd, data, sizeof(data));
    (void)events;
    if (n <= 0) {
        loop_close(&s->job->loop, &s->news);
        return;
    }
    if (buf_size(&s->text) < WHY_MAX)
        buf_add(&s->text, data, (size_t)n);
    if (*buf_head(&s->text) == 'i')
        s->inited = true;
}

static int write_command(const struct job *j, const struct spawn_request *r, const struct spawned_job *s,
                         int news)
{
    struct strings words = {0};
    command_line(j, r, s, news, &words);
    const int fd = spawn_command_write(words.v);
    strings_free(&words);
    return fd;
}

/* Passes the command in an inherited file, because all users can read the arguments of a process. */
static pid_t run_mpiexec(const struct job *j, int command, int news)
{
    const bool notices = j->notices.fd >= 0;
    const int kept[] = {command, news, notices ? j->notices.fd : -1, notices ? j->notices.bell.fd : -1, -1};
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char *number = xstrf("%d", command);
    char *words[] = {(char *)self_path(), (char *)COMMAND_OPTION, number, NULL};
    struct spawn spawn = {.path = self_path(),
                          .argv = words,
                          .env = environ,
                          .in = null,
                          .out = STDOUT_FILENO,
                          .err = STDERR_FILENO,
                          .keep = kept};
    const pid_t pid = null >= 0 ? spawn_process(&spawn, NULL) : -1;
    free(number);
    if (null >= 0)
        close(null);
    return pid;
}

static pid_t start_mpiexec(struct job *j, const struct spawn_request *r, struct spawned_job *s)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    const int command = write_command(j, r, s, ends[1]);
    const pid_t pid = command >= 0 ? run_mpiexec(j, command, ends[1]) : -1;
    close(ends[1]);
    if (command >= 0)
        close(command);
    if (pid <= 0) {
        close(ends[0]);
        return -1;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    loop_add(&j->loop, &s->news, ends[0], EPOLLIN);
    return pid;
}

static void spawned_remove(struct job *j, struct spawned_job *gone)
{
    struct spawned_job **at = &j->spawned;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    buf_free(&gone->text);
    free(gone->failure);
    free(gone);
}

/* The reason of a failure is stored until the requesting rank has received it or has ended. */
static void free_reported_failures(struct job *j)
{
    for (struct spawned_job *s = j->spawned, *next; s; s = next) {
        next = s->next;
        if (s->pid == 0 && (s->failure_sent || j->ranks[s->rank].state == RANK_ENDED))
            spawned_remove(j, s);
    }
}

unsigned spawned_start(void *job, uint32_t rank, char *lines, char **why)
{
    struct job *j = job;
    struct spawn_request r;
    const char *bad = spawn_request_parse(lines, &r);
    struct spawned_job *s = xcalloc(1, sizeof(*s));
    free_reported_failures(j);
    *s = (struct spawned_job){.number = ++j->spawned_count, .job = j, .rank = rank};
    s->news = (struct watch){.fd = -1, .fn = spawned_on_report, .ctx = s};
    if (!bad && j->ending)
        bad = "the job is being ended";
    if (!bad) {
        s->pid = start_mpiexec(j, &r, s);
        bad = s->pid > 0 ? NULL : "mpiexec cannot start another process";
    }
    spawn_request_free(&r);
    free(lines);
    if (bad) {
        *why = xstrdup(bad);
        free(s);
        return 0;
    }
    s->next = j->spawned;
    j->spawned = s;
    if (j->on_first_spawn)
        j->on_first_spawn(j->spawn_ctx);
    return s->number;
}

const char *spawned_failure(void *job, unsigned number)
{
    const struct job *j = job;
    struct spawned_job *s = j->spawned;
    while (s && s->number != number)
        s = s->next;
    if (!s)
        return NULL;
    s->failure_sent = s->failure != NULL;
    return s->failure;
}

bool spawned_are_idle(const struct job *j)
{
    for (const struct spawned_job *s = j->spawned; s; s = s->next)
        if (s->pid)
            return false;
    return true;
}

void spawned_signal(struct job *j, int sig)
{
    for (const struct spawned_job *s = j->spawned; s; s = s->next)
        if (s->pid)
            kill(s->pid, sig == SIGSTOP ? SIGTSTP : sig);
}

bool spawned_handle_child_end(struct job *j, pid_t pid, int status, int *failed)
{
    struct spawned_job *s = j->spawned;
    *failed = 0;
    while (s && s->pid != pid)
        s = s->next;
    if (!s)
        return false;
    while (s->news.fd >= 0)
        spawned_on_report(s, 0);
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    s->pid = 0;
    buf_add(&s->text, "", 1);
    const char *text = buf_head(&s->text) + s->inited;
    if (!s->inited || *text == 'f') {
        spawned_fail(s, *text == 'f' ? text + 1 : "the new processes ended without calling MPI_Init");
    } else {
        j->dead.spawned = *text == 'd';
        *failed = j->dead.spawned ? 0 : code;
        spawned_remove(j, s);
    }
    return true;
}

static bool spawned_report_parent(const struct options *o, const char *data, size_t len)
{
    if (o->report_fd <= 0)
        return false;
    ssize_t n = write((int)o->report_fd, data, len);
    return n == (ssize_t)len;
}

bool spawned_report_inited(const struct options *o)
{
    return spawned_report_parent(o, "i", 1);
}

bool spawned_report_nobody_left(const struct options *o)
{
    return spawned_report_parent(o, "d", 1);
}

bool spawned_report_failed(const struct options *o, const char *why)
{
    char *text = xstrf("f%s", why);
    bool done = spawned_report_parent(o, text, strlen(text));
    free(text);
    return done;
}
