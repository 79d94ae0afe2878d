/* loop.c: the event loop. There are few timers at a time, so they are a plain list.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "core/loop.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/util.h"

void loop_init(struct loop *l)
{
    *l = (struct loop){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (l->epoll < 0)
        launcher_die(1, "mpiexec cannot create its event loop: %s.%s", strerror(errno),
                     errno == EMFILE ? " Raise the limit of open files (ulimit -n)." : "");
}

bool loop_add(struct loop *l, struct watch *w, int fd, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    if (fd < 0)
        launcher_die(1, "mpiexec cannot open a file that it needs: %s.%s", strerror(errno),
                     errno == EMFILE ? " Raise the limit of open files (ulimit -n)." : "");
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
        if (errno == EPERM)
            return false;
        launcher_die(1, "mpiexec cannot watch file descriptor %d: %s.", fd, strerror(errno));
    }
    w->fd = fd;
    w->events = events;
    return true;
}

void loop_change_events(struct loop *l, struct watch *w, uint32_t events)
{
    if (w->fd < 0 || w->events == events)
        return;
    struct epoll_event e = {.events = events, .data.ptr = w};
    epoll_ctl(l->epoll, EPOLL_CTL_MOD, w->fd, &e);
    w->events = events;
}

void loop_remove(struct loop *l, struct watch *w)
{
    if (w->fd >= 0)
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    w->fd = -1;
    for (int i = 0; i < l->count; i++)
        if (l->events[i].data.ptr == w)
            l->events[i].data.ptr = NULL;
}

void loop_close(struct loop *l, struct watch *w)
{
    int fd = w->fd;
    loop_remove(l, w);
    if (fd >= 0)
        close(fd);
}

void loop_cancel_timer(struct loop *l, struct timer *t)
{
    struct timer **p = &l->timers;
    while (*p && *p != t)
        p = &(*p)->next;
    if (*p)
        *p = t->next;
    t->at = 0;
}

void loop_set_timer(struct loop *l, struct timer *t, uint64_t ms)
{
    loop_cancel_timer(l, t);
    t->at = now_ms() + ms;
    t->next = l->timers;
    l->timers = t;
}

/* Milliseconds to the next timer, -1 for none. */
static int next_timeout(const struct loop *l)
{
    uint64_t best = UINT64_MAX, now;
    for (const struct timer *t = l->timers; t; t = t->next)
        best = t->at < best ? t->at : best;
    if (best == UINT64_MAX)
        return -1;
    now = now_ms();
    if (best <= now)
        return 0;
    return best - now > 3600000 ? 3600000 : (int)(best - now);
}

static void fire_timers(struct loop *l)
{
    if (!l->timers)
        return;
    uint64_t now = now_ms();
    for (struct timer *t = l->timers; t;) {
        if (t->at > now) {
            t = t->next;
            continue;
        }
        loop_cancel_timer(l, t);
        t->fn(t->ctx);
        t = l->timers; /* the handler may have changed the list */
    }
}

void loop_run(struct loop *l)
{
    struct epoll_event events[64];
    while (!l->stop) {
        l->count = epoll_wait(l->epoll, events, COUNT_OF(events), next_timeout(l));
        l->events = events;
        for (int i = 0; i < l->count && !l->stop; i++) {
            struct watch *w = events[i].data.ptr;
            if (w && w->fd >= 0)
                w->fn(w->ctx, events[i].events);
        }
        l->count = 0;
        if (!l->stop)
            fire_timers(l);
    }
}
