/* remote.c: converts operations of the job to frames for the hosts of the tree, and frames of agents to
 * events of the job.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "remote/remote.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "job/query.h"
#include "remote/tree.h"

struct remote_host {
    struct job_host *host;
    struct remote *remote;
    uint32_t number; /* index among the job's hosts */
};

struct remote {
    struct job *job;
    struct remote_host *hosts; /* [job->nhosts] */
    struct tree_spec spec;
    struct tree *tree;
};

/* Operations of struct host_ops: each sends a frame. */

static void send_pmi(void *impl, uint32_t rank, const char *data, size_t len)
{
    struct remote_host *h = impl;
    tree_send(h->remote->tree, &(struct frame_head){FRAME_PMI, h->number, rank, len}, data);
}

static void send_input(void *impl, uint32_t rank, const char *data, size_t len)
{
    struct remote_host *h = impl;
    tree_send(h->remote->tree, &(struct frame_head){FRAME_INPUT, h->number, rank, len}, data);
}

static void send_u32_frame(struct remote_host *h, enum frame type, uint32_t value)
{
    value = htonl(value);
    tree_send(h->remote->tree, &(struct frame_head){type, h->number, 0, sizeof(value)}, &value);
}

static void send_signal(void *impl, int sig)
{
    send_u32_frame(impl, FRAME_SIGNAL, (uint32_t)sig);
}

static void send_pause(void *impl, bool pause)
{
    send_u32_frame(impl, FRAME_PAUSE, pause);
}

static void send_query(void *impl, uint32_t number)
{
    struct remote_host *h = impl;
    tree_send(h->remote->tree, &(struct frame_head){FRAME_QUERY, h->number, number, 0}, "");
}

static void send_kill(void *impl, uint32_t rank)
{
    struct remote_host *h = impl;
    tree_send(h->remote->tree, &(struct frame_head){FRAME_KILL, h->number, rank, 0}, "");
}

static void send_death_notice(void *impl, uint64_t world, uint32_t rank)
{
    struct remote_host *h = impl;
    world = htobe64(world);
    tree_send(h->remote->tree, &(struct frame_head){FRAME_DIED, h->number, rank, sizeof(world)}, &world);
}

static const struct host_ops remote_ops = {send_pmi, send_input, send_signal,       send_pause,
                                           NULL,     send_query, send_death_notice, send_kill};

/* Handling frames from agents. */

static bool remote_has_rank(const struct job *j, uint32_t rank, uint32_t host)
{
    return rank < j->layout->size && j->layout->host_of[rank] == host;
}

static void remote_on_rank(struct job_host *host, const struct frame_head *head, const char *data)
{
    uint32_t value = 0;
    bool numbered = head->type == FRAME_STARTED || head->type == FRAME_FAILED || head->type == FRAME_EXITED;
    if (numbered && !link_read_u32(data, head->len, &value))
        return;
    switch (head->type) {
    case FRAME_OUTPUT:
    case FRAME_ERROR:
        job_on_output(host, head->rank, head->type == FRAME_OUTPUT ? 1 : 2, data, head->len);
        break;
    case FRAME_PMI:
        job_on_pmi(host, head->rank, data, head->len);
        break;
    case FRAME_STARTED:
        job_on_started(host, head->rank, (pid_t)value);
        break;
    case FRAME_FAILED: {
        char *why = xstrf("%.*s", (int)(head->len - 4), data + 4);
        job_on_failed(host, head->rank, (int)(value & 0xff), why);
        free(why);
        break;
    }
    case FRAME_EXITED:
        job_on_exited(host, head->rank, (int)value);
        break;
    case FRAME_INPUT_TAKEN:
        job_on_stdin_empty(host, head->rank);
        break;
    default:
        break;
    }
}

static void remote_on_frame(void *ctx, const struct frame_head *head, const char *data)
{
    struct remote *r = ctx;
    /* head->host is valid: the tree contains only numbers of this job's hosts */
    struct job_host *host = &r->job->hosts[head->host];
    if (head->type == FRAME_DONE) {
        job_on_host_done(host);
    } else if (head->type == FRAME_LOST) {
        char *why = xstrf("%.*s", (int)head->len, data);
        if (!host->done)
            job_on_host_lost(host, why);
        free(why);
    } else if (head->type == FRAME_PAGES) {
        query_handle_answer(r->job, head->host, head->rank, data, head->len);
    } else if (remote_has_rank(r->job, head->rank, head->host)) {
        remote_on_rank(host, head, data);
    }
}

void remote_child_ended(void *ctx, pid_t pid, int status)
{
    struct job_host *any = ctx;
    if (any->job->remote)
        tree_child_ended(any->job->remote->tree, pid, status);
}

static void make_tree_spec(struct remote *r, struct plan **plans)
{
    const struct job *j = r->job;
    const struct options *o = j->opt;
    r->spec = (struct tree_spec){.shell.launcher = (char *)o->launcher,
                                 .shell.command = (char *)(o->launcher_exec ? o->launcher_exec : ""),
                                 .fanout = (uint32_t)o->fanout,
                                 .timeout = (uint32_t)o->init_timeout,
                                 .heartbeat = (uint32_t)o->heartbeat,
                                 .verbose = o->verbose,
                                 .network = (char *)(o->network ? o->network : ""),
                                 .numbers = xcalloc(j->nhosts, sizeof(*r->spec.numbers)),
                                 .names = xcalloc(j->nhosts, sizeof(*r->spec.names))};
    for (uint32_t i = 0; i < j->nhosts; i++)
        if (plans[i]) {
            r->spec.numbers[r->spec.n] = i;
            r->spec.names[r->spec.n++] = (char *)j->hosts[i].name;
        }
}

void remote_start(struct job *j, struct plan **plans)
{
    static const struct tree_events events = {remote_on_frame};
    struct remote *r = xcalloc(1, sizeof(*r));
    r->job = j;
    make_tree_spec(r, plans);
    if (r->spec.n == 0) {
        free(r->spec.numbers);
        free(r->spec.names);
        free(r);
        return;
    }
    j->remote = r;
    r->tree = tree_new(&j->loop, &r->spec, &events, r);
    r->hosts = xcalloc(j->nhosts, sizeof(*r->hosts));
    for (uint32_t i = 0; i < j->nhosts; i++) {
        struct buf plan = {0};
        if (!plans[i])
            continue;
        r->hosts[i] = (struct remote_host){.host = &j->hosts[i], .remote = r, .number = i};
        j->hosts[i].ops = &remote_ops;
        j->hosts[i].impl = &r->hosts[i];
        plan_encode(plans[i], &plan);
        tree_send(r->tree, &(struct frame_head){FRAME_PLAN, i, 0, buf_size(&plan)}, buf_head(&plan));
        buf_free(&plan);
    }
    tree_run(r->tree);
}
