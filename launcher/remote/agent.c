/* agent.c: an agent. It runs the plan it receives through local.c and reports events as frames. It also
 * starts the agents below it in the tree and forwards their frames. If its connection to mpiexec ends before
 * the job does, it ends all processes on this host and all agents below it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote/agent.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/loop.h"
#include "remote/connect.h"
#include "local/guard.h"
#include "remote/link.h"
#include "local/local.h"
#include "remote/tree.h"
#include "local/run_tool.h"
#include "core/util.h"

/* Status pages of this host's ranks, for an agent; `fishplate ps --pages` collects them. Reads status pages
 * of ranks through the `fishplate` tool. The bytes are forwarded up the tree unread; the tool that queried
 * checks them. */

#define PAGES_MAX (48u << 20) /* limit of a reply; a frame (link.c) holds more */

struct reading {
    struct loop *loop;
    struct watch from;
    struct timer sweep;
    struct buf in;
    uint32_t number;
    void (*done)(void *ctx, uint32_t number, const char *data, size_t len);
    void *ctx;
};

/* Frees `r` in a later iteration of the event loop: the current one may still refer to its watch. */
static void pages_on_sweep(void *ctx)
{
    free(ctx);
}

static void pages_finish(struct reading *r)
{
    loop_close(r->loop, &r->from);
    r->done(r->ctx, r->number, r->in.data ? buf_head(&r->in) : "", buf_size(&r->in));
    buf_free(&r->in);
    loop_set_timer(r->loop, &r->sweep, 0);
}

static void pages_on_bytes(void *ctx, uint32_t events)
{
    struct reading *r = ctx;
    char data[65536];
    (void)events;
    const ssize_t n = read(r->from.fd, data, sizeof(data));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0)
        buf_add(&r->in, data, (size_t)n);
    if (buf_size(&r->in) > PAGES_MAX)
        buf_consume(&r->in, buf_size(&r->in));
    else if (n > 0)
        return;
    pages_finish(r);
}

/* Reads the pages of a job; `done` is called before or after this function returns, with no bytes if there
 * is no reply. `job` must stay valid until then. */
static void pages_read(struct loop *l, const char *job, uint32_t number,
                       void (*done)(void *ctx, uint32_t number, const char *data, size_t len), void *ctx)
{
    struct reading *r = xcalloc(1, sizeof(*r));
    *r = (struct reading){.loop = l, .number = number, .done = done, .ctx = ctx};
    r->from = (struct watch){.fd = -1, .fn = pages_on_bytes, .ctx = r};
    r->sweep = (struct timer){.fn = pages_on_sweep, .ctx = r};
    if (!tool_start(l, &r->from, TOOL_TO_PIPE, (char *[]){"fishplate", "ps", "--pages", (char *)job, NULL}))
        pages_finish(r);
}

#define HIGH_WATER (1024 * 1024) /* bytes queued on the link above which the output of ranks is not read */

struct agent {
    struct loop loop;
    struct link link;
    struct local *local;
    struct tree *tree; /* NULL: no hosts below this one */
    struct plan *plan;
    uint32_t host;                               /* our host number, received in FRAME_TREE */
    bool greeted, pause_requested, paused, done; /* greeted: received its number */
    struct connection connection;
};

/* Pauses the sources of frames, our ranks and the hosts below, while the link's queue is too long. */
static void set_pause(struct agent *a)
{
    bool pause = a->pause_requested || buf_size(&a->link.out) > HIGH_WATER;
    if (a->local)
        local_pause(a->local, pause);
    if (a->tree && pause != a->paused)
        tree_pause(a->tree, pause);
    a->paused = pause;
}

/* Shuts down the sending side when all is sent. The agent ends in agent_on_closed, after its parent has
 * read everything and closed the connection. */
static void agent_end_if_done(struct agent *a)
{
    if (a->done && (!a->tree || tree_count_unsettled(a->tree) == 0) && buf_size(&a->link.out) == 0)
        link_shutdown_send(&a->link);
}

/* Sends a frame to mpiexec about one of our own ranks or about our host. */
static void agent_send_frame(struct agent *a, enum frame type, uint32_t rank, const void *data, size_t len)
{
    link_send(&a->link, &(struct frame_head){type, a->host, rank, len}, data);
}

static void agent_on_output(void *ctx, uint32_t rank, int stream, const char *data, size_t len)
{
    struct agent *a = ctx;
    agent_send_frame(a, stream == 1 ? FRAME_OUTPUT : FRAME_ERROR, rank, data, len);
    if (buf_size(&a->link.out) > HIGH_WATER)
        set_pause(a);
}

static void agent_on_pmi(void *ctx, uint32_t rank, const char *data, size_t len)
{
    agent_send_frame(ctx, FRAME_PMI, rank, data, len);
}

static void agent_on_started(void *ctx, uint32_t rank, pid_t pid)
{
    struct agent *a = ctx;
    link_send_u32(&a->link, FRAME_STARTED, a->host, rank, (uint32_t)pid);
}

static void agent_on_failed(void *ctx, uint32_t rank, int status, const char *why)
{
    char data[1024] = {0, 0, 0, (char)status};
    int len = snprintf(data + 4, sizeof(data) - 4, "%s", why);
    agent_send_frame(ctx, FRAME_FAILED, rank, data,
                     4 + ((size_t)len < sizeof(data) - 5 ? (size_t)len : sizeof(data) - 5));
}

static void agent_on_exited(void *ctx, uint32_t rank, int status)
{
    struct agent *a = ctx;
    link_send_u32(&a->link, FRAME_EXITED, a->host, rank, (uint32_t)status);
}

static void agent_on_stdin_empty(void *ctx, uint32_t rank)
{
    agent_send_frame(ctx, FRAME_INPUT_TAKEN, rank, NULL, 0);
}

static void agent_on_pages(void *ctx, uint32_t number, const char *data, size_t len)
{
    agent_send_frame(ctx, FRAME_PAGES, number, data, len);
}

static void agent_on_done(void *ctx)
{
    struct agent *a = ctx;
    a->done = true;
    agent_send_frame(a, FRAME_DONE, 0, NULL, 0);
    agent_end_if_done(a);
}

static void agent_on_output_drained(void *ctx)
{
    struct agent *a = ctx;
    set_pause(a);
    agent_end_if_done(a);
}

/* Forwards a frame from a host below this one upwards, unchanged. */
static void agent_forward_frame(void *ctx, const struct frame_head *head, const char *data)
{
    struct agent *a = ctx;
    link_send(&a->link, head, data);
    if (buf_size(&a->link.out) > HIGH_WATER)
        set_pause(a);
    if (head->type == FRAME_DONE || head->type == FRAME_LOST)
        agent_end_if_done(a);
}

static void agent_on_other_child(void *ctx, pid_t pid, int status)
{
    struct agent *a = ctx;
    tree_child_ended(a->tree, pid, status);
}

static void agent_report_bad_frame(struct agent *a, const char *what)
{
    message_print("The agent cannot decode the %s that mpiexec sent.", what);
    a->loop.stop = true;
}

/* Handles the first frame: this agent's host number and the hosts below it. */
static void start_tree(struct agent *a, const struct frame_head *head, const char *data)
{
    static const struct tree_events events = {agent_forward_frame};
    a->greeted = true;
    a->host = head->host;
    if (head->len == 0)
        return;
    struct tree_spec *spec = tree_decode(data, head->len);
    if (!spec) {
        agent_report_bad_frame(a, "list of hosts");
        return;
    }
    a->tree = tree_new(&a->loop, spec, &events, a);
    tree_run(a->tree);
}

static void start_plan(struct agent *a, const char *data, size_t len)
{
    static const struct local_events events = {agent_on_output, agent_on_pmi,    agent_on_started,
                                               agent_on_failed, agent_on_exited, agent_on_stdin_empty,
                                               agent_on_done};
    if (a->local || !(a->plan = plan_decode(data, len))) {
        agent_report_bad_frame(a, "plan");
        return;
    }
    message_set_host(a->plan->host);
    a->local = local_new(&a->loop, a->plan, &events, a);
    if (a->tree)
        local_set_other_child_handler(a->local, agent_on_other_child);
    local_start(a->local);
}

/* Handles a frame that is addressed to this host. */
static void handle_own_frame(struct agent *a, const struct frame_head *head, const char *data)
{
    uint32_t value = 0;
    if (head->type == FRAME_PLAN)
        start_plan(a, data, head->len);
    if (!a->local)
        return;
    if (head->type == FRAME_PMI) {
        local_send_pmi(a->local, head->rank, data, head->len);
    } else if (head->type == FRAME_INPUT) {
        local_write_stdin(a->local, head->rank, data, head->len);
    } else if (head->type == FRAME_SIGNAL && link_read_u32(data, head->len, &value) && value > 0 &&
               value < NSIG) {
        local_signal(a->local, (int)value);
    } else if (head->type == FRAME_PAUSE && link_read_u32(data, head->len, &value)) {
        a->pause_requested = value != 0;
        set_pause(a);
    } else if (head->type == FRAME_KILL) {
        local_kill(a->local, head->rank);
    } else if (head->type == FRAME_DIED) {
        uint64_t world;
        if (head->len == sizeof(world)) {
            memcpy(&world, data, sizeof(world));
            local_record_death(a->local, be64toh(world), head->rank);
        }
    } else if (head->type == FRAME_QUERY) {
        pages_read(&a->loop, a->plan->job, head->rank, agent_on_pages, a);
    }
}

static void agent_on_frame(void *ctx, const struct frame_head *head, const char *data)
{
    struct agent *a = ctx;
    if (!a->greeted && head->type == FRAME_TREE)
        start_tree(a, head, data);
    else if (a->greeted && head->host == a->host)
        handle_own_frame(a, head, data);
    else if (a->greeted && a->tree)
        tree_send(a->tree, head, data);
}

/* Called when mpiexec has read the last frame, or the connection broke: the worker then ends all ranks. */
static void agent_on_closed(void *ctx, const char *why)
{
    struct agent *a = ctx;
    (void)why;
    a->loop.stop = true;
}

/* Ends the agent if the remote shell that started it is ended. Ranks receive signals only by FRAME_SIGNAL. */
static void agent_on_signal(void *ctx, int sig)
{
    struct agent *a = ctx;
    if (sig == SIGTERM || sig == SIGHUP || sig == SIGINT || sig == SIGQUIT)
        a->loop.stop = true;
}

static void agent_on_foreground(void *ctx, bool yes)
{
    (void)ctx;
    (void)yes;
}

static void agent_on_front_died(void *ctx)
{
    struct agent *a = ctx;
    a->loop.stop = true;
}

static int agent_run_worker(void *ctx, int front)
{
    static const struct guard_events guard_events = {agent_on_signal, agent_on_foreground,
                                                     agent_on_front_died};
    struct agent *a = ctx;
    loop_init(&a->loop);
    guard_watch_signals(&a->loop, front, &guard_events, a);
    a->link = (struct link){
        .frame = agent_on_frame, .closed = agent_on_closed, .drained = agent_on_output_drained, .ctx = a};
    link_open(&a->link, &a->loop, a->connection.fd);
    link_start_authentication(&a->link, a->connection.session.down, a->connection.session.up);
    secret_wipe(&a->connection.session, sizeof(a->connection.session));
    loop_run(&a->loop);
    link_flush(&a->link, 2000);
    return a->done ? 0 : 1;
}

static bool read_cookie(char *cookie)
{
    size_t n = 0;
    while (n < COOKIE_LEN) {
        ssize_t got = read(STDIN_FILENO, cookie + n, COOKIE_LEN - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        n += (size_t)got;
    }
    cookie[n] = '\0';
    return strspn(cookie, "0123456789abcdef") == COOKIE_LEN;
}

int agent_main(int argc, char **argv)
{
    static struct agent a;
    static char cookie[COOKIE_LEN + 1];
    char host[256] = "another host";
    gethostname(host, sizeof(host) - 1);
    message_set_host(host);
    if (argc != 5)
        launcher_die(STATUS_USAGE, "%s is for mpiexec's own use.", AGENT_OPTION);
    if (!read_cookie(cookie))
        launcher_die(
            1, "The agent was started without its secret: the remote shell must pass standard input on to "
               "it.");
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    const char *who = argv[4];
    if (strcmp(who, AGENT_BY_NAME) == 0)
        who = getenv("SLURMD_NODENAME");
    if (!who)
        launcher_die(1,
                     "SLURMD_NODENAME is not set, so this agent does not know the name of its Slurm node.");
    connect_to_mpiexec(argv[2], argv[3], cookie, who, &a.connection);
    secret_wipe(cookie, sizeof(cookie));
    return guard_run(argv, agent_run_worker, &a);
}
