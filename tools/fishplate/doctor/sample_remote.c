/* sample_remote.c: requests the samples of other hosts from every mpiexec of this machine with a job on
 * several hosts. /proc/net/unix lists their sockets; each side verifies the user of the other (SO_PEERCRED):
 * the user of the job, or root.
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

enum { PATIENCE_MS = 5000, REQUESTS_PER_USER = 64 };

#define LISTENER_FLAG 0x10000u /* flag __SO_ACCEPTCON in /proc/net/unix */

/* A connection to one mpiexec. */
struct request {
    int fd;
    uid_t user;
    char *bytes;
    size_t size, room;
};

struct requests {
    struct request *list;
    int count;
};

/* Checks the user of the process at the other end, because any user can create a socket of that name. */
static bool is_trusted(int fd, uid_t *user)
{
    struct ucred who;
    socklen_t size = sizeof(who);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || size != sizeof(who))
        return false;
    *user = who.uid;
    return who.uid == geteuid() || geteuid() == 0;
}

/* Adds a connection; false if its user has too many: one user must not exhaust root's descriptors. */
static bool requests_add(struct requests *r, int fd, uid_t user)
{
    int same = 0;
    for (int i = 0; i < r->count; i++)
        same += r->list[i].user == user;
    if (same >= REQUESTS_PER_USER)
        return false;
    struct request *grown = realloc(r->list, ((size_t)r->count + 1) * sizeof(*grown));
    if (!grown)
        return false;
    r->list = grown;
    grown[r->count++] = (struct request){.fd = fd, .user = user};
    return true;
}

static int query_connect(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const size_t len = strlen(name);
    if (len >= sizeof(at.sun_path))
        return -1;
    memcpy(at.sun_path + 1, name, len);
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, size) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Returns the name of a listening socket of an mpiexec ("@fishplate-job-...") in a line of /proc/net/unix;
 * NULL for other lines. Connected sockets have the same name, but not LISTENER_FLAG. */
static const char *listener_name(char *line)
{
    unsigned flags;
    char *name = strstr(line, " @" QUERY_NAME);
    if (!name || sscanf(line, "%*s %*s %*s %x", &flags) != 1 || !(flags & LISTENER_FLAG))
        return NULL;
    name += 2;
    name[strcspn(name, "\n")] = '\0';
    return name;
}

static void requests_open(struct requests *r)
{
    char line[512];
    uid_t user;
    FILE *f = fopen("/proc/net/unix", "re");
    while (f && fgets(line, sizeof(line), f)) {
        const char *name = listener_name(line);
        const int fd = name ? query_connect(name) : -1;
        if (fd >= 0 && !(is_trusted(fd, &user) && requests_add(r, fd, user)))
            close(fd);
    }
    if (f)
        fclose(f);
}

/* Receives more bytes of a reply; false at its end or on an error. */
static bool receive_answer_bytes(struct snapshots *l, struct request *c)
{
    if (c->room - c->size < 65536) {
        char *more = realloc(c->bytes, 2 * c->room + 131072);
        if (!more)
            return false;
        c->bytes = more;
        c->room = 2 * c->room + 131072;
    }
    const ssize_t n = recv(c->fd, c->bytes + c->size, c->room - c->size, 0);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    c->size += (size_t)n;
    return n > 0 && snapshots_account(l, c->user, (size_t)n);
}

/* Receives all replies concurrently, because a host that does not respond delays the reply of its mpiexec. */
static void requests_receive(struct snapshots *l, struct requests *r)
{
    struct pollfd *files = calloc((size_t)r->count, sizeof(*files));
    const uint64_t end = clock_ns() + PATIENCE_MS * 1000000ull;
    int left = files ? r->count : 0;
    for (int i = 0; i < left; i++)
        files[i] = (struct pollfd){.fd = r->list[i].fd, .events = POLLIN};
    while (left > 0) {
        const uint64_t now = clock_ns();
        if (now >= end)
            break;
        if (poll(files, (nfds_t)r->count, (int)((end - now) / 1000000) + 1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < r->count; i++)
            if (files[i].fd >= 0 && files[i].revents && !receive_answer_bytes(l, &r->list[i])) {
                files[i].fd = -1;
                left--;
            }
    }
    free(files);
}

static void add_samples(struct snapshots *l, const struct request *c, struct sample *scratch)
{
    size_t at = 0;
    for (long n = 0; (n = sample_read(c->bytes + at, c->size - at, scratch)) > 0; at += (size_t)n) {
        if (!snapshots_account(l, c->user, sizeof(*scratch)))
            break;
        sample_set_user(scratch, c->user);
        snapshots_add(l, scratch);
    }
}

static void add_other_hosts(struct snapshots *l)
{
    struct requests r = {0};
    struct sample *scratch = malloc(sizeof(*scratch));
    if (scratch)
        requests_open(&r);
    if (r.count > 0)
        requests_receive(l, &r);
    for (int i = 0; i < r.count; i++) {
        if (r.list[i].bytes)
            add_samples(l, &r.list[i], scratch);
        free(r.list[i].bytes);
        close(r.list[i].fd);
    }
    free(r.list);
    free(scratch);
}

int snapshots_take_all(struct snapshots *out)
{
    const int error = snapshots_take_host(out);
    if (!error)
        add_other_hosts(out);
    return error;
}
