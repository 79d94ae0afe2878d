/* local.c: executes a plan on this host. A rank has a socket for PMI, one pipe each for output and error, and
 * possibly one for input. The order at the end matters: a rank's PMI commands are processed before its exit
 * is reported, and its output before the host is reported as done.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/shared_memory.h"
#include "boot/notice.h"
#include "local/binding.h"
#include "local/descend.h"
#include "local/rankenv.h"
#include "local/spawn.h"

#define READ_SIZE    65536
#define READS_AT_END 32 /* READS_AT_END reads of READ_SIZE are more than a pipe can hold */
/* Time that processes left by ranks may still write after all ranks have ended. */
#define LINGER_MS 1000

struct proc {
    struct local *host;
    const struct place *at;
    pid_t pid;
    bool running, input_end;
    struct watch out[2], pmi, in;
    struct buf pmi_out, in_buf;
    struct spawn_fault *fault;
};

struct local {
    struct loop *loop;
    const struct plan *plan;
    const struct local_events *ev;
    void *ctx;
    struct proc *procs;    /* in the order of the plan */
    struct proc **by_rank; /* NULL: not on this host */
    uint32_t running;
    bool paused, ended, all_started, done;
    int null;
    char **paths; /* path of each app; NULL: not searched for yet */
    const char **library_folders;
    bool *library_known;
    struct watch children;
    struct timer linger;
    int notices_fd; /* -1: a death ends the job */
    struct notice_page *notices;
    void (*other)(void *ctx, pid_t pid, int status);
};

static void finish_if_all_ended(struct local *h);

static struct proc *find_rank(struct local *h, uint32_t rank)
{
    return rank < h->plan->size ? h->by_rank[rank] : NULL;
}

static int local_stream_number(const struct proc *p, const struct watch *w)
{
    return w == &p->out[0] ? 1 : 2;
}

/* Reads one stream until it is empty, but at most `times` times, because its writer may never stop. */
static void read_output(struct proc *p, struct watch *w, int times)
{
    static char data[READ_SIZE];
    struct local *h = p->host;
    while (w->fd >= 0 && !h->paused && times > 0) {
        ssize_t n = read(w->fd, data, sizeof(data));
        if (n > 0) {
            h->ev->output(h->ctx, p->at->rank, local_stream_number(p, w), data, (size_t)n);
            times--;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        loop_close(h->loop, w);
        h->ev->output(h->ctx, p->at->rank, local_stream_number(p, w), NULL, 0);
    }
}

static void local_on_stdout(void *ctx, uint32_t events)
{
    struct proc *p = ctx;
    (void)events;
    read_output(p, &p->out[0], 1);
    finish_if_all_ended(p->host);
}

static void local_on_stderr(void *ctx, uint32_t events)
{
    struct proc *p = ctx;
    (void)events;
    read_output(p, &p->out[1], 1);
    finish_if_all_ended(p->host);
}

static void read_pmi(struct proc *p)
{
    char data[4096];
    while (p->pmi.fd >= 0) {
        ssize_t n = read(p->pmi.fd, data, sizeof(data));
        if (n > 0) {
            p->host->ev->pmi(p->host->ctx, p->at->rank, data, (size_t)n);
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        loop_close(p->host->loop, &p->pmi);
    }
}

/* Writes without blocking; waits for EPOLLOUT only if bytes are left. */
static void local_flush_pipe(struct local *h, struct watch *w, struct buf *b, uint32_t base_events)
{
    const int error = w->fd >= 0 ? buf_write(b, w->fd) : 0;
    if (error && error != EAGAIN) {
        buf_consume(b, buf_size(b));
        loop_close(h->loop, w);
        return;
    }
    loop_change_events(h->loop, w, buf_size(b) > 0 ? base_events | EPOLLOUT : base_events);
}

static void local_on_pmi(void *ctx, uint32_t events)
{
    struct proc *p = ctx;
    if (events & EPOLLOUT)
        local_flush_pipe(p->host, &p->pmi, &p->pmi_out, EPOLLIN);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        read_pmi(p);
}

void local_send_pmi(void *local, uint32_t rank, const char *data, size_t len)
{
    struct local *h = local;
    struct proc *p = find_rank(h, rank);
    if (!p || p->pmi.fd < 0)
        return;
    buf_add(&p->pmi_out, data, len);
    local_flush_pipe(h, &p->pmi, &p->pmi_out, EPOLLIN);
}

static void flush_stdin(struct proc *p)
{
    struct local *h = p->host;
    local_flush_pipe(h, &p->in, &p->in_buf, 0);
    if (buf_size(&p->in_buf) > 0)
        return;
    if (p->input_end)
        loop_close(h->loop, &p->in);
    h->ev->stdin_empty(h->ctx, p->at->rank);
}

static void local_on_stdin_writable(void *ctx, uint32_t events)
{
    struct proc *p = ctx;
    if (events & EPOLLERR) { /* the rank closed its end of the pipe */
        buf_consume(&p->in_buf, buf_size(&p->in_buf));
        loop_close(p->host->loop, &p->in);
        p->host->ev->stdin_empty(p->host->ctx, p->at->rank);
        return;
    }
    flush_stdin(p);
}

void local_write_stdin(void *local, uint32_t rank, const char *data, size_t len)
{
    struct local *h = local;
    struct proc *p = find_rank(h, rank);
    if (!p || p->at->stdin_from != STDIN_PIPE)
        return;
    if (p->in.fd < 0) {
        h->ev->stdin_empty(h->ctx, rank);
        return;
    }
    p->input_end = p->input_end || len == 0;
    buf_add(&p->in_buf, data, len);
    flush_stdin(p);
}

static bool make_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC) == 0;
}

struct child_files {
    int in[2], out[2], err[2], pmi[2];
};

static void close_files(struct child_files *f, bool parents_too)
{
    int theirs[] = {f->in[0], f->out[1], f->err[1], f->pmi[1]};
    int ours[] = {f->in[1], f->out[0], f->err[0], f->pmi[0]};
    for (size_t i = 0; i < COUNT_OF(theirs); i++) {
        if (theirs[i] >= 0)
            close(theirs[i]);
        if (parents_too && ours[i] >= 0)
            close(ours[i]);
    }
}

static bool open_child_files(const struct proc *p, struct child_files *f)
{
    *f = (struct child_files){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    if (!make_pipe(f->out) || !make_pipe(f->err) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->pmi) != 0)
        return false;
    if (p->at->stdin_from == STDIN_PIPE && !make_pipe(f->in))
        return false;
    int ours[] = {f->out[0], f->err[0], f->pmi[0], f->in[1]};
    for (size_t i = 0; i < COUNT_OF(ours); i++)
        if (ours[i] >= 0)
            fcntl(ours[i], F_SETFL, O_NONBLOCK | (ours[i] == f->in[1] ? O_WRONLY : 0));
    return true;
}

static void watch_files(struct proc *p, const struct child_files *f)
{
    struct loop *l = p->host->loop;
    loop_add(l, &p->out[0], f->out[0], EPOLLIN);
    loop_add(l, &p->out[1], f->err[0], EPOLLIN);
    loop_add(l, &p->pmi, f->pmi[0], EPOLLIN);
    if (f->in[1] >= 0)
        loop_add(l, &p->in, f->in[1], 0);
}

static void report_failure(struct proc *p, enum spawn_step step, int error)
{
    struct local *h = p->host;
    const struct app *app = &h->plan->apps[p->at->app];
    int status = STATUS_NO_EXEC;
    char *why;
    if (step == SPAWN_WDIR) {
        why = xstrf("the working directory %s cannot be entered: %s", app->wdir, strerror(error));
        status = 1;
    } else if (step == SPAWN_EXEC && error == ENOENT) {
        why = strchr(app->argv[0], '/')
                  ? xstrf("there is no program %s (or its interpreter is missing)", app->argv[0])
                  : xstrf("there is no program %s, neither in a folder of PATH nor in %s", app->argv[0],
                          app->wdir);
        status = STATUS_NO_FILE;
    } else if (step == SPAWN_EXEC) {
        why = xstrf("%s cannot be run: %s", app->argv[0], strerror(error));
    } else {
        why = xstrf("a process could not be created for it: %s%s", error_reason(error),
                    error == EMFILE ? ", of which mpiexec needs three for each rank" : "");
        status = 1;
    }
    h->ev->failed(h->ctx, p->at->rank, status, why);
    free(why);
}

static const char *find_program(struct local *h, uint32_t app)
{
    const struct app *a = &h->plan->apps[app];
    if (!h->paths[app])
        h->paths[app] = spawn_find(a->argv[0], rankenv_get(a->env, "PATH"), a->wdir);
    return h->paths[app];
}

/* Returns the library folder for ranks whose program cannot find the library itself: programs built with
 * another MPI library of the same ABI, and scripts. NULL: not needed. */
static const char *library_folder(struct local *h, uint32_t app, const char *path)
{
    if (!h->library_known[app])
        h->library_folders[app] = rankenv_library_folder(path, h->plan->apps[app].env);
    h->library_known[app] = true;
    return h->library_folders[app];
}

static bool start_rank(struct local *h, struct proc *p, int node_fd, const struct cpus *cpus)
{
    const struct app *app = &h->plan->apps[p->at->app];
    struct child_files f;
    if (access(app->wdir, X_OK) != 0) {
        report_failure(p, SPAWN_WDIR, errno);
        return false;
    }
    const char *path = find_program(h, p->at->app);
    if (!path) {
        report_failure(p, SPAWN_EXEC, errno);
        return false;
    }
    if (!open_child_files(p, &f)) {
        report_failure(p, SPAWN_FILES, errno);
        close_files(&f, true);
        return false;
    }
    int keep[] = {f.pmi[1], node_fd, h->notices_fd, -1};
    int in = p->at->stdin_from == STDIN_PIPE ? f.in[0] : p->at->stdin_from == STDIN_INHERIT ? 0 : h->null;
    struct spawn s = {.path = path,
                      .argv = app->argv,
                      .env = rankenv_build(h->plan, p->at, f.pmi[1], node_fd, h->notices_fd,
                                           library_folder(h, p->at->app, path)),
                      .wdir = app->wdir,
                      .in = in,
                      .out = f.out[1],
                      .err = f.err[1],
                      .keep = keep,
                      .cpus = cpus};
    p->pid = spawn_process(&s, p->fault);
    if (p->pid < 0) {
        report_failure(p, SPAWN_FILES, errno);
        close_files(&f, true);
        return false;
    }
    close_files(&f, false);
    watch_files(p, &f);
    p->running = true;
    h->running++;
    if (h->ev->started)
        h->ev->started(h->ctx, p->at->rank, p->pid);
    return true;
}

/* Returns the memfd of a node, created at the first call. Only the ranks of the node inherit it. */
static int get_node_segment(uint32_t node, int *fds, uint32_t *nodes, uint32_t *n)
{
    for (uint32_t i = 0; i < *n; i++)
        if (nodes[i] == node)
            return fds[i];
    nodes[*n] = node;
    fds[*n] = shared_memory_create_empty(SHARED_MEMORY_NODE);
    return fds[(*n)++];
}

void local_start(struct local *h)
{
    const struct plan *plan = h->plan;
    struct binding_fault fault;
    struct cpus *sets = binding_compute(plan, &fault);
    bool ok = !fault.why;
    if (fault.why)
        h->ev->failed(h->ctx, fault.rank, STATUS_USAGE, fault.why);
    free(fault.why);
    int *fds = xcalloc(plan->nranks, sizeof(*fds));
    uint32_t *nodes = xcalloc(plan->nranks, sizeof(*nodes)), n = 0;
    for (uint32_t i = 0; i < plan->nranks && ok && !h->ended; i++) {
        const struct cpus *set = sets ? &sets[i] : NULL;
        if (plan->verbose)
            binding_print(&plan->ranks[i], set);
        ok = start_rank(h, &h->procs[i], get_node_segment(plan->ranks[i].node, fds, nodes, &n), set);
    }
    for (uint32_t i = 0; i < n; i++)
        close(fds[i]);
    free(fds);
    free(nodes);
    free(sets);
    h->all_started = true;
    finish_if_all_ended(h);
}

/* Handles the end of a rank: processes its last PMI commands, reads its remaining output, then reports the
 * exit. */
static void local_handle_rank_end(struct local *h, struct proc *p, int status)
{
    p->running = false;
    h->running--;
    read_pmi(p);
    read_output(p, &p->out[0], READS_AT_END);
    read_output(p, &p->out[1], READS_AT_END);
    if (p->in.fd >= 0 || buf_size(&p->in_buf) > 0) {
        loop_close(h->loop, &p->in);
        buf_consume(&p->in_buf, buf_size(&p->in_buf));
        h->ev->stdin_empty(h->ctx, p->at->rank);
    }
    if (p->fault->step != SPAWN_OK)
        report_failure(p, p->fault->step, p->fault->error);
    h->ev->exited(h->ctx, p->at->rank, status);
}

void local_reap(void *local)
{
    struct local *h = local;
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct proc *found = NULL;
        for (uint32_t i = 0; i < h->plan->nranks && !found; i++)
            if (h->procs[i].running && h->procs[i].pid == pid)
                found = &h->procs[i];
        if (found)
            local_handle_rank_end(h, found, status);
        else if (h->other)
            h->other(h->ctx, pid, status);
    }
    finish_if_all_ended(h);
}

static void local_on_children(void *ctx, uint32_t events)
{
    struct local *h = ctx;
    struct signalfd_siginfo info[16];
    (void)events;
    while (read(h->children.fd, info, sizeof(info)) > 0)
        ;
    local_reap(h);
}

static bool local_is_output_read(const struct local *h)
{
    for (uint32_t i = 0; i < h->plan->nranks; i++)
        if (h->procs[i].out[0].fd >= 0 || h->procs[i].out[1].fd >= 0)
            return false;
    return true;
}

static void close_outputs(struct local *h)
{
    for (uint32_t i = 0; i < h->plan->nranks; i++)
        for (int k = 0; k < 2; k++)
            if (h->procs[i].out[k].fd >= 0) {
                read_output(&h->procs[i], &h->procs[i].out[k], READS_AT_END);
                if (h->procs[i].out[k].fd < 0)
                    continue;
                loop_close(h->loop, &h->procs[i].out[k]);
                h->ev->output(h->ctx, h->procs[i].at->rank, k + 1, NULL, 0);
            }
}

/* True for the process group of a rank, which may have ended. */
static bool is_group_of_rank(const void *ctx, pid_t group)
{
    const struct local *h = ctx;
    for (uint32_t i = 0; i < h->plan->nranks; i++)
        if (h->procs[i].pid == group)
            return true;
    return false;
}

/* Called LINGER_MS after the last rank ended: kills processes that ranks left running. With other
 * children, such as remote shells, it kills only the process groups of ranks. */
static void local_on_linger_timeout(void *ctx)
{
    struct local *h = ctx;
    if (h->other)
        descend_signal(SIGKILL, is_group_of_rank, h);
    else
        descend_end();
    h->ended = true;
    finish_if_all_ended(h);
}

/* Reports the host as done when all ranks have ended and their pipes have no writers. A pipe that stays
 * open belongs to a process that a rank left running; it gets LINGER_MS to finish, or none if the job is
 * being ended. */
static void finish_if_all_ended(struct local *h)
{
    if (h->done || !h->all_started || h->running > 0)
        return;
    if (h->paused)
        return; /* output still waits in the pipes */
    if (h->ended)
        close_outputs(h);
    if (!local_is_output_read(h)) {
        if (h->linger.at == 0)
            loop_set_timer(h->loop, &h->linger, LINGER_MS);
        return;
    }
    h->done = true;
    loop_cancel_timer(h->loop, &h->linger);
    h->ev->done(h->ctx);
}

void local_signal(void *local, int sig)
{
    struct local *h = local;
    for (uint32_t i = 0; i < h->plan->nranks; i++) {
        const struct proc *p = &h->procs[i];
        /* A rank that was just forked may not lead its process group yet. */
        if (p->running && kill(-p->pid, sig) != 0)
            kill(p->pid, sig);
    }
    if (sig == SIGKILL) {
        descend_signal(SIGKILL, h->other ? is_group_of_rank : NULL, h);
        h->ended = true;
        finish_if_all_ended(h);
    }
}

void local_pause(void *local, bool pause)
{
    struct local *h = local;
    if (h->paused == pause)
        return;
    h->paused = pause;
    for (uint32_t i = 0; i < h->plan->nranks; i++)
        for (int k = 0; k < 2; k++)
            loop_change_events(h->loop, &h->procs[i].out[k], pause ? 0 : EPOLLIN);
    if (!pause) {
        for (uint32_t i = 0; i < h->plan->nranks && !h->paused; i++)
            for (int k = 0; k < 2; k++)
                if (!h->procs[i].running)
                    read_output(&h->procs[i], &h->procs[i].out[k], READS_AT_END);
        finish_if_all_ended(h);
    }
}

void local_set_other_child_handler(struct local *h, void (*fn)(void *ctx, pid_t pid, int status))
{
    h->other = fn;
}

/* Opens the notices file. Spawned jobs use that of the first job: ranks of both may be connected. */
static void open_notices(struct local *h)
{
    h->notices_fd = -1;
    if (!h->plan->recovery)
        return;
    h->notices_fd = h->plan->notices_fd > 0 ? h->plan->notices_fd : notice_create();
    h->notices = h->notices_fd >= 0 ? notice_map(h->notices_fd) : NULL;
    if (!h->notices)
        launcher_die(1, "mpiexec cannot notify ranks of failed ranks (-enable-recovery): %s.",
                     strerror(errno));
}

void local_record_death(struct local *h, uint64_t world, uint32_t rank)
{
    if (h->notices && !notice_add(h->notices, h->notices_fd, world, rank))
        launcher_die(
            1,
            "mpiexec cannot tell the ranks that rank %u has died (%u deaths at most, and memory for them): "
            "%s.",
            rank, NOTICES_MAX, strerror(errno));
}

void local_kill(void *local, uint32_t rank)
{
    struct local *h = local;
    struct proc *p = find_rank(h, rank);
    if (p && p->running)
        kill(p->pid, SIGKILL);
}

int local_notices_fd(const struct local *h)
{
    return h->notices_fd;
}

struct local *local_new(struct loop *l, const struct plan *plan, const struct local_events *ev, void *ctx)
{
    struct local *h = xcalloc(1, sizeof(*h));
    *h = (struct local){.loop = l, .plan = plan, .ev = ev, .ctx = ctx};
    h->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    open_notices(h);
    h->paths = xcalloc(plan->napps, sizeof(*h->paths));
    h->library_folders = xcalloc(plan->napps, sizeof(*h->library_folders));
    h->library_known = xcalloc(plan->napps, sizeof(*h->library_known));
    h->procs = xcalloc(plan->nranks, sizeof(*h->procs));
    h->by_rank = xcalloc(plan->size, sizeof(*h->by_rank));
    struct spawn_fault *faults = spawn_map_faults(plan->nranks);
    h->linger.fn = local_on_linger_timeout;
    h->linger.ctx = h;
    for (uint32_t i = 0; i < plan->nranks; i++) {
        struct proc *p = &h->procs[i];
        p->host = h;
        p->fault = &faults[i];
        p->at = &plan->ranks[i];
        h->by_rank[p->at->rank] = p;
        p->out[0] = (struct watch){.fd = -1, .fn = local_on_stdout, .ctx = p};
        p->out[1] = (struct watch){.fd = -1, .fn = local_on_stderr, .ctx = p};
        p->pmi = (struct watch){.fd = -1, .fn = local_on_pmi, .ctx = p};
        p->in = (struct watch){.fd = -1, .fn = local_on_stdin_writable, .ctx = p};
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    h->children = (struct watch){.fd = -1, .fn = local_on_children, .ctx = h};
    loop_add(l, &h->children, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), EPOLLIN);
    return h;
}
