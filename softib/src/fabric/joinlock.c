/* joinlock.c: the lock under which a process joins its fabric. The process that listens on an abstract
 * socket name holds the lock. Any user can bind any abstract name, but the kernel reports the user of a
 * listening socket (SO_PEERCRED): a name of another user is skipped, and the next name is used. If another
 * user releases a name at the wrong moment, two processes of this user can hold different names. Therefore
 * each process searches for the other one after it has bound a name; if it finds one, both try again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/joinlock.h"
#include "fabric/registry.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NAMES 4096u
/* Age from which a bound name without a listener is ignored; before that its owner may be about to listen. */
#define SILENT_NS (200 * NS_MS)
#define SAY_NS    (2 * NS_S)
#define GIVE_UP_S 60 /* default of SOFTIB_JOIN_SECONDS */

struct wait {
    uint64_t key, since, patience;
    bool said;
};

static uint64_t joinlock_timeout(void)
{
    const char *v = getenv("SOFTIB_JOIN_SECONDS");
    char *end;
    unsigned long s = v ? strtoul(v, &end, 10) : GIVE_UP_S;
    if (!v || (s && s <= 86400 && !*end))
        return s * NS_S;
    softib_log("SOFTIB_JOIN_SECONDS=%s is not a number of seconds from 1 to 86400; the default of %d is used",
               v, GIVE_UP_S);
    return GIVE_UP_S * NS_S;
}

static socklen_t lock_name(struct sockaddr_un *a, uint64_t key, unsigned n)
{
    return abstract_name(a, "softib/%016llx/lock.%u", (unsigned long long)key, n);
}

static void joinlock_sleep(uint64_t ns)
{
    struct timespec t = {0, (long)ns};
    nanosleep(&t, NULL);
}

static int joinlock_listen(uint64_t key, unsigned n)
{
    struct sockaddr_un a;
    socklen_t len = lock_name(&a, key, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || (!bind(fd, (struct sockaddr *)&a, len) && !listen(fd, 4096)))
        return fd;
    int e = errno;
    close(fd);
    errno = e;
    return -1;
}

enum holder { NOBODY, SILENT, STRANGER, OURS };

/* Finds the process that bound the name. If it is of this user, also connects to it: the connection closes
 * when the lock is released. */
static enum holder joinlock_find_holder(uint64_t key, unsigned n, struct ucred *who, int *fd)
{
    struct sockaddr_un a;
    socklen_t len = lock_name(&a, key, n), size = sizeof(*who);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0)
        return SILENT;
    enum holder h = NOBODY;
    if (!connect(*fd, (struct sockaddr *)&a, len))
        h = getsockopt(*fd, SOL_SOCKET, SO_PEERCRED, who, &size) || who->uid != geteuid() ? STRANGER : OURS;
    else if (errno == EAGAIN || errno == EPROTOTYPE)
        h = SILENT;
    if (h == OURS)
        return h;
    close(*fd);
    *fd = -1;
    return h;
}

/* Waits until the holder releases the lock or changes. False: the time limit has passed. */
static bool wait_for_holder(struct wait *w, int fd, pid_t pid)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (;;) {
        uint64_t spent = now_ns() - w->since;
        if (spent > w->patience) {
            softib_log(
                "cannot join the fabric: process %d has been joining it for %llu s. If that process is "
                "stopped, continue or end it; SOFTIB_JOIN_SECONDS sets how long to wait",
                pid, (unsigned long long)(w->patience / NS_S));
            errno = ETIMEDOUT;
            return false;
        }
        if (spent > SAY_NS && !w->said) {
            softib_log("waiting for process %d, which is joining the same fabric", pid);
            w->said = true;
        }
        if (poll(&p, 1, 100))
            return true;
    }
}

/* Binds the first name that no other user holds. -1 with EAGAIN: the caller tries again. */
static int bind_first_free_name(struct wait *w, unsigned *n)
{
    struct ucred who;
    uint64_t silent_since = 0;
    for (*n = 0; *n < NAMES;) {
        int peer, fd = joinlock_listen(w->key, *n);
        if (fd >= 0 || errno != EADDRINUSE)
            return fd;
        enum holder h = joinlock_find_holder(w->key, *n, &who, &peer);
        if (h == OURS) {
            bool again = wait_for_holder(w, peer, who.pid);
            int e = again ? EAGAIN : errno;
            close(peer);
            errno = e;
            return -1;
        }
        silent_since = h == STRANGER ? 0 : silent_since ? silent_since : now_ns();
        if (h == STRANGER || now_ns() - silent_since > SILENT_NS) {
            ++*n;
            silent_since = 0;
        } else {
            joinlock_sleep(NS_MS / 4);
        }
    }
    softib_log(
        "other users hold all %u socket names that lock this fabric: set another name= in SOFTIB_FABRIC",
        NAMES);
    errno = EADDRINUSE;
    return -1;
}

/* True if a process of this user listens on another name of the lock. */
static bool joinlock_has_other_listener(uint64_t key, unsigned mine)
{
    char line[512], want[64];
    FILE *in = fopen("/proc/net/unix", "re");
    bool found = false;
    snprintf(want, sizeof(want), "@softib/%016llx/lock.", (unsigned long long)key);
    while (in && !found && fgets(line, sizeof(line), in)) {
        char *p = strstr(line, want);
        unsigned n;
        struct ucred who;
        int fd = -1;
        if (p && sscanf(p + strlen(want), "%u", &n) == 1 && n != mine)
            found = joinlock_find_holder(key, n, &who, &fd) == OURS;
        if (fd >= 0)
            close(fd);
    }
    if (in)
        fclose(in);
    return found;
}

int joinlock_acquire(uint64_t key)
{
    struct wait w = {.key = key, .since = now_ns(), .patience = joinlock_timeout()};
    uint64_t rng = (w.since ^ (uint64_t)getpid() << 32) | 1;
    for (;;) {
        unsigned n;
        int fd = bind_first_free_name(&w, &n);
        if (fd < 0 && errno == EAGAIN)
            continue;
        if (fd < 0 || !joinlock_has_other_listener(key, n))
            return fd;
        close(fd);
        joinlock_sleep(NS_MS + rng_next(&rng) % (8 * NS_MS));
    }
}
