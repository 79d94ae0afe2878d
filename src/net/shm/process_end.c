/* process_end.c: waits for the end of processes of other jobs by their pidfds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "net/shm/process_end.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/small_thread.h"

static int process_open(int32_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec */
#else
    (void)pid;
    errno = ENOSYS;
    return -1;
#endif
}

/* ---- the thread ---- */

static void ends_thread_continue(struct process_ends *e)
{
    const uint64_t one = 1;
    (void)!write(e->turn, &one, sizeof(one));
}

static void *ends_thread_run(void *arg)
{
    struct process_ends *e = arg;
    struct pollfd fds[2] = {{.fd = e->set, .events = POLLIN}, {.fd = e->turn, .events = POLLIN}};
    uint64_t turns;
    /* One read may consume several turns, also that of process_ends_close: `stop` is checked after each. */
    while (!atomic_load(&e->stop)) {
        if (poll(fds, 2, -1) < 0 && errno == EINTR)
            continue;
        if (fds[0].revents & POLLIN) {
            atomic_store_explicit(&e->news, true, memory_order_release);
            net_doorbell_ring(e->net->doorbell);
        }
        (void)!read(e->turn, &turns, sizeof(turns));
    }
    return NULL;
}

static int open_end_watcher(struct process_ends *e, struct net *net)
{
    if (e->is_open)
        return 0;
    *e = (struct process_ends){.net = net};
    list_init(&e->list);
    e->set = epoll_create1(EPOLL_CLOEXEC);
    e->turn = e->set < 0 ? -1 : eventfd(0, EFD_CLOEXEC);
    int error = e->turn < 0 ? errno : small_thread_start(&e->thread, ends_thread_run, e);
    e->is_open = error == 0;
    if (!error)
        return 0;
    if (e->turn >= 0)
        close(e->turn);
    if (e->set >= 0)
        close(e->set);
    return error;
}

void process_ends_close(struct process_ends *e)
{
    if (!e->is_open)
        return;
    atomic_store(&e->stop, true);
    ends_thread_continue(e);
    pthread_join(e->thread, NULL);
    close(e->turn);
    close(e->set);
    e->is_open = false;
}

/* ---- processes ---- */

int process_ends_add(struct process_ends *e, struct net *net, int32_t pid, struct process_end *p)
{
    const int error = open_end_watcher(e, net);
    if (error)
        return error;
    p->pidfd = process_open(pid);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};
    if (p->pidfd < 0)
        return errno;
    if (epoll_ctl(e->set, EPOLL_CTL_ADD, p->pidfd, &event) != 0) {
        const int why = errno;
        close(p->pidfd);
        return why;
    }
    list_append(&e->list, &p->link);
    return 0;
}

/* Removes the process from the epoll set explicitly, because a forked child may still have the pidfd open. */
void process_ends_remove(struct process_ends *e, struct process_end *p)
{
    epoll_ctl(e->set, EPOLL_CTL_DEL, p->pidfd, NULL);
    close(p->pidfd);
    list_remove(&p->link);
}

struct process_end *process_ends_pop(struct process_ends *e)
{
    struct epoll_event event;
    if (epoll_wait(e->set, &event, 1, 0) == 1) {
        struct process_end *p = event.data.ptr;
        process_ends_remove(e, p);
        return p;
    }
    atomic_store_explicit(&e->news, false, memory_order_relaxed);
    ends_thread_continue(e);
    return NULL;
}
