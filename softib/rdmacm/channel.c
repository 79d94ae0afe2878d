/* channel.c: event channels: a queue of events, and an epoll descriptor that is readable if there is an
 * event or input.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cm.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

pthread_mutex_t cm_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t cm_acked = PTHREAD_COND_INITIALIZER;

int cm_return_error(int error)
{
    errno = error;
    return -1;
}

bool channel_add(struct cm_channel *c, struct cm_watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    return !epoll_ctl(c->channel.fd, EPOLL_CTL_ADD, w->fd, &e) ||
           (errno == EEXIST && !epoll_ctl(c->channel.fd, EPOLL_CTL_MOD, w->fd, &e));
}

void channel_remove(struct cm_channel *c, struct cm_watch *w)
{
    if (w->fd < 0)
        return;
    epoll_ctl(c->channel.fd, EPOLL_CTL_DEL, w->fd, NULL);
    close(w->fd);
    w->fd = -1;
}

static void close_all(struct cm_channel *c)
{
    if (c->channel.fd >= 0)
        close(c->channel.fd);
    if (c->queue.fd >= 0)
        close(c->queue.fd);
    if (c->spare >= 0)
        close(c->spare);
    free(c);
}

SOFTIB_API struct rdma_event_channel *rdma_create_event_channel(void)
{
    if (!device_init())
        return NULL;
    struct cm_channel *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->channel.fd = epoll_create1(EPOLL_CLOEXEC);
    c->queue = (struct cm_watch){.kind = WATCH_QUEUE, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    c->spare = eventfd(0, EFD_CLOEXEC);
    c->last = &c->first;
    if (c->channel.fd >= 0 && c->queue.fd >= 0 && c->spare >= 0 && channel_add(c, &c->queue, EPOLLIN))
        return &c->channel;
    int error = errno;
    close_all(c);
    errno = error;
    return NULL;
}

SOFTIB_API void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    struct cm_channel *c = (struct cm_channel *)(void *)channel;
    while (c->first) {
        struct cm_event *e = c->first;
        c->first = e->next;
        free(e);
    }
    close_all(c);
}

static void channel_append_event(struct cm_channel *c, struct cm_event *e)
{
    const uint64_t one = 1;
    if (!c->first)
        (void)!write(c->queue.fd, &one, sizeof(one));
    e->next = NULL;
    *c->last = e;
    c->last = &e->next;
}

static void clear_if_empty(struct cm_channel *c)
{
    uint64_t count;
    if (!c->first)
        (void)!read(c->queue.fd, &count, sizeof(count));
}

struct cm_event *channel_report(struct cm_id *p, enum rdma_cm_event_type type, int status)
{
    struct cm_event *e = calloc(1, sizeof(*e));
    if (!e) {
        errno = ENOMEM;
        return NULL;
    }
    e->e.id = &p->id;
    e->e.event = type;
    e->e.status = status;
    e->counted = p;
    channel_append_event(channel_of(p), e);
    return e;
}

/* Removes the events of an identifier from its channel's queue and returns them in order. */
static struct cm_event *channel_take_events(struct cm_id *p)
{
    struct cm_channel *c = channel_of(p);
    struct cm_event *taken = NULL, **end = &taken, **at = &c->first;
    bool any = c->first;
    while (*at) {
        struct cm_event *e = *at;
        if (e->e.id == &p->id || e->e.listen_id == &p->id) {
            *at = e->next;
            e->next = NULL;
            *end = e;
            end = &e->next;
        } else {
            at = &e->next;
        }
    }
    c->last = at;
    if (any)
        clear_if_empty(c);
    return taken;
}

void channel_discard_events(struct cm_id *p)
{
    struct cm_event *e = channel_take_events(p);
    while (e) {
        struct cm_event *next = e->next;
        struct rdma_cm_id *unknown = e->e.listen_id == &p->id ? e->e.id : NULL;
        free(e);
        if (unknown) /* a request that was not reported to the program */
            id_free(CM_OF(unknown));
        e = next;
    }
}

void channel_set_timer(struct cm_id *p, unsigned ms)
{
    channel_remove(channel_of(p), &p->timer);
    if (!ms)
        return;
    struct itimerspec t = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l}};
    p->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (p->timer.fd >= 0 &&
        (timerfd_settime(p->timer.fd, 0, &t, NULL) || !channel_add(channel_of(p), &p->timer, EPOLLIN)))
        channel_remove(channel_of(p), &p->timer);
}

static void move_watch(struct cm_channel *from, struct cm_channel *to, struct cm_watch *w, uint32_t events)
{
    if (w->fd < 0)
        return;
    epoll_ctl(from->channel.fd, EPOLL_CTL_DEL, w->fd, NULL);
    channel_add(to, w, events);
}

static void channel_move_id(struct cm_id *p, struct cm_channel *to)
{
    struct cm_channel *from = channel_of(p);
    struct cm_event *e = channel_take_events(p);
    if (p->state == CM_LISTENING)
        for (unsigned i = 0; i < p->listens; i++)
            move_watch(from, to, &p->listen[i], EPOLLIN);
    move_watch(from, to, &p->link_watch, p->link.state == LINK_CONNECTING ? EPOLLOUT : EPOLLIN);
    move_watch(from, to, &p->timer, EPOLLIN);
    for (struct cm_id *u = p->unproved; u; u = u->unproved_next)
        channel_move_id(u, to);
    p->id.channel = &to->channel;
    while (e) {
        struct cm_event *next = e->next;
        if (e->e.listen_id == &p->id)
            channel_move_id(CM_OF(e->e.id), to);
        channel_append_event(to, e);
        e = next;
    }
}

static void event_acknowledge(struct cm_event *e)
{
    pthread_mutex_lock(&cm_lock);
    if (e->counted) {
        e->counted->unacked--;
        pthread_cond_broadcast(&cm_acked);
    }
    pthread_mutex_unlock(&cm_lock);
    free(e);
}

SOFTIB_API int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    if (!event)
        return cm_return_error(EINVAL);
    event_acknowledge((struct cm_event *)(void *)event);
    return 0;
}

static void channel_handle_watch(struct cm_watch *w)
{
    switch (w->kind) {
    case WATCH_LISTENER:
        listen_ready(w);
        break;
    case WATCH_LINK:
        connect_link_ready(w->id);
        break;
    case WATCH_TIMER:
        connect_handle_timeout(w->id);
        break;
    case WATCH_QUEUE:
        break;
    }
}

/* Handles ready descriptors and returns the next event; NULL: none. Handles one descriptor at a time, since
 * handling a descriptor may close others. */
static struct cm_event *fetch_next_event(struct cm_channel *c)
{
    struct epoll_event ep;
    while (!c->first && epoll_wait(c->channel.fd, &ep, 1, 0) == 1)
        channel_handle_watch(ep.data.ptr);
    struct cm_event *e = c->first;
    if (!e)
        return NULL;
    c->first = e->next;
    if (!c->first)
        c->last = &c->first;
    clear_if_empty(c);
    if (e->counted)
        e->counted->unacked++;
    return e;
}

SOFTIB_API int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    struct cm_channel *c = (struct cm_channel *)(void *)channel;
    if (!c || !event)
        return cm_return_error(EINVAL);
    for (;;) {
        struct epoll_event ep;
        pthread_mutex_lock(&cm_lock);
        struct cm_event *e = fetch_next_event(c);
        pthread_mutex_unlock(&cm_lock);
        if (e) {
            *event = &e->e;
            return 0;
        }
        if (fcntl(c->channel.fd, F_GETFL) & O_NONBLOCK)
            return cm_return_error(EAGAIN);
        if (epoll_wait(c->channel.fd, &ep, 1, -1) < 0)
            return -1;
    }
}

static int event_error(const struct rdma_cm_event *e)
{
    if (!e->status)
        return 0;
    return e->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : e->status < 0 ? -e->status : ENETUNREACH;
}

int id_wait(struct cm_id *p)
{
    if (!p->synchronous)
        return 0;
    if (p->id.event) {
        rdma_ack_cm_event(p->id.event);
        p->id.event = NULL;
    }
    if (rdma_get_cm_event(p->id.channel, &p->id.event))
        return -1;
    int error = event_error(p->id.event);
    return error ? cm_return_error(error) : 0;
}

int id_make_synchronous(struct cm_id *p)
{
    struct rdma_event_channel *own = rdma_create_event_channel();
    if (!own)
        return -1;
    if (p->id.channel)
        channel_move_id(p, (struct cm_channel *)(void *)own);
    p->id.channel = own;
    p->synchronous = true;
    return 0;
}

SOFTIB_API int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
    struct cm_id *p = CM_OF(id);
    struct rdma_event_channel *old = p->synchronous ? id->channel : NULL;
    if (!channel && p->synchronous)
        return cm_return_error(EINVAL);
    if (old && id->event) {
        rdma_ack_cm_event(id->event);
        id->event = NULL;
    }
    pthread_mutex_lock(&cm_lock);
    while (p->unacked)
        pthread_cond_wait(&cm_acked, &cm_lock);
    int r = 0;
    if (channel)
        channel_move_id(p, (struct cm_channel *)(void *)channel);
    else
        r = id_make_synchronous(p);
    if (channel)
        p->synchronous = false;
    pthread_mutex_unlock(&cm_lock);
    if (old && !r)
        rdma_destroy_event_channel(old);
    return r;
}

SOFTIB_API const char *rdma_event_str(enum rdma_cm_event_type event)
{
#define NAME(type) [type] = #type
    static const char *const names[] = {
        NAME(RDMA_CM_EVENT_ADDR_RESOLVED),   NAME(RDMA_CM_EVENT_ADDR_ERROR),
        NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),  NAME(RDMA_CM_EVENT_ROUTE_ERROR),
        NAME(RDMA_CM_EVENT_CONNECT_REQUEST), NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
        NAME(RDMA_CM_EVENT_CONNECT_ERROR),   NAME(RDMA_CM_EVENT_UNREACHABLE),
        NAME(RDMA_CM_EVENT_REJECTED),        NAME(RDMA_CM_EVENT_ESTABLISHED),
        NAME(RDMA_CM_EVENT_DISCONNECTED),    NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
        NAME(RDMA_CM_EVENT_MULTICAST_JOIN),  NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
        NAME(RDMA_CM_EVENT_ADDR_CHANGE),     NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
    };
#undef NAME
    return (unsigned)event < sizeof(names) / sizeof(*names) ? names[event] : "UNKNOWN EVENT";
}
