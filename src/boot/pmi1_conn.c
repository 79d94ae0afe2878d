/* pmi1_conn.c: socket operations of the PMI-1 client. The receive buffer grows to the length of the
 * longest line, at most PMI_LINE_MAX.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/pmi1_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

static int connect_any_address(const struct addrinfo *list)
{
    for (; list; list = list->ai_next) {
        int fd = socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC, list->ai_protocol);
        if (fd < 0)
            continue;
        if (connect(fd, list->ai_addr, list->ai_addrlen) == 0)
            return fd;
        close(fd);
    }
    return -1;
}

int pmi1_conn_connect(struct pmi1_conn *c, const char *address)
{
    char host[256];
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || (size_t)(colon - address) >= sizeof(host))
        return err_set(MPI_ERR_OTHER, "PMI_PORT is \"%.100s\", which is not host:port.", address);
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = '\0';
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
    int rc = getaddrinfo(host, colon + 1, &hints, &list);
    if (rc != 0)
        return err_set(MPI_ERR_OTHER, "The launcher's address %s (PMI_PORT) cannot be resolved: %s.", address,
                       gai_strerror(rc));
    c->fd = connect_any_address(list);
    freeaddrinfo(list);
    if (c->fd < 0)
        return err_set(MPI_ERR_OTHER, "The launcher at %s (PMI_PORT) cannot be reached: %s.", address,
                       strerror(errno));
    return 0;
}

void pmi1_conn_close(struct pmi1_conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    free(c->in);
    *c = (struct pmi1_conn){.fd = -1};
}

int pmi1_conn_write(struct pmi1_conn *c, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL);
        if (n < 0 && errno == ENOTSOCK)
            n = write(c->fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){.fd = c->fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (n < 0)
            return err_set(MPI_ERR_OTHER, "The connection to the launcher was lost (write: %s).",
                           strerror(errno));
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

int pmi1_conn_send(struct pmi1_conn *c, const char *fmt, ...)
{
    char line[2048];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(line, sizeof(line) - 1, fmt, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(line) - 1)
        return err_set(MPI_ERR_INTERN, "A start-up request of %d bytes is too long.", len);
    line[len] = '\n';
    return pmi1_conn_write(c, line, (size_t)len + 1);
}

/* Waits until the socket is readable. PMI1_LATE after the deadline. */
static int wait_readable(struct pmi1_conn *c, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = clock_ns();
        uint64_t left_ms = now >= deadline_ns ? 0 : (deadline_ns - now + 999999) / 1000000;
        int n = poll(&(struct pollfd){.fd = c->fd, .events = POLLIN}, 1, (int)MIN(left_ms, 1000000u));
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_set(MPI_ERR_OTHER, "Waiting for the launcher failed: %s.", strerror(errno));
        if (n == 0 && left_ms == 0)
            return PMI1_LATE;
    }
}

static int conn_read_input(struct pmi1_conn *c, uint64_t deadline_ns)
{
    if (c->in_used > 0) {
        memmove(c->in, c->in + c->in_used, c->in_len - c->in_used);
        c->in_len -= c->in_used;
        c->in_used = 0;
    }
    if (c->in_len == c->in_cap) {
        if (c->in_cap >= PMI_LINE_MAX)
            return err_set(MPI_ERR_OTHER, "The launcher sent a line longer than %u bytes.", PMI_LINE_MAX);
        size_t cap = c->in_cap ? c->in_cap * 2 : 4096;
        char *in = realloc(c->in, cap);
        if (!in)
            return err_set(MPI_ERR_NO_MEM, "Out of memory for the launcher's answer.");
        c->in = in;
        c->in_cap = cap;
    }
    int rc = wait_readable(c, deadline_ns);
    if (rc)
        return rc;
    ssize_t n = read(c->fd, c->in + c->in_len, c->in_cap - c->in_len);
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return err_set(MPI_ERR_OTHER, "The launcher closed its connection.");
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        return err_set(MPI_ERR_OTHER, "The connection to the launcher was lost (read: %s).", strerror(errno));
    c->in_len += n > 0 ? (size_t)n : 0;
    return 0;
}

static int conn_receive_line(struct pmi1_conn *c, uint64_t deadline_ns)
{
    for (;;) {
        char *start = c->in_len > c->in_used ? c->in + c->in_used : NULL;
        char *newline = start ? memchr(start, '\n', c->in_len - c->in_used) : NULL;
        if (newline) {
            *newline = '\0';
            c->in_used = (size_t)(newline + 1 - c->in);
            if (strlen(start) != (size_t)(newline - start) || !pmi_line_parse(start, &c->line))
                return err_set(MPI_ERR_OTHER, "The launcher sent a line that is not PMI-1.");
            return 0;
        }
        int rc = conn_read_input(c, deadline_ns);
        if (rc)
            return rc;
    }
}

int pmi1_conn_recv(struct pmi1_conn *c, uint64_t deadline_ns)
{
    for (;;) {
        int rc = conn_receive_line(c, deadline_ns);
        if (rc == PMI1_LATE)
            c->late++;
        if (rc || c->late == 0)
            return rc;
        c->late--;
    }
}
