/* grow.c: turns a request to spawn into the command line of another mpiexec and watches that process. It
 * reports the state of its job through a pipe: 'i' when a rank is in MPI_Init, 'f' and a sentence when the
 * job could not be started, 'd' at the end when all of its ranks have died.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "grow.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/launch_env.h"
#include "boot/pmi_line.h"
#include "rankenv.h"
#include "spawn.h"

extern char **environ;

#define WHY_MAX 4000

/* One job that was spawned. */
struct shoot {
    struct shoot *next;
    unsigned number;
    pid_t pid;         /* 0: it has ended */
    uint32_t rank;     /* that asked for it */
    bool inited, told; /* told: the rank knows why it failed */
    struct watch news;
    struct job *job;
    struct buf text;
    char *failure;
};

/* What a request says of one program. */
struct wanted {
    const char *command, *host, *wdir, *path;
    long n;
    struct strings args, env;
};

struct request {
    struct wanted *programs;
    unsigned n;
    struct strings preputs;
};

/* "key=value" lines; values of our own library are escaped. */
static bool read_line(char *line, char **key, char **value, bool escaped)
{
    char *eq = strchr(line, '=');
    if (!eq)
        return false;
    *eq = '\0';
    *key = line;
    *value = eq + 1;
    if (escaped)
        pmi_unescape_all(*value);
    return true;
}

static void take_env(struct wanted *w, char *value)
{
    for (char *line = strtok(value, "\n"); line; line = strtok(NULL, "\n"))
        if (strchr(line, '=') && line[0] != '=')
            strings_add(&w->env, line);
}

static void take_info(struct wanted *w, const char *key, char *value)
{
    if (strcmp(key, "host") == 0 || strcmp(key, "hosts") == 0)
        w->host = value;
    else if (strcmp(key, "wdir") == 0 || strcmp(key, "wd") == 0)
        w->wdir = value;
    else if (strcmp(key, "path") == 0)
        w->path = value;
    else if (strcmp(key, "env") == 0)
        take_env(w, value);
}

static void add_preput(struct request *r, const char *key, const char *value)
{
    char *text = xstrf("%s=%s", key, value);
    strings_add(&r->preputs, text);
    free(text);
}

static void take_word(struct request *r, struct wanted *w, const char *key, char *value)
{
    static const char *info_key, *preput_key;
    if (strcmp(key, "nprocs") == 0)
        parse_number(value, 1, 1 << 20, &w->n);
    else if (strcmp(key, "execname") == 0)
        w->command = value;
    else if (strncmp(key, "argcnt", 6) == 0)
        return;
    else if (strncmp(key, "arg", 3) == 0)
        strings_add(&w->args, value);
    else if (strncmp(key, "info_key_", 9) == 0)
        info_key = value;
    else if (strncmp(key, "info_val_", 9) == 0 && info_key)
        take_info(w, info_key, value);
    else if (strncmp(key, "preput_key_", 11) == 0)
        preput_key = value;
    else if (strncmp(key, "preput_val_", 11) == 0 && preput_key)
        add_preput(r, preput_key, value);
}

static const char *parse(char *lines, struct request *r)
{
    bool escaped = false;
    *r = (struct request){0};
    for (char *next, *line = lines; *line; line = next) {
        char *key, *value;
        size_t len = strcspn(line, "\n");
        next = line + len + (line[len] == '\n');
        line[len] = '\0';
        if (!read_line(line, &key, &value, escaped))
            continue;
        if (strcmp(key, "escaped") == 0) {
            escaped = true;
        } else if (strcmp(key, "mcmd") == 0) {
            r->programs = xrealloc(r->programs, (r->n + 1) * sizeof(*r->programs));
            r->programs[r->n++] = (struct wanted){0};
        } else if (r->n > 0) {
            take_word(r, &r->programs[r->n - 1], key, value);
        }
    }
    for (unsigned i = 0; i < r->n; i++)
        if (!r->programs[i].command || !*r->programs[i].command || r->programs[i].n == 0)
            return "the request names no program, or no number of processes";
    return r->n ? NULL : "the request names no program";
}

static void request_free(struct request *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        strings_free(&r->programs[i].args);
        strings_free(&r->programs[i].env);
    }
    strings_free(&r->preputs);
    free(r->programs);
}

static long count_ranks(const struct request *r)
{
    long ranks = 0;
    for (unsigned i = 0; i < r->n; i++)
        ranks += r->programs[i].n;
    return ranks;
}

/* Builds the command line. */

static void add2(struct strings *s, const char *option, const char *value)
{
    strings_add(s, option);
    strings_add(s, value);
}

/* "[%r] " becomes "[2.%r] ": which job, then the rank in it. */
static char *inner_prefix(const char *prefix, unsigned number)
{
    const char *at = strstr(prefix, "%r");
    size_t before = at ? (size_t)(at - prefix) : 0;
    return xstrf("%.*s%u.%s", (int)before, prefix, number, prefix + before);
}

/* A rank's host by the user's words, else the hosts of the job. */
static void add_hosts(struct strings *s, const struct job *j, const struct request *r)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    bool said = false;
    if (!f)
        die(1, "Out of memory.");
    for (unsigned i = 0; i < r->n; i++)
        said |= r->programs[i].host != NULL;
    if (said) {
        const char *comma = "";
        for (unsigned i = 0; i < r->n; i++, comma = ",") {
            const struct wanted *w = &r->programs[i];
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
        die(1, "Out of memory.");
    if (*text)
        add2(s, "-hosts", text);
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
        add2(s, "-genvlist", list);
        free(list);
    }
    for (unsigned i = 0; i < o->genv.n; i++)
        add2(s, "-genv", o->genv.v[i]);
}

/* Virtual nodes of the new job are those of this one: the same fabric connects them. */
static void add_vnodes(struct strings *s, const struct job *j, const struct request *r)
{
    const struct options *o = j->opt;
    const char *fabric = getenv(ENV_SOFTIB_FABRIC);
    long ranks = count_ranks(r);
    if (!o->vnodes)
        return;
    char *text = xstrf("%ld", ranks < j->layout->nnodes ? ranks : (long)j->layout->nnodes);
    add2(s, "-vnodes", text);
    free(text);
    if (o->grown_fd > 0)
        return; /* the first mpiexec said the rest, and it is passed on with the other variables */
    if (!fabric || !strstr(fabric, "nodes=")) {
        text = xstrf(ENV_SOFTIB_FABRIC "=nodes=%u name=%s%s%s", j->layout->nnodes, j->id, fabric ? " " : "",
                     fabric ? fabric : "");
        add2(s, "-genv", text);
        free(text);
    }
    text = xstrf(ENV_SOFTIB_TRACER "=%d", (int)getpid());
    add2(s, "-genv", text);
    free(text);
}

static void add_programs(struct strings *s, const struct request *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct wanted *w = &r->programs[i];
        char *n = xstrf("%ld", w->n);
        char *found = w->path ? spawn_find(w->command, w->path, w->wdir ? w->wdir : ".") : NULL;
        if (i > 0)
            strings_add(s, ":");
        add2(s, "-n", n);
        if (w->wdir)
            add2(s, "-wdir", w->wdir);
        for (unsigned k = 0; k < w->env.n; k++)
            add2(s, "-env", w->env.v[k]);
        strings_add(s, found ? found : w->command);
        for (unsigned k = 0; k < w->args.n; k++)
            strings_add(s, w->args.v[k]);
        free(found);
        free(n);
    }
}

static void command_line(const struct job *j, const struct request *r, const struct shoot *shoot, int fd,
                         struct strings *s)
{
    const struct options *o = j->opt;
    char *news = xstrf("%d", fd);
    long together = (long)j->layout->size + count_ranks(r); /* the universe has room for all that run */
    char *universe = xstrf("%ld", together > (long)j->universe ? together : (long)j->universe);
    strings_add(s, self_path());
    add2(s, "-usize", universe);
    free(universe);
    add2(s, "-grown", news);
    free(news);
    if (o->recovery && j->notices.fd >= 0) {
        news = xstrf("%d,%d", j->notices.fd, j->notices.bell.fd);
        add2(s, "-notices", news);
        free(news);
    }
    add2(s, "-stdin", "none");
    strings_add(s, "-oversubscribe");
    if (o->prefix) {
        char *prefix = inner_prefix(o->prefix, shoot->number);
        add2(s, "-prepend-pattern", prefix);
        free(prefix);
    }
    if (o->verbose)
        strings_add(s, "-verbose");
    if (o->keep_running)
        strings_add(s, "-keep-running");
    if (o->launcher && j->remote)
        add2(s, "-launcher", o->launcher);
    if (o->launcher_exec)
        add2(s, "-launcher-exec", o->launcher_exec);
    char *beat = xstrf("%ld", o->heartbeat);
    add2(s, "-heartbeat", beat);
    free(beat);
    add_environment(s, o);
    if (o->grown_fd <= 0) {
        add2(s, "-genv", "PMI_SPAWNED=1");
        if (j->layout->nnodes > 1)
            add2(s, "-genv", ENV_SEVERAL "=1");
    }
    add_hosts(s, j, r);
    add_vnodes(s, j, r);
    for (unsigned i = 0; i < r->preputs.n; i++)
        add2(s, "-preput", r->preputs.v[i]);
    add_programs(s, r);
}

/* What the other mpiexec tells. */

static void shoot_failed(struct shoot *s, const char *why)
{
    if (!s->failure)
        s->failure = xstrdup(why);
}

static void on_news(void *ctx, uint32_t events)
{
    struct shoot *s = ctx;
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

static pid_t start_mpiexec(struct job *j, const struct request *r, struct shoot *s)
{
    int ends[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct strings words = {0};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        close(null);
        return -1;
    }
    command_line(j, r, s, ends[1], &words);
    const bool told = j->notices.fd >= 0;
    const int kept[] = {ends[1], told ? j->notices.fd : -1, told ? j->notices.bell.fd : -1, -1};
    struct spawn spawn = {.path = self_path(),
                          .argv = words.v,
                          .env = environ,
                          .in = null,
                          .out = STDOUT_FILENO,
                          .err = STDERR_FILENO,
                          .keep = kept};
    pid_t pid = spawn_process(&spawn, NULL);
    close(ends[1]);
    close(null);
    strings_free(&words);
    if (pid <= 0) {
        close(ends[0]);
        return -1;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    loop_add(&j->loop, &s->news, ends[0], EPOLLIN);
    return pid;
}

static void forget(struct job *j, struct shoot *gone)
{
    struct shoot **at = &j->shoots;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    buf_free(&gone->text);
    free(gone->failure);
    free(gone);
}

/* Why one failed is kept until the rank that asked for it has heard it, or has ended. */
static void forget_failed(struct job *j)
{
    for (struct shoot *s = j->shoots, *next; s; s = next) {
        next = s->next;
        if (s->pid == 0 && (s->told || j->ranks[s->rank].state == RANK_ENDED))
            forget(j, s);
    }
}

unsigned grow_start(struct job *j, uint32_t rank, char *lines, char **why)
{
    struct request r;
    const char *bad = parse(lines, &r);
    struct shoot *s = xcalloc(1, sizeof(*s));
    forget_failed(j);
    *s = (struct shoot){.number = ++j->shoots_so_far, .job = j, .rank = rank};
    s->news = (struct watch){.fd = -1, .fn = on_news, .ctx = s};
    if (!bad && j->ending)
        bad = "the job is being ended";
    if (!bad) {
        s->pid = start_mpiexec(j, &r, s);
        bad = s->pid > 0 ? NULL : "mpiexec cannot start another process";
    }
    request_free(&r);
    free(lines);
    if (bad) {
        *why = xstrdup(bad);
        free(s);
        return 0;
    }
    s->next = j->shoots;
    j->shoots = s;
    if (j->on_grow)
        j->on_grow(j->grow_ctx);
    return s->number;
}

const char *grow_failure(struct job *j, unsigned number)
{
    struct shoot *s = j->shoots;
    while (s && s->number != number)
        s = s->next;
    if (!s)
        return NULL;
    s->told = s->failure != NULL;
    return s->failure;
}

bool grow_idle(const struct job *j)
{
    for (const struct shoot *s = j->shoots; s; s = s->next)
        if (s->pid)
            return false;
    return true;
}

void grow_signal(struct job *j, int sig)
{
    for (const struct shoot *s = j->shoots; s; s = s->next)
        if (s->pid)
            kill(s->pid, sig == SIGSTOP ? SIGTSTP : sig);
}

bool grow_child_ended(struct job *j, pid_t pid, int status, int *failed)
{
    struct shoot *s = j->shoots;
    *failed = 0;
    while (s && s->pid != pid)
        s = s->next;
    if (!s)
        return false;
    while (s->news.fd >= 0)
        on_news(s, 0);
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    s->pid = 0;
    buf_add(&s->text, "", 1);
    const char *text = buf_head(&s->text) + s->inited;
    if (!s->inited || *text == 'f') {
        shoot_failed(s, *text == 'f' ? text + 1 : "the new processes ended without calling MPI_Init");
    } else {
        j->dead.shoot = *text == 'd';
        *failed = j->dead.shoot ? 0 : code;
        forget(j, s);
    }
    return true;
}

static bool tell(const struct options *o, const char *data, size_t len)
{
    if (o->grown_fd <= 0)
        return false;
    ssize_t n = write((int)o->grown_fd, data, len);
    return n == (ssize_t)len;
}

bool grow_tell_inited(const struct options *o)
{
    return tell(o, "i", 1);
}

bool grow_tell_nobody_left(const struct options *o)
{
    return tell(o, "d", 1);
}

bool grow_tell_failed(const struct options *o, const char *why)
{
    char *text = xstrf("f%s", why);
    bool told = tell(o, text, strlen(text));
    free(text);
    return told;
}
