/*
 * Wire (b) as a whole: its lock, the set of its sockets, its clock. A polling program and the engine thread
 * drive the same code; whoever holds the lock drains.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conn.h"
#include "greet.h"
#include "udp.h"
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

atomic_bool wire_active;
static pthread_mutex_t mutex; /* recursive: the engine holds it around all its work */
static _Atomic uint64_t drains;
static int set_fd = -1;
static struct watch set_watch;

void wire_lock(void)
{
    pthread_mutex_lock(&mutex);
}

bool wire_try_lock(void)
{
    return !pthread_mutex_trylock(&mutex);
}

void wire_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

uint32_t wire_fabric(void)
{
    return (uint32_t)proc.fab.id;
}

bool wire_watch(int fd, struct watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    return !epoll_ctl(set_fd, EPOLL_CTL_ADD, fd, &e);
}

void wire_watch_again(int fd, struct watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    epoll_ctl(set_fd, EPOLL_CTL_MOD, fd, &e);
}

bool wire_listen(uint32_t slot)
{
    uint16_t port = (uint16_t)(proc.fab.base_of[proc.fab.node] + slot);
    if (!greet_listen(port))
        return false;
    if (udp_bind(port))
        return true;
    greet_forget();
    return false;
}

static void bury(void)
{
    conn_bury();
    greet_bury();
}

void wire_tick(uint64_t now)
{
    conn_tick(now);
    greet_tick(now);
    barrier_tick(now);
    udp_tick();
    bury();
}

void wire_poll(void)
{
    struct epoll_event ev[16];
    wire_flush();
    int n = epoll_wait(set_fd, ev, ARRAY_LEN(ev), 0);
    if (n > 0)
        atomic_fetch_add_explicit(&drains, 1, memory_order_relaxed);
    for (int i = 0; i < n; i++) {
        struct watch *w = ev[i].data.ptr;
        w->ready(w, ev[i].events);
    }
    bury();
}

/* A frame mostly comes from where the last one came from: one read instead of asking for all sockets first.
 */
void wire_peek(void)
{
    static unsigned turn;
    struct conn *c = conn_hot;
    if (!c || c->broken || ++turn % 4 == 0) {
        wire_poll();
        return;
    }
    wire_flush();
    conn_hot = NULL;
    conn_receive(c);
    if (conn_hot)
        atomic_fetch_add_explicit(&drains, 1, memory_order_relaxed);
    else if (!c->broken)
        conn_hot = c;
    if (c->broken)
        bury();
}

static void on_set(struct watch *w, uint32_t ev)
{
    (void)w, (void)ev;
    wire_poll();
    wire_flush();
}

uint64_t wire_drains(void)
{
    return atomic_load_explicit(&drains, memory_order_relaxed);
}

bool wire_pending(void)
{
    struct pollfd p = {.fd = set_fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

void wire_attend(bool on)
{
    engine_mod(set_fd, &set_watch, on ? EPOLLIN : 0);
}

bool wire_start(void)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &a);
    pthread_mutexattr_destroy(&a);
    set_fd = epoll_create1(EPOLL_CLOEXEC);
    set_watch.ready = on_set;
    conns = NULL;
    bool ok = set_fd >= 0 && greet_start() && udp_start() && engine_add(set_fd, &set_watch, EPOLLIN);
    atomic_store(&wire_active, ok);
    return ok;
}

void wire_forget(void)
{
    if (!atomic_load(&wire_active))
        return;
    atomic_store(&wire_active, false);
    for (struct conn *c = conns; c; c = c->next) {
        reach_end(c);
        if (c->fd >= 0)
            close(c->fd);
    }
    close(set_fd);
    greet_forget();
    udp_forget();
}
