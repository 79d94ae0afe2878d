/* query.c: queries about the ranks of other hosts. A query goes down the tree to every host with an agent;
 * replies are forwarded as they arrive, and the connection is closed after the last reply or the time limit.
 * The socket is in the abstract namespace, so that the kernel removes it with this process. Any user can
 * connect there, therefore SO_PEERCRED is checked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "job/query.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/acceptor.h"
#include "boot/launch_env.h"

#define PATIENCE_MS 4000 /* limit for the replies of agents and for the caller to read them */
#define QUERIES_MAX 16   /* served at the same time */

struct query {
    struct acceptor_caller in; /* first member: the acceptor's pointer is cast to struct query */
    struct job *job;
    struct watch caller;
    struct buf out;
    struct timer limit, sweep, begin;
    uint32_t number, left;
    bool *owes; /* [nhosts] true: the reply of this host is outstanding */
    struct query *next;
};

#define QUERY_REST_MS 50 /* wait before accepting again if no file descriptor is free */

struct query_server {
    struct watch listener;
    struct timer rest;
    struct acceptor acceptor;
    struct query *first;
    uint32_t last;
};

/* Frees the query in a later iteration of the event loop: the current one may still refer to its watch. */
static void query_on_sweep(void *ctx)
{
    struct query *q = ctx;
    free(q->owes);
    free(q);
}

static void query_finish(struct query *q)
{
    struct query_server *a = q->job->queries;
    struct query **p = &a->first;
    while (*p && *p != q)
        p = &(*p)->next;
    if (!*p)
        return;
    *p = q->next;
    acceptor_remove(&a->acceptor, &q->in);
    loop_cancel_timer(&q->job->loop, &q->limit);
    loop_cancel_timer(&q->job->loop, &q->begin);
    loop_close(&q->job->loop, &q->caller);
    buf_free(&q->out);
    loop_set_timer(&q->job->loop, &q->sweep, 0);
}

static void query_flush(struct query *q)
{
    const int error = buf_write(&q->out, q->caller.fd);
    if ((error && error != EAGAIN) || (buf_size(&q->out) == 0 && q->left == 0))
        query_finish(q);
    else
        loop_change_events(&q->job->loop, &q->caller, buf_size(&q->out) > 0 ? EPOLLOUT : 0);
}

static void query_on_caller(void *ctx, uint32_t events)
{
    struct query *q = ctx;
    if (events & (EPOLLHUP | EPOLLERR))
        query_finish(q);
    else if (events & EPOLLOUT)
        query_flush(q);
}

static void query_on_timeout(void *ctx)
{
    query_finish(ctx);
}

void query_handle_answer(struct job *j, uint32_t host, uint32_t number, const char *data, size_t len)
{
    struct query *q = j->queries ? j->queries->first : NULL;
    while (q && q->number != number)
        q = q->next;
    if (!q || !q->owes[host])
        return; /* the reply arrived after the time limit, or twice */
    q->owes[host] = false;
    q->left--;
    buf_add(&q->out, data, len);
    query_flush(q);
}

static bool is_query_permitted(int fd)
{
    struct ucred who;
    socklen_t size = sizeof(who);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && size == sizeof(who) &&
           (who.uid == geteuid() || who.uid == 0);
}

static void query_send_to_hosts(void *ctx)
{
    struct query *q = ctx;
    struct job *j = q->job;
    for (uint32_t i = 0; i < j->nhosts; i++) {
        struct job_host *h = &j->hosts[i];
        if (!h->ops || !h->ops->query || h->done)
            continue;
        q->owes[i] = true;
        q->left++;
        h->ops->query(h->impl, q->number);
    }
    query_flush(q);
}

static struct acceptor_caller *query_add_caller(void *ctx, int fd)
{
    struct job *j = ctx;
    struct query_server *a = j->queries;
    if (!is_query_permitted(fd))
        return NULL;
    struct query *q = xcalloc(1, sizeof(*q));
    *q = (struct query){.job = j, .number = ++a->last, .next = a->first};
    q->caller = (struct watch){.fd = -1, .fn = query_on_caller, .ctx = q};
    q->limit = (struct timer){.fn = query_on_timeout, .ctx = q};
    q->sweep = (struct timer){.fn = query_on_sweep, .ctx = q};
    q->begin = (struct timer){.fn = query_send_to_hosts, .ctx = q};
    q->owes = xcalloc(j->nhosts, sizeof(*q->owes));
    a->first = q;
    loop_add(&j->loop, &q->caller, fd, 0);
    loop_set_timer(&j->loop, &q->limit, PATIENCE_MS);
    /* begin later: the acceptor adds the caller to its list only after this function */
    loop_set_timer(&j->loop, &q->begin, 0);
    return &q->in;
}

static void query_reject(void *ctx, struct acceptor_caller *in)
{
    (void)ctx;
    query_finish((struct query *)in);
}

static const struct acceptor_ops query_acceptor_ops = {query_add_caller, query_reject};

static void query_on_connection(void *ctx, uint32_t events)
{
    struct job *j = ctx;
    (void)events;
    const int rc = acceptor_accept_pending(&j->queries->acceptor, j->queries->listener.fd, now_ms());
    if (rc == 0 || rc == ENOMEM) /* ENOMEM: a caller was refused */
        return;
    loop_change_events(&j->loop, &j->queries->listener, 0);
    loop_set_timer(&j->loop, &j->queries->rest, QUERY_REST_MS);
}

static void query_resume_accepting(void *ctx)
{
    struct job *j = ctx;
    loop_change_events(&j->loop, &j->queries->listener, EPOLLIN);
}

void query_open(struct job *j)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, QUERY_NAME "%s", j->id);
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    j->queries = xcalloc(1, sizeof(*j->queries));
    j->queries->listener = (struct watch){.fd = -1, .fn = query_on_connection, .ctx = j};
    j->queries->rest = (struct timer){.fn = query_resume_accepting, .ctx = j};
    acceptor_open(&j->queries->acceptor, QUERIES_MAX, PATIENCE_MS, &query_acceptor_ops, j);
    if (bind(fd, (struct sockaddr *)&at, size) != 0 || listen(fd, QUERIES_MAX) != 0 ||
        !loop_add(&j->loop, &j->queries->listener, fd, EPOLLIN)) {
        close(fd);
        acceptor_close(&j->queries->acceptor);
        free(j->queries);
        j->queries = NULL;
    }
}
