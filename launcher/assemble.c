/* assemble.c: assembles the job: places the ranks, makes one plan per host, runs this host's plan here and
 * sends the others to agents.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "assemble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "job/query.h"
#include "boot/nodemap.h"
#include "local/debugger.h"
#include "local/foreign.h"
#include "job/spawned.h"
#include "local/guard.h"
#include "job/job.h"
#include "local/local.h"
#include "local/rankenv.h"
#include "job/recover.h"
#include "remote/remote.h"
#include "local/spawn.h"

extern char **environ;

struct run {
    struct options *opt;
    struct hosts hosts;
    struct layout layout;
    struct app *apps; /* with -gdb or -xterm 2 * n entries: entry n + i runs program i under the debugger */
    uint32_t napps;
    struct plan **plans; /* [hosts.n]; NULL: the host runs no ranks */
    char job_id[64];
    char *node_map;
    bool background;
};

static bool env_entry_is_listed(const struct strings *names, const char *entry)
{
    size_t len = strcspn(entry, "=");
    for (unsigned i = 0; i < names->n; i++)
        if (strlen(names->v[i]) == len && strncmp(names->v[i], entry, len) == 0)
            return true;
    return false;
}

static void set_env_entry(struct strings *env, char *entry)
{
    size_t len = strcspn(entry, "=") + 1;
    for (unsigned i = 0; i < env->n; i++)
        if (strncmp(env->v[i], entry, len) == 0) {
            env->v[i] = entry;
            return;
        }
    env->v = xrealloc(env->v, (env->n + 2) * sizeof(*env->v));
    env->v[env->n++] = entry;
    env->v[env->n] = NULL;
}

/* Merges the inherited variables, then -genv, then -env; a later entry replaces an earlier one. */
static char **build_app_env(const struct options *o, const struct app_spec *a)
{
    unsigned n = 0;
    while (environ[n])
        n++;
    struct strings env = {.v = xcalloc(n + 1, sizeof(*env.v))};
    for (unsigned i = 0; i < n; i++) {
        bool pass = o->env_pass == ENV_PASS_ALL ||
                    (o->env_pass == ENV_PASS_LIST && env_entry_is_listed(&o->genvlist, environ[i]));
        if (pass && !rankenv_is_launcher_variable(environ[i]))
            env.v[env.n++] = environ[i];
    }
    for (unsigned i = 0; i < o->genv.n; i++)
        set_env_entry(&env, o->genv.v[i]);
    for (unsigned i = 0; i < a->env.n; i++)
        set_env_entry(&env, a->env.v[i]);
    return env.v;
}

/* Resolves a relative -wdir against the directory in which mpiexec was started. */
static char *get_app_wdir(const struct app_spec *a)
{
    static char *here;
    if (!here)
        here = getcwd(NULL, 0);
    if (!here)
        here = xstrdup("/");
    if (!a->wdir)
        return here;
    return a->wdir[0] == '/' ? xstrdup(a->wdir) : xstrf("%s/%s", here, a->wdir);
}

static void make_apps(struct run *r)
{
    const struct options *o = r->opt;
    char **shared = NULL;
    r->napps = o->debug == DEBUG_NOT ? o->napps : 2 * o->napps;
    r->apps = xcalloc(r->napps, sizeof(*r->apps));
    for (unsigned i = 0; i < o->napps; i++) {
        bool own = o->apps[i].env.n > 0;
        char **env = own || !shared ? build_app_env(o, &o->apps[i]) : shared;
        if (!own)
            shared = env;
        r->apps[i] = (struct app){o->apps[i].argv.v, env, get_app_wdir(&o->apps[i]), i};
        if (r->napps > o->napps)
            r->apps[o->napps + i] =
                (struct app){debug_build_command(o, o->apps[i].argv.v), env, r->apps[i].wdir, i};
    }
}

static enum stdin_from choose_stdin(const struct run *r, uint32_t rank)
{
    long who = r->opt->stdin_rank;
    if (who == STDIN_NONE || (who >= 0 && (uint32_t)who != rank))
        return STDIN_NULL;
    /* Passing the descriptor itself avoids a copy, and leaves input that rank 0 does not read to other
     * programs. */
    bool here = r->hosts.v[r->layout.host_of[rank]].local;
    return who != STDIN_ALL && here && !isatty(STDIN_FILENO) ? STDIN_INHERIT : STDIN_PIPE;
}

static struct plan *new_plan(const struct run *r, uint32_t host)
{
    struct plan *p = xcalloc(1, sizeof(*p));
    *p = (struct plan){.job = (char *)r->job_id,
                       .host = r->hosts.v[host].name,
                       .node_map = r->node_map,
                       .size = r->layout.size,
                       .universe = hosts_universe(r->opt, &r->hosts, r->layout.size),
                       .nnodes = r->layout.nnodes,
                       .bind = r->opt->bind,
                       .scatter_sockets = r->opt->map_by == MAP_SOCKET,
                       .verbose = r->opt->verbose || r->opt->show_map,
                       .recovery = r->opt->recovery,
                       .notices_fd = (int)r->opt->notices_fd,
                       .cpus_per_rank = (uint32_t)r->opt->cpus_per_rank,
                       .ppr = (uint32_t)r->opt->ppr,
                       .ppr_unit = r->opt->ppr_unit,
                       .oversubscribe = r->opt->oversubscribe,
                       .napps = r->napps,
                       .apps = r->apps};
    p->ranks = xcalloc(r->layout.size, sizeof(*p->ranks));
    return p;
}

static void make_plans(struct run *r)
{
    const struct layout *l = &r->layout;
    r->plans = xcalloc(r->hosts.n, sizeof(*r->plans));
    for (uint32_t rank = 0; rank < l->size; rank++) {
        uint32_t host = l->host_of[rank], node = l->node_of[rank];
        if (!r->plans[host])
            r->plans[host] = new_plan(r, host);
        struct plan *p = r->plans[host];
        p->ranks[p->nranks++] =
            (struct place){.rank = rank,
                           .app = l->app_of[rank] + (debug_is_selected(r->opt, rank) ? r->opt->napps : 0),
                           .node = node,
                           .local_rank = l->local_rank[rank],
                           .local_size = l->node_size[node],
                           .vnode = r->opt->vnodes ? (int32_t)node : -1,
                           .slots = l->slots ? l->slots[rank] : NULL,
                           .stdin_from = choose_stdin(r, rank)};
    }
}

/* Inspects the program files: an Open MPI program never contacts mpiexec. An MPICH program may do so by
 * PMI-1; job_report_end() reports at the end if it did not. */
static void check_foreign_programs(struct run *r)
{
    bool any = false;
    for (uint32_t i = 0; i < r->opt->napps; i++) {
        const struct app *a = &r->apps[i];
        char *path = spawn_find(a->argv[0], rankenv_get(a->env, "PATH"), a->wdir);
        struct foreign f;
        if (path && foreign_detect_program(path, &f)) {
            any = true;
            if (r->layout.size > 1 && !f.connects)
                message_print(
                    "Note: %s is linked with %s (%s), which this mpiexec of Fishplate cannot start: each of "
                    "the %u ranks "
                    "will run as a job of one rank. Start it with %s, or compile it with Fishplate's mpicc.",
                    a->argv[0], f.library, f.soname, r->layout.size, f.start);
            else if (r->layout.size > 1)
                r->opt->foreign = xstrf("%s, which is linked with %s (%s); start it with %s", a->argv[0],
                                        f.library, f.soname, f.start);
        }
        free(path);
    }
    if (!any)
        options_notice_foreign(r->opt, environ);
}

static void make_job_id(struct run *r)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
        random = (uint64_t)time(NULL) << 32;
    snprintf(r->job_id, sizeof(r->job_id), "fp%d-%016llx", (int)getpid(), (unsigned long long)random);
}

/* The host_ops of this host. `query` and `died` are NULL: `fishplate ps` reads the pages of local ranks
 * directly, and local ranks read the notices file themselves. */
static const struct host_ops local_ops = {.pmi = local_send_pmi,
                                          .input = local_write_stdin,
                                          .signal = local_signal,
                                          .pause = local_pause,
                                          .reap = local_reap,
                                          .kill = local_kill};
static const struct local_events local_events = {job_on_output,   job_on_pmi,    job_on_started,
                                                 job_on_failed,   job_on_exited, job_on_stdin_empty,
                                                 job_on_host_done};

/* Context of send_input_to_hosts: `ranks` are the ranks whose standard input is a pipe from mpiexec. */
struct feed {
    struct job *job;
    uint32_t *ranks, n;
};

static void send_input_to_hosts(void *ctx, const char *data, size_t len)
{
    struct feed *f = ctx;
    for (uint32_t i = 0; i < f->n; i++) {
        struct job_host *h = &f->job->hosts[f->job->layout->host_of[f->ranks[i]]];
        f->job->ranks[f->ranks[i]].has_input = true;
        if (h->ops && !h->done)
            h->ops->input(h->impl, f->ranks[i], data, len);
        else
            job_on_stdin_empty(h, f->ranks[i]);
    }
}

static void start_input(struct run *r, struct job *j)
{
    struct feed *f = xcalloc(1, sizeof(*f));
    f->job = j;
    f->ranks = xcalloc(r->layout.size, sizeof(*f->ranks));
    for (uint32_t rank = 0; rank < r->layout.size; rank++)
        if (choose_stdin(r, rank) == STDIN_PIPE)
            f->ranks[f->n++] = rank;
    if (f->n > 0)
        input_start(&j->input, &j->loop, f->n, !r->background, send_input_to_hosts, f);
}

/* Handles the end of a child that is not a rank: a remote shell, or the mpiexec of a spawned job. */
static void handle_other_child_end(void *ctx, pid_t pid, int status)
{
    struct job_host *any = ctx;
    int failed = 0;
    if (!spawned_handle_child_end(any->job, pid, status, &failed)) {
        remote_child_ended(ctx, pid, status);
        return;
    }
    if (failed)
        job_fail(any->job, failed, "A job that was spawned by this one failed.");
    job_finish_if_done(any->job);
}

static void watch_children(void *local)
{
    local_set_other_child_handler(local, handle_other_child_end);
}

static int run_worker(void *ctx, int front)
{
    struct run *r = ctx;
    struct job *j = xcalloc(1, sizeof(*j));
    job_init(j, r->opt, &r->layout, &r->hosts, r->job_id, r->node_map);
    /* A struct local exists even if this host has no ranks: it reaps the remote shells. */
    uint32_t here = hosts_find_local(&r->hosts);
    bool ranks_here = here < r->hosts.n && r->plans[here];
    struct job_host *host = ranks_here ? &j->hosts[here] : xcalloc(1, sizeof(*host));
    struct plan *plan = ranks_here ? r->plans[here] : new_plan(r, 0);
    host->job = j;
    struct local *local = local_new(&j->loop, plan, &local_events, host);
    if (ranks_here) {
        host->ops = &local_ops;
        host->impl = local;
        r->plans[here] = NULL;
    }
    recover_open(j, local_notices_fd(local));
    j->on_first_spawn = watch_children;
    j->spawn_ctx = local;
    remote_start(j, r->plans);
    plan->one_machine = !j->remote;
    if (j->remote) {
        watch_children(local);
        query_open(j);
    }
    if (ranks_here && !j->failed)
        local_start(local);
    else if (ranks_here)
        job_on_host_done(host);
    if (!j->loop.stop)
        start_input(r, j);
    return job_run(j, front);
}

int run_job(struct options *o, char **argv)
{
    struct run r = {.opt = o};
    hosts_list(o, &r.hosts);
    o->launcher = hosts_choose_launcher(o, &r.hosts);
    hosts_layout(o, &r.hosts, &r.layout);
    if (o->stdin_rank >= (long)r.layout.size)
        launcher_die(STATUS_USAGE, "-stdin %ld: there is no such rank in a job of %u.", o->stdin_rank,
                     r.layout.size);
    r.node_map = nodemap_format(r.layout.node_of, r.layout.size);
    if (!r.node_map)
        launcher_die(1, "Out of memory.");
    debug_check(o, r.layout.size);
    r.background = guard_in_background();
    make_job_id(&r);
    make_apps(&r);
    make_plans(&r);
    check_foreign_programs(&r);
    return guard_run(argv, run_worker, &r);
}
