/* loop.c: the lock, the epoll set and the timer of the TCP/UDP wire.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/loop.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int set_fd = -1;
static struct watch set_watch;
static struct task clock_task;
static void (*on_tick)(uint64_t now);
atomic_bool loop_aside;

void net_lock(void)
{
    pthread_mutex_lock(&mutex);
}

bool net_try_lock(void)
{
    return !pthread_mutex_trylock(&mutex);
}

void net_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

bool net_watch(int fd, struct watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    return !epoll_ctl(set_fd, EPOLL_CTL_ADD, fd, &e);
}

void net_watch_change(int fd, struct watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    epoll_ctl(set_fd, EPOLL_CTL_MOD, fd, &e);
}

int loop_run(void)
{
    struct epoll_event ev[16];
    int n = epoll_wait(set_fd, ev, ARRAY_LEN(ev), 0);
    for (int i = 0; i < n; i++) {
        struct watch *w = ev[i].data.ptr;
        w->ready(w, ev[i].events);
    }
    return n;
}

bool loop_has_ready_sockets(void)
{
    struct pollfd p = {.fd = set_fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

void loop_set_watching(bool on)
{
    engine_modify_watch(set_fd, &set_watch, on ? EPOLLIN : 0);
}

void net_schedule_tick(uint64_t due)
{
    engine_defer(&clock_task, due);
}

static void run_clock_task(struct task *t)
{
    (void)t;
    net_lock();
    on_tick(now_ns());
    net_unlock();
}

bool loop_start(void (*ready)(struct watch *w, uint32_t events), void (*tick)(uint64_t now))
{
    pthread_mutex_init(&mutex, NULL); /* another thread of the parent may have held the lock */
    clock_task = (struct task){.run = run_clock_task};
    on_tick = tick;
    set_watch.ready = ready;
    set_fd = epoll_create1(EPOLL_CLOEXEC);
    return set_fd >= 0 && engine_add(set_fd, &set_watch, EPOLLIN);
}

void loop_reset_after_fork(void)
{
    close(set_fd);
}
