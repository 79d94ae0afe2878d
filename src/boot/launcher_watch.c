/* launcher_watch.c: the thread of launcher_watch.h. It waits for the end of the connection and reads
 * nothing: the main thread reads answers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/launcher_watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/small_thread.h"

_Noreturn void launcher_watch_end_process(const struct boot *b)
{
    if (b->local_rank == 0)
        fprintf(stderr, "fishplate: The launcher of this job is gone; its %u rank%s on %s end%s.\n",
                b->nlocal, b->nlocal == 1 ? "" : "s", b->host, b->nlocal == 1 ? "s" : "");
    _exit(1);
}

static void *launcher_watch_thread(void *arg)
{
    struct launcher_watch *w = arg;
    for (;;) {
        struct pollfd p[] = {{.fd = w->fd, .events = POLLRDHUP}, {.fd = w->stop, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (p[1].revents)
            return NULL;
        if (p[0].revents)
            launcher_watch_end_process(w->boot);
    }
}

void launcher_watch_start(struct launcher_watch *w, const struct boot *b, int fd)
{
    *w = (struct launcher_watch){.boot = b, .fd = fd, .stop = eventfd(0, EFD_CLOEXEC)};
    if (w->stop < 0)
        return;
    w->running = small_thread_start(&w->thread, launcher_watch_thread, w) == 0;
    if (!w->running)
        close(w->stop);
}

void launcher_watch_stop(struct launcher_watch *w)
{
    uint64_t one = 1;
    if (!w->running)
        return;
    if (write(w->stop, &one, sizeof(one)) == sizeof(one))
        pthread_join(w->thread, NULL);
    close(w->stop);
    w->running = false;
}
