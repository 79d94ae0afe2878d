/*
 * See engine.h. One epoll set, one timer for the earliest deferred send; every deferred send may as well be
 * run by a program thread that polls, so that the thread's wake-up is never in the way of a polling program.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "engine.h"
#include "hca.h"
#include "share.h"
#include "wire.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int ep_fd = -1, wake_fd = -1, timer_fd = -1;
static pthread_t thread;
static struct lock defer_lock;
static struct qp *deferred;
static _Atomic uint64_t next_due = NEVER;  /* of the list */
static _Atomic uint64_t timer_set = NEVER; /* what the thread sleeps until */
static uint32_t seen_down[FAB_MAX_PORTS / 32];
static _Atomic uint64_t polls; /* wire (b): counts pollers' visits */
static atomic_uint armed_wakes;
static _Atomic uint64_t tick_due = NEVER;
static atomic_bool aside; /* wire (b): the thread leaves the sockets to a poller */

bool engine_add(int fd, struct watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    return !epoll_ctl(ep_fd, EPOLL_CTL_ADD, fd, &e);
}

void engine_mod(int fd, struct watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    epoll_ctl(ep_fd, EPOLL_CTL_MOD, fd, &e);
}

void engine_del(int fd)
{
    epoll_ctl(ep_fd, EPOLL_CTL_DEL, fd, NULL);
}

void engine_wake(void)
{
    uint64_t one = 1;
    if (write(wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        say("cannot wake the engine: %s", strerror(errno));
}

static void drain_fd(int fd)
{
    uint64_t v;
    while (read(fd, &v, sizeof(v)) > 0)
        ;
}

static void on_wake(struct watch *w, uint32_t ev)
{
    (void)w, (void)ev;
    drain_fd(wake_fd);
}

static void on_timer(struct watch *w, uint32_t ev)
{
    (void)w, (void)ev;
    drain_fd(timer_fd);
    atomic_store(&timer_set, NEVER);
}

static void handle_event(const struct sh_event *e)
{
    struct qp *q;
    switch (e->kind) {
    case SHEV_QP_ERROR:
        if ((q = qp_lookup(e->index))) {
            qp_fail(q, (enum ibv_event_type)e->detail, true);
            atomic_fetch_sub(&q->busy, 1);
        }
        break;
    case SHEV_SRQ_LIMIT:
        srq_limit_event(e->index);
        break;
    case SHEV_CQ_OVERRUN:
        cq_note_overrun(e->index);
        break;
    }
}

/* Ports of our own HCAs that changed since we looked last: the plan of the fabric text, or `softib ctl`. */
static uint64_t check_ports(void)
{
    uint64_t since = now_ns() - proc.reg->began, next = NEVER;
    uint32_t per_node = proc.fab.hcas * proc.fab.ports, first = proc.fab.node * per_node;
    for (uint32_t i = 0; i < proc.fab.nports; i++) {
        const struct fab_port *f = &proc.fab.port[i];
        struct reg_port *r = &proc.reg->port[i];
        unsigned planned = atomic_load(&r->plan);
        if (!(planned & 1) && f->down_at <= since && !(atomic_fetch_or(&r->plan, 1) & 1))
            atomic_store(&r->up, 0);
        if (!(planned & 2) && f->up_at <= since && !(atomic_fetch_or(&r->plan, 2) & 2))
            atomic_store(&r->up, 1);
        if (f->down_at > since)
            next = min_u64(next, f->down_at);
        if (f->up_at > since)
            next = min_u64(next, f->up_at);
        bool down = !atomic_load(&r->up), was = seen_down[i / 32] >> (i % 32) & 1;
        if (down != was && i >= first && i < first + per_node) {
            seen_down[i / 32] ^= 1u << (i % 32);
            port_changed(i, !down);
        }
    }
    return next == NEVER ? NEVER : next + proc.reg->began;
}

static void on_bell(struct watch *w, uint32_t ev)
{
    char buf[16];
    (void)w, (void)ev;
    while (recv(proc.bell_fd, buf, sizeof(buf), MSG_DONTWAIT) >= 0)
        ;
    atomic_store(&proc.reg->member[proc.slot].rung, 0);
    struct arena *a = proc.arena;
    for (uint64_t h; (h = atomic_load(&a->ev_head)) != atomic_load(&a->ev_tail);) {
        struct sh_event e = a->event[h % EVENTS];
        atomic_store(&a->ev_head, h + 1);
        handle_event(&e);
    }
}

static void on_death(struct watch *w, uint32_t ev)
{
    struct peer *p = CONTAINER_OF(w, struct peer, death);
    (void)ev;
    atomic_store(&p->dead, true);
    engine_del(p->pidfd);
    peer_put(p);
}

void engine_watch_peer(struct peer *p)
{
    p->death.ready = on_death;
    atomic_fetch_add(&p->refs, 1);
    if (!engine_add(p->pidfd, &p->death, EPOLLIN))
        atomic_fetch_sub(&p->refs, 1);
}

static void unlink_locked(struct qp *q)
{
    uint64_t min = NEVER;
    for (struct qp **p = &deferred; *p;) {
        if (*p == q) {
            *p = q->defer_next;
            atomic_store(&q->deferred, false);
            continue;
        }
        min = min_u64(min, (*p)->due);
        p = &(*p)->defer_next;
    }
    atomic_store(&next_due, min);
}

void engine_defer(struct qp *q, uint64_t due)
{
    lock_take(&defer_lock);
    if (!q->deferred) {
        atomic_store(&q->deferred, true);
        q->defer_next = deferred;
        deferred = q;
        q->due = due;
    } else {
        q->due = min_u64(q->due, due);
    }
    if (q->due < atomic_load(&next_due))
        atomic_store(&next_due, q->due);
    lock_drop(&defer_lock);
    if (due < atomic_load(&timer_set))
        engine_wake();
}

void engine_forsake(struct qp *q)
{
    unsigned turn = 0;
    lock_take(&defer_lock);
    if (q->deferred)
        unlink_locked(q);
    lock_drop(&defer_lock);
    while (atomic_load(&q->busy))
        spin_wait(&turn);
}

static struct qp *take_due(uint64_t now)
{
    lock_take(&defer_lock);
    struct qp *q = deferred;
    while (q && q->due > now)
        q = q->defer_next;
    if (q) {
        atomic_fetch_add(&q->busy, 1);
        unlink_locked(q);
    }
    lock_drop(&defer_lock);
    return q;
}

static void run_due(void)
{
    struct qp *q;
    while (now_ns() >= atomic_load(&next_due) && (q = take_due(now_ns()))) {
        sq_run(q);
        atomic_fetch_sub(&q->busy, 1);
    }
}

/* Under the wire's lock. */
static void run_tick(void)
{
    uint64_t due = atomic_load_explicit(&tick_due, memory_order_relaxed), now;
    if (LIKELY(due == NEVER) || (now = now_ns()) < due)
        return;
    atomic_store(&tick_due, NEVER);
    wire_tick(now);
}

void engine_poll(void)
{
    if (UNLIKELY(atomic_load_explicit(&next_due, memory_order_relaxed) != NEVER))
        run_due();
    if (UNLIKELY(share_open()))
        share_help();
    if (LIKELY(!atomic_load_explicit(&wire_active, memory_order_relaxed)))
        return;
    atomic_fetch_add_explicit(&polls, 1, memory_order_relaxed);
    if (wire_try_lock()) {
        run_tick();
        wire_peek();
        wire_unlock();
    }
}

void engine_tick_at(uint64_t due)
{
    uint64_t old = atomic_load(&tick_due);
    while (due < old && !atomic_compare_exchange_weak(&tick_due, &old, due))
        ;
    if (due < atomic_load(&timer_set))
        engine_wake();
}

bool engine_aside(void)
{
    return atomic_load_explicit(&aside, memory_order_relaxed);
}

void engine_armed(void)
{
    if (LIKELY(!atomic_load_explicit(&wire_active, memory_order_relaxed)))
        return;
    atomic_fetch_add(&armed_wakes, 1);
    if (atomic_exchange(&aside, false))
        engine_wake();
}

static void set_timer(uint64_t due)
{
    struct itimerspec t = {0};
    t.it_value.tv_sec = (time_t)(due / NS_S);
    t.it_value.tv_nsec = (long)(due % NS_S);
    if (due != NEVER)
        timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
    atomic_store(&timer_set, due);
    /* Published first, then looked again: a deferral that saw the old value has woken us or is seen here. */
    if (min_u64(atomic_load(&next_due), atomic_load(&tick_due)) < due)
        engine_wake();
}

/*
 * A program that polls drains the sockets itself: while it keeps polling and arms no completion queue, this
 * thread only checks every millisecond that it still does. Returns the time to sleep.
 */
static int share_sockets(void)
{
    static uint64_t last_polls, last_drained;
    static unsigned last_armed;
    static bool watching = true;
    static uint64_t distrust_until;
    if (!atomic_load(&wire_active))
        return -1;
    uint64_t p = atomic_load(&polls);
    unsigned a = atomic_load(&armed_wakes);
    uint64_t now = now_ns();
    /* Bytes it left lying: it looks at its memory, not at a completion queue. Then do it all for a while. */
    uint64_t drained = wire_drains();
    if (!watching && drained - last_drained < 16 && wire_pending())
        distrust_until = now + 200 * NS_MS;
    bool polled = p != last_polls && a == last_armed && now >= distrust_until;
    atomic_store(&aside, polled);
    if (polled && atomic_load(&armed_wakes) != a) /* armed just now: it may not have seen us step aside */
        polled = false;
    if (watching == polled)
        wire_attend(watching = !polled);
    last_polls = p;
    last_drained = drained;
    last_armed = a;
    return polled ? 1 : -1;
}

static void *run(void *arg)
{
    struct epoll_event ev[32];
    (void)arg;
    pthread_setname_np(pthread_self(), "softib-engine");
    for (;;) {
        uint64_t port_next = check_ports();
        set_timer(min_u64(min_u64(atomic_load(&next_due), atomic_load(&tick_due)), port_next));
        int wait = share_sockets();
        bool attend = share_attend(min_u64(atomic_load(&next_due), atomic_load(&tick_due)));
        int n = epoll_wait(ep_fd, ev, ARRAY_LEN(ev), attend ? 0 : wait);
        bool wired = n > 0 && atomic_load(&wire_active);
        if (wired)
            wire_lock();
        for (int i = 0; i < n; i++) {
            struct watch *w = ev[i].data.ptr;
            w->ready(w, ev[i].events);
        }
        if (wired)
            wire_unlock();
        if (atomic_load(&wire_active) && (n == 0 || wired)) {
            wire_lock();
            run_tick();
            wire_flush();
            wire_unlock();
        }
        run_due();
    }
    return NULL;
}

bool engine_listen(uint32_t slot)
{
    return proc.fab.wire != WIRE_TCP || wire_listen(slot);
}

bool engine_start(void)
{
    static struct watch wake = {on_wake}, timer = {on_timer}, bell = {on_bell};
    ep_fd = epoll_create1(EPOLL_CLOEXEC);
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (ep_fd < 0 || wake_fd < 0 || timer_fd < 0 || !engine_add(wake_fd, &wake, EPOLLIN) ||
        !engine_add(timer_fd, &timer, EPOLLIN) || !engine_add(proc.bell_fd, &bell, EPOLLIN))
        return false;
    if (proc.fab.wire == WIRE_TCP && !wire_start())
        return false;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are for the program's threads */
    int r = pthread_create(&thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!r)
        pthread_detach(thread);
    return !r;
}

void engine_forget(void)
{
    close(ep_fd);
    close(wake_fd);
    close(timer_fd);
    deferred = NULL;
    atomic_store(&next_due, NEVER);
    atomic_store(&timer_set, NEVER);
    memset(&defer_lock, 0, sizeof(defer_lock));
    wire_forget();
}
