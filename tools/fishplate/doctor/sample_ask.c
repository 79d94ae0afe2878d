/* sample_ask.c: asks every mpiexec of this machine that has ranks on other hosts what they do. The kernel lists their
 * sockets; each side makes sure who the other is (SO_PEERCRED): the user of the job, or root.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "boot/launch_env.h"
#include "sample.h"

enum { PATIENCE_MS = 5000, CALLS_MAX = 64, ANSWER_MAX = 512 << 20 };

/* One mpiexec that is asked. */
struct call {
    int fd;
    char *bytes;
    size_t size, room;
};

/* Is it a process of ours? Anybody can give a socket that name. */
static bool is_ours(int fd)
{
    struct ucred who;
    socklen_t size = sizeof(who);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && size == sizeof(who) &&
           (who.uid == geteuid() || geteuid() == 0);
}

static int call_up(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const size_t len = strlen(name);
    if (len >= sizeof(at.sun_path))
        return -1;
    memcpy(at.sun_path + 1, name, len);
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, size) == 0 && is_ours(fd))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The sockets that mpiexecs listen at: lines of /proc/net/unix that end in "@fishplate-job-...". Those of connections
 * have the name too, so a name counts once. */
static int call_all(struct call *calls)
{
    char names[CALLS_MAX][128], line[512];
    int n = 0, seen = 0;
    FILE *f = fopen("/proc/net/unix", "re");
    while (f && seen < CALLS_MAX && fgets(line, sizeof(line), f)) {
        char *name = strstr(line, " @" ASK_NAME);
        int same = 0;
        if (!name)
            continue;
        name += 2;
        name[strcspn(name, "\n")] = '\0';
        while (same < seen && strcmp(names[same], name) != 0)
            same++;
        if (same < seen || strlen(name) >= sizeof(names[0]))
            continue;
        strcpy(names[seen++], name);
        const int fd = call_up(name);
        if (fd >= 0)
            calls[n++] = (struct call){.fd = fd};
    }
    if (f)
        fclose(f);
    return n;
}

/* False at the end. */
static bool hear(struct call *c)
{
    if (c->room - c->size < 65536) {
        char *more = c->size < ANSWER_MAX ? realloc(c->bytes, 2 * c->room + 131072) : NULL;
        if (!more)
            return false;
        c->bytes = more;
        c->room = 2 * c->room + 131072;
    }
    const ssize_t n = recv(c->fd, c->bytes + c->size, c->room - c->size, 0);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    c->size += (size_t)n;
    return n > 0;
}

/* All at once, because each may have to wait for a host that does not answer. */
static void hear_all(struct call *calls, int n)
{
    struct pollfd files[CALLS_MAX];
    const uint64_t end = clock_ns() + PATIENCE_MS * 1000000ull;
    int left = n;
    for (int i = 0; i < n; i++)
        files[i] = (struct pollfd){.fd = calls[i].fd, .events = POLLIN};
    while (left > 0) {
        const uint64_t now = clock_ns();
        if (now >= end)
            break;
        if (poll(files, (nfds_t)n, (int)((end - now) / 1000000) + 1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < n; i++)
            if (files[i].fd >= 0 && files[i].revents && !hear(&calls[i])) {
                files[i].fd = -1;
                left--;
            }
    }
}

static void add_samples(struct looks *l, const struct call *c, struct sample *scratch)
{
    size_t at = 0;
    for (long n = 0; (n = sample_read(c->bytes + at, c->size - at, scratch)) > 0; at += (size_t)n)
        looks_add(l, scratch);
}

void looks_ask(struct looks *l)
{
    struct call calls[CALLS_MAX];
    struct sample *scratch = malloc(sizeof(*scratch));
    const int n = scratch ? call_all(calls) : 0;
    hear_all(calls, n);
    for (int i = 0; i < n; i++) {
        if (calls[i].bytes)
            add_samples(l, &calls[i], scratch);
        free(calls[i].bytes);
        close(calls[i].fd);
    }
    free(scratch);
}
