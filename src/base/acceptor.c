/* acceptor.c: accepts connections, and limits callers that have not authenticated.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH 64 /* limit of the callers that one call of acceptor_accept_pending accepts */

static int open_spare_descriptor(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void acceptor_open(struct acceptor *a, uint32_t max, uint32_t ms, const struct acceptor_ops *ops, void *ctx)
{
    *a = (struct acceptor){.ops = ops, .ctx = ctx, .max = max, .ms = ms, .spare = open_spare_descriptor()};
    a->last = &a->first;
}

static void acceptor_reject_caller(struct acceptor *a, struct acceptor_caller *c)
{
    acceptor_remove(a, c);
    a->ops->reject(a->ctx, c);
}

void acceptor_close(struct acceptor *a)
{
    while (a->first)
        acceptor_reject_caller(a, a->first);
    if (a->spare >= 0)
        close(a->spare);
    a->spare = -1;
}

void acceptor_remove(struct acceptor *a, struct acceptor_caller *c)
{
    struct acceptor_caller **at = &a->first;
    while (*at && *at != c)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = c->next;
    if (a->last == &c->next)
        a->last = at;
    a->n--;
}

static int accept_connection(int listener)
{
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static bool is_resource_error(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* True if a connection is pending. accept() also fails with EMFILE if no connection is pending. */
static bool has_pending_connection(int listener)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Accepts a connection when no descriptor is free: the oldest unproven caller is rejected to get one.
 * Without such a caller the new connection is rejected by means of the spare descriptor; otherwise it
 * would stay pending. -1 with errno. */
static int accept_without_descriptors(struct acceptor *a, int listener, int error)
{
    if (a->first) {
        acceptor_reject_caller(a, a->first);
        return accept_connection(listener);
    }
    if (a->spare >= 0) {
        close(a->spare);
        const int fd = accept_connection(listener);
        if (fd >= 0)
            close(fd);
        a->spare = open_spare_descriptor();
    }
    errno = error;
    return -1;
}

static int acceptor_admit_caller(struct acceptor *a, int fd, uint64_t now)
{
    if (a->n >= a->max)
        acceptor_reject_caller(a, a->first);
    struct acceptor_caller *c = a->ops->admit(a->ctx, fd);
    if (!c) {
        close(fd);
        return ENOMEM;
    }
    c->until = now + a->ms;
    c->next = NULL;
    *a->last = c;
    a->last = &c->next;
    a->n++;
    return 0;
}

int acceptor_accept_pending(struct acceptor *a, int listener, uint64_t now)
{
    int error = 0;
    for (int i = 0; i < BATCH && !error; i++) {
        int fd = accept_connection(listener);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            if (!has_pending_connection(listener))
                return 0;
            fd = accept_without_descriptors(a, listener, errno);
        }
        if (fd >= 0)
            error = acceptor_admit_caller(a, fd, now);
        else if (is_resource_error(errno))
            error = errno;
        else if (errno != EINTR && errno != ECONNABORTED)
            return 0;
    }
    return error;
}

uint64_t acceptor_expire(struct acceptor *a, uint64_t now)
{
    while (a->first && a->first->until <= now)
        acceptor_reject_caller(a, a->first);
    return a->first ? a->first->until - now : UINT64_MAX;
}
