/* engine.c: the thread and the task queue of the engine. One epoll set and one timer, set to the earliest
 * task. A program thread that polls may also run any task, so that a polling program never waits for the
 * engine thread to wake up.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define ATTENDANTS 4

static int ep_fd = -1, wake_fd = -1, timer_fd = -1;
static struct lock task_lock;
static struct task *tasks;
static _Atomic uint64_t next_due = NEVER; /* deadline of the earliest task in `tasks` */
static struct lock timer_lock;
static _Atomic uint64_t timer_set = NEVER; /* time to which timer_fd is set */
static const struct attendant *attendants[ATTENDANTS];
static unsigned nattendants;

/* --- descriptors --- */

bool engine_add(int fd, struct watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    return !epoll_ctl(ep_fd, EPOLL_CTL_ADD, fd, &e);
}

void engine_modify_watch(int fd, struct watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    epoll_ctl(ep_fd, EPOLL_CTL_MOD, fd, &e);
}

void engine_remove_watch(int fd)
{
    epoll_ctl(ep_fd, EPOLL_CTL_DEL, fd, NULL);
}

void engine_wake(void)
{
    uint64_t one = 1;
    if (write(wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        softib_log("cannot wake the engine thread (write to its eventfd): %s", strerror(errno));
}

static void drain_fd(int fd)
{
    uint64_t v;
    while (read(fd, &v, sizeof(v)) > 0)
        ;
}

static void engine_on_wake(struct watch *w, uint32_t ev)
{
    (void)w, (void)ev;
    drain_fd(wake_fd);
}

static void engine_on_timer(struct watch *w, uint32_t ev)
{
    (void)w, (void)ev;
    spinlock_acquire(&timer_lock);
    drain_fd(timer_fd);
    atomic_store(&timer_set, NEVER);
    spinlock_release(&timer_lock);
}

/* Sets the timer in the calling thread: waking the engine thread would cost two context switches. The timer
 * is only moved to an earlier time; when it expires, the engine thread sets it to the next deadline. */
static void set_timer(uint64_t due)
{
    struct itimerspec t = {0};
    due = max_u64(due, 1); /* 0 would disarm the timer */
    t.it_value.tv_sec = (time_t)(due / NS_S);
    t.it_value.tv_nsec = (long)(due % NS_S);
    spinlock_acquire(&timer_lock);
    if (due < atomic_load(&timer_set)) {
        timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
        atomic_store(&timer_set, due);
    }
    spinlock_release(&timer_lock);
}

/* --- tasks --- */

static void unlink_task(struct task *t)
{
    uint64_t min = NEVER;
    for (struct task **p = &tasks; *p;) {
        if (*p == t) {
            *p = t->next;
            atomic_store(&t->queued, false);
            continue;
        }
        min = min_u64(min, (*p)->due);
        p = &(*p)->next;
    }
    atomic_store(&next_due, min);
}

void engine_defer(struct task *t, uint64_t due)
{
    spinlock_acquire(&task_lock);
    if (!t->queued) {
        atomic_store(&t->queued, true);
        t->next = tasks;
        tasks = t;
        t->due = due;
    } else {
        t->due = min_u64(t->due, due);
    }
    if (t->due < atomic_load(&next_due))
        atomic_store(&next_due, t->due);
    spinlock_release(&task_lock);
    if (due < atomic_load(&timer_set))
        set_timer(due);
}

void engine_cancel_task(struct task *t)
{
    unsigned turn = 0;
    spinlock_acquire(&task_lock);
    if (t->queued)
        unlink_task(t);
    spinlock_release(&task_lock);
    while (atomic_load(&t->busy))
        spin_wait(&turn);
}

static struct task *pop_due_task(uint64_t now)
{
    spinlock_acquire(&task_lock);
    struct task *t = tasks;
    while (t && t->due > now)
        t = t->next;
    if (t) {
        atomic_fetch_add(&t->busy, 1);
        unlink_task(t);
    }
    spinlock_release(&task_lock);
    return t;
}

static void run_due_tasks(void)
{
    struct task *t;
    while (now_ns() >= atomic_load(&next_due) && (t = pop_due_task(now_ns()))) {
        t->run(t);
        atomic_fetch_sub(&t->busy, 1);
    }
}

/* --- attendants --- */

void engine_add_attendant(const struct attendant *a)
{
    attendants[nattendants++] = a;
}

void engine_poll(void)
{
    if (UNLIKELY(atomic_load_explicit(&next_due, memory_order_relaxed) != NEVER))
        run_due_tasks();
    for (unsigned i = 0; i < nattendants; i++)
        attendants[i]->poll();
}

void engine_notify_armed(void)
{
    for (unsigned i = 0; i < nattendants; i++)
        if (attendants[i]->armed)
            attendants[i]->armed();
}

/* Returns the longest sleep in ms that all attendants permit. */
static int compute_sleep_ms(void)
{
    unsigned least = ~0u; /* as an int -1: no limit */
    for (unsigned i = 0; i < nattendants; i++) {
        unsigned ms = (unsigned)attendants[i]->sleep(atomic_load(&next_due));
        least = ms < least ? ms : least;
    }
    return (int)least;
}

/* --- the thread --- */

static void *engine_thread_main(void *arg)
{
    struct epoll_event ev[32];
    (void)arg;
    pthread_setname_np(pthread_self(), "softib-engine");
    for (;;) {
        set_timer(atomic_load(&next_due));
        int n = epoll_wait(ep_fd, ev, ARRAY_LEN(ev), compute_sleep_ms());
        for (int i = 0; i < n; i++) {
            struct watch *w = ev[i].data.ptr;
            w->ready(w, ev[i].events);
        }
        for (unsigned i = 0; i < nattendants; i++)
            if (attendants[i]->woke)
                attendants[i]->woke();
        run_due_tasks();
    }
    return NULL;
}

bool engine_open(void)
{
    static struct watch wake = {engine_on_wake}, timer = {engine_on_timer};
    nattendants = 0;
    ep_fd = epoll_create1(EPOLL_CLOEXEC);
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return ep_fd >= 0 && wake_fd >= 0 && timer_fd >= 0 && engine_add(wake_fd, &wake, EPOLLIN) &&
           engine_add(timer_fd, &timer, EPOLLIN);
}

bool engine_run(void)
{
    pthread_t thread;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are delivered to the program's threads only */
    int r = pthread_create(&thread, NULL, engine_thread_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!r)
        pthread_detach(thread);
    return !r;
}

void engine_reset_after_fork(void)
{
    close(ep_fd);
    close(wake_fd);
    close(timer_fd);
    tasks = NULL;
    nattendants = 0;
    atomic_store(&next_due, NEVER);
    atomic_store(&timer_set, NEVER);
    memset(&task_lock, 0, sizeof(task_lock));
    memset(&timer_lock, 0, sizeof(timer_lock));
}
