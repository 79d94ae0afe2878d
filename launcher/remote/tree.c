/* tree.c: starts agents and forwards frames to and from them. No frame is sent to an agent before it has
 * proved that this process started it (listener.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote/tree.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/address.h"
#include "remote/agent.h"
#include "remote/listener.h"
#include "plan/pack.h"

/* An agent started by this process: responsible for the `n` hosts from index `at`, its own first. */
struct child {
    struct tree *tree;
    uint32_t at, n;
    struct link *link; /* NULL until the agent has connected and proved itself */
    pid_t shell;
    struct buf early; /* frames queued before the agent connected */
    bool closed;      /* all its hosts are done or lost: no frames are sent to it */
};

struct tree {
    struct loop *loop;
    const struct tree_spec *spec;
    const struct tree_events *ev;
    void *ctx;
    struct child *children;
    uint32_t nchildren, expected, left;
    bool *settled; /* [spec->n] done or lost */
    pid_t shell;   /* remote shell that starts all agents; 0: each child has its own */
    struct listener *listener;
    struct timer deadline;
    char cookie[COOKIE_LEN + 1];
    char addresses[1024];
};

void tree_encode(const struct tree_spec *s, uint32_t from, uint32_t n, struct buf *out)
{
    pack_str(out, s->shell.launcher);
    pack_str(out, s->shell.command);
    pack_u32(out, s->fanout);
    pack_u32(out, s->timeout);
    pack_u32(out, s->heartbeat);
    pack_u32(out, s->verbose);
    pack_str(out, s->network);
    pack_u32(out, n);
    for (uint32_t i = from; i < from + n; i++) {
        pack_u32(out, s->numbers[i]);
        pack_str(out, s->names[i]);
    }
}

struct tree_spec *tree_decode(const char *data, size_t len)
{
    struct unpack r = {.at = data, .left = len};
    struct tree_spec *s = xcalloc(1, sizeof(*s));
    s->shell.launcher = unpack_str(&r);
    s->shell.command = unpack_str(&r);
    s->fanout = unpack_u32(&r);
    s->timeout = unpack_u32(&r);
    s->heartbeat = unpack_u32(&r);
    s->verbose = unpack_u32(&r);
    s->network = unpack_str(&r);
    s->n = unpack_count(&r, 8);
    s->numbers = xcalloc(s->n, sizeof(*s->numbers));
    s->names = xcalloc(s->n, sizeof(*s->names));
    for (uint32_t i = 0; i < s->n; i++) {
        s->numbers[i] = unpack_u32(&r);
        s->names[i] = unpack_str(&r);
        r.bad =
            r.bad || (i > 0 && s->numbers[i] <= s->numbers[i - 1]) || !*s->names[i] || *s->names[i] == '-';
    }
    if (!r.bad && r.left == 0 && s->n > 0)
        return s;
    tree_free(s);
    return NULL;
}

void tree_free(struct tree_spec *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n; i++)
        free(s->names[i]);
    free(s->names);
    free(s->numbers);
    free(s->shell.launcher);
    free(s->shell.command);
    free(s->network);
    free(s);
}

/* Index of a host in the list; spec->n if it is not in the list. */
static uint32_t tree_find_index(const struct tree *t, uint32_t number)
{
    uint32_t lo = 0, hi = t->spec->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (t->spec->numbers[mid] < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->spec->n && t->spec->numbers[lo] == number ? lo : t->spec->n;
}

static struct child *tree_find_child(struct tree *t, uint32_t place)
{
    uint32_t lo = 0, hi = t->nchildren;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (t->children[mid].at <= place)
            lo = mid;
        else
            hi = mid;
    }
    return &t->children[lo];
}

uint32_t tree_count_unsettled(const struct tree *t)
{
    return t->left;
}

/* Reports the outcome for a host (FRAME_LOST or FRAME_DONE) exactly once. */
static void tree_report_host_state(struct tree *t, uint32_t place, enum frame type, const char *why)
{
    if (t->settled[place])
        return;
    t->settled[place] = true;
    t->left--;
    t->ev->frame(t->ctx, &(struct frame_head){type, t->spec->numbers[place], 0, strlen(why)}, why);
}

static void tree_finish_child_hosts(struct child *c, enum frame type, const char *why)
{
    struct tree *t = c->tree;
    /* true: the first host itself is lost; false: only its agent, after the host was done */
    bool own = !t->settled[c->at];
    c->closed = true;
    buf_free(&c->early);
    tree_report_host_state(t, c->at, type, why);
    char *below =
        own ? xstrf("its agent was to be reached through host %s, which was lost", t->spec->names[c->at])
            : xstrf("the agent on host %s, through which it was reached, is gone", t->spec->names[c->at]);
    for (uint32_t i = 1; i < c->n; i++)
        tree_report_host_state(t, c->at + i, type, type == FRAME_LOST ? below : why);
    free(below);
}

static bool is_terminating_signal(int sig)
{
    return sig == SIGTERM || sig == SIGKILL || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT;
}

void tree_send(struct tree *t, const struct frame_head *head, const void *data)
{
    uint32_t place = tree_find_index(t, head->host), sig = 0;
    if (place == t->spec->n)
        return;
    struct child *c = tree_find_child(t, place);
    if (c->closed)
        return;
    if (c->link) {
        link_send(c->link, head, data);
    } else if (head->type != FRAME_SIGNAL) {
        link_append_frame(&c->early, head, data);
    } else if (link_read_u32(data, head->len, &sig) && is_terminating_signal((int)sig)) {
        /* The agent has not connected: end its remote shell, so that it never starts ranks. */
        pid_t shell = c->shell > 0 ? c->shell : t->shell;
        if (shell > 0)
            kill(-shell, SIGTERM);
        tree_finish_child_hosts(c, FRAME_DONE, "");
    }
}

void tree_pause(struct tree *t, bool pause)
{
    for (uint32_t i = 0; i < t->nchildren; i++)
        if (t->children[i].link && !t->children[i].closed)
            link_send_u32(t->children[i].link, FRAME_PAUSE, t->spec->numbers[t->children[i].at], 0, pause);
}

/* Accepts frames of an agent only for hosts below it. */
static void handle_child_frame(struct child *c, const struct frame_head *head, const char *data)
{
    struct tree *t = c->tree;
    uint32_t place = tree_find_index(t, head->host);
    if (place < c->at || place >= c->at + c->n || head->type <= FRAME_PROOF) {
        link_close(c->link);
        tree_finish_child_hosts(c, FRAME_LOST, "its agent sent an invalid frame");
        return;
    }
    if (head->type != FRAME_DONE && head->type != FRAME_LOST) {
        t->ev->frame(t->ctx, head, data);
        return;
    }
    char *why = xstrf("%.*s", (int)head->len, data);
    tree_report_host_state(t, place, head->type, why);
    free(why);
}

/* Finds the child by the name that its agent sent: the host's number, or its node name if one command
 * started all agents. */
static struct child *find_child(struct tree *t, const char *who)
{
    for (uint32_t i = 0; i < t->nchildren; i++) {
        char number[16];
        snprintf(number, sizeof(number), "%u", t->spec->numbers[t->children[i].at]);
        if (strcmp(shell_starts_all_hosts(&t->spec->shell) ? t->spec->names[t->children[i].at] : number,
                   who) == 0)
            return &t->children[i];
    }
    return NULL;
}

static void tree_on_frame(void *ctx, const struct frame_head *head, const char *data)
{
    handle_child_frame(ctx, head, data);
}

static void tree_on_closed(void *ctx, const char *why)
{
    tree_finish_child_hosts(ctx, FRAME_LOST, why);
}

static void tree_on_drained(void *ctx)
{
    struct child *c = ctx;
    if (c->tree->ev->drained)
        c->tree->ev->drained(c->tree->ctx);
}

static bool tree_is_child_expected(void *ctx, const char *who)
{
    const struct child *c = find_child(ctx, who);
    return c && !c->link;
}

/* Sends the agent its number and the hosts below it, then the frames queued for it. */
static void tree_greet_child(struct child *c)
{
    struct tree *t = c->tree;
    struct buf tree = {0};
    link_start_heartbeat(c->link, t->spec->heartbeat);
    if (c->n > 1)
        tree_encode(t->spec, c->at + 1, c->n - 1, &tree);
    link_send(c->link, &(struct frame_head){FRAME_TREE, t->spec->numbers[c->at], 0, buf_size(&tree)},
              tree.data ? buf_head(&tree) : "");
    buf_free(&tree);
    link_send_frames(c->link, &c->early);
}

static void tree_on_child_connected(void *ctx, const char *who, const char *version, struct link *k)
{
    struct tree *t = ctx;
    struct child *c = find_child(t, who);
    c->link = k;
    k->frame = tree_on_frame;
    k->closed = tree_on_closed;
    k->drained = tree_on_drained;
    k->ctx = c;
    if (--t->expected == 0) {
        listener_close(t->listener);
        loop_cancel_timer(t->loop, &t->deadline);
    }
    if (strcmp(version, FISHPLATE_VERSION) != 0) {
        char *why =
            xstrf("its mpiexec is from Fishplate %s, this one from %s: install the same version on all hosts",
                  version, FISHPLATE_VERSION);
        link_close(k);
        tree_finish_child_hosts(c, FRAME_LOST, why);
        free(why);
    } else if (c->closed) {
        link_close(k);
    } else {
        tree_greet_child(c);
    }
}

static void tree_on_deadline(void *ctx)
{
    struct tree *t = ctx;
    for (uint32_t i = 0; i < t->nchildren; i++)
        if (!t->children[i].link && !t->children[i].closed) {
            char *why = xstrf(
                "no agent called back within %u seconds (FISHPLATE_INIT_TIMEOUT); it tries %s, port %s. If "
                "that host reaches this one at another address, give its network with -iface",
                t->spec->timeout, t->addresses, listener_port(t->listener));
            tree_finish_child_hosts(&t->children[i], FRAME_LOST, why);
            free(why);
        }
}

void tree_child_ended(struct tree *t, pid_t pid, int status)
{
    bool all = pid == t->shell;
    for (uint32_t i = 0; i < t->nchildren; i++) {
        struct child *c = &t->children[i];
        if (!all && c->shell != pid)
            continue;
        c->shell = 0;
        /* A remote shell that exits with status 0 may have left the agent running in the background. */
        if (c->link || c->closed || status == 0)
            continue;
        char *how = WIFSIGNALED(status) ? xstrf("was killed by signal %d", WTERMSIG(status))
                                        : xstrf("exited with status %d", WEXITSTATUS(status));
        char *why = xstrf(
            "its agent could not be started: `%s%s%s` %s%s", shell_name(&t->spec->shell), all ? "" : " ",
            all ? "" : t->spec->names[c->at], how,
            all ? "" : "; it must log in without a password, and mpiexec must have the same path there");
        tree_finish_child_hosts(c, FRAME_LOST, why);
        free(how);
        free(why);
    }
    if (all)
        t->shell = 0;
}

static void start_agent(struct tree *t, struct child *c)
{
    bool all = shell_starts_all_hosts(&t->spec->shell);
    char number[16], *why;
    snprintf(number, sizeof(number), "%u", t->spec->numbers[c->at]);
    const char *words[] = {AGENT_OPTION, t->addresses, listener_port(t->listener),
                           all ? AGENT_BY_NAME : number, NULL};
    if (t->spec->verbose)
        message_print("Starting %s on host %s%s with %s.", all ? "agents" : "an agent", t->spec->names[c->at],
                      all && t->spec->n > 1 ? " and the others" : "", shell_name(&t->spec->shell));
    pid_t pid = shell_start_agent(&t->spec->shell, &t->spec->names[c->at], all ? t->spec->n : 1, words,
                                  t->cookie, &why);
    if (pid < 0) {
        for (struct child *each = c; each < t->children + t->nchildren && (all || each == c); each++)
            tree_finish_child_hosts(each, FRAME_LOST, why);
        free(why);
        return;
    }
    if (all)
        t->shell = pid;
    else
        c->shell = pid;
}

/* Divides the hosts into consecutive ranges of nearly equal length, one for each child. */
static void tree_divide_hosts(struct tree *t)
{
    const struct tree_spec *s = t->spec;
    bool flat = s->fanout == 0 || shell_starts_all_hosts(&s->shell);
    t->nchildren = flat || s->n < s->fanout ? s->n : s->fanout;
    t->children = xcalloc(t->nchildren, sizeof(*t->children));
    for (uint32_t i = 0, at = 0; i < t->nchildren; i++) {
        uint32_t n = s->n / t->nchildren + (i < s->n % t->nchildren);
        t->children[i] = (struct child){.tree = t, .at = at, .n = n};
        at += n;
    }
}

/* Determines the addresses to which agents connect. True: listen at all addresses of this host. */
static bool tree_find_addresses(struct tree *t)
{
    enum { LOOKUPS_MAX = 256 }; /* name lookups are sequential and delay the start of agents */
    char *hosts[LOOKUPS_MAX];
    const struct tree_spec *s = t->spec;
    const bool any = strcmp(s->network, "any") == 0;
    if (!*s->network && t->nchildren <= LOOKUPS_MAX) {
        for (uint32_t i = 0; i < t->nchildren; i++)
            hosts[i] = s->names[t->children[i].at];
        if (address_find_route_source(hosts, t->nchildren, t->addresses, sizeof(t->addresses)))
            return false;
        t->addresses[0] = '\0';
    }
    address_list_own(t->addresses, sizeof(t->addresses), any ? "" : s->network);
    return any || !*s->network;
}

struct tree *tree_new(struct loop *l, const struct tree_spec *spec, const struct tree_events *ev, void *ctx)
{
    static const struct listener_events listener_events = {tree_is_child_expected, tree_on_child_connected};
    struct tree *t = xcalloc(1, sizeof(*t));
    *t = (struct tree){.loop = l, .spec = spec, .ev = ev, .ctx = ctx, .left = spec->n};
    t->settled = xcalloc(spec->n, sizeof(*t->settled));
    tree_divide_hosts(t);
    t->expected = t->nchildren;
    proof_make_cookie(t->cookie);
    const bool all = tree_find_addresses(t);
    if (!t->addresses[0])
        launcher_die(
            1,
            "This host has no address of the network %s (-iface); ip address lists interfaces and addresses.",
            spec->network);
    t->listener = listener_open(l, t->nchildren, all ? NULL : t->addresses, t->cookie, &listener_events, t);
    t->deadline = (struct timer){.fn = tree_on_deadline, .ctx = t};
    loop_set_timer(l, &t->deadline, (uint64_t)spec->timeout * 1000);
    return t;
}

void tree_run(struct tree *t)
{
    uint32_t n = shell_starts_all_hosts(&t->spec->shell) ? 1 : t->nchildren;
    for (uint32_t i = 0; i < n; i++)
        if (!t->children[i].closed)
            start_agent(t, &t->children[i]);
}
