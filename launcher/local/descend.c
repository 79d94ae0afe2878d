/* descend.c: one pass over /proc builds the list of (process, parent); repeated passes over that list find
 * the descendants. This is used only when something has to be ended, never in a job that goes well.
 *
 * /proc is opened at the start, and one file descriptor is kept in reserve to read it, because running out of
 * descriptors is a typical reason for ending a job. Without /proc, the kernel is queried for each process
 * number whether it is a child of this process; all descendants become children in the end, because the
 * launcher is a subreaper.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "local/descend.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/util.h"
#include "cli/number.h"

#define END_MS     10000   /* ms; a process that survives KILL for longer (hung disk I/O) is left running */
#define TRIES_MIN  8       /* fewest tries: without /proc one try may take seconds */
#define PID_MAX    4194304 /* the kernel's own limit */
#define PAUSE_FROM 1000000 /* nanoseconds between two tries, doubled each time */
#define PAUSE_TO   64000000

struct entry {
    pid_t pid, parent, group;
    bool ours;
};

/* The descendants to signal (descend.h). has_group NULL: all of them. */
struct selection {
    bool (*has_group)(const void *ctx, pid_t group);
    const void *ctx;
};

static bool is_selected(const struct selection *s, pid_t group)
{
    return !s->has_group || s->has_group(s->ctx, group);
}

static struct {
    DIR *dir; /* /proc; NULL: there is none */
    int spare;
} proc = {NULL, -1};

static void reserve_spare_descriptor(void)
{
    if (proc.spare < 0)
        proc.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void descend_become_subreaper(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* Reopen /proc: a forked child shares the read position of its parent's descriptor. */
    if (proc.dir)
        closedir(proc.dir);
    proc.dir = opendir("/proc");
    reserve_spare_descriptor();
}

/* Reads the parent and the process group from /proc/PID/stat, where the name in parentheses may contain any
 * character; false if the process has ended or is a zombie. */
static bool read_process(pid_t pid, struct entry *out)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "%d/stat", (int)pid);
    int fd = openat(dirfd(proc.dir), path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *close_paren = strrchr(text, ')');
    char state;
    *out = (struct entry){.pid = pid};
    return close_paren && sscanf(close_paren + 1, " %c %d %d", &state, &out->parent, &out->group) == 3 &&
           state != 'Z' && state != 'X' && out->parent > 0;
}

static size_t list_processes(struct entry **out)
{
    struct entry *list = NULL;
    size_t n = 0, cap = 0;
    rewinddir(proc.dir);
    for (struct dirent *d; (d = readdir(proc.dir));) {
        long pid;
        if (!number_parse_integer(d->d_name, 1, 1 << 30, &pid))
            continue;
        struct entry entry;
        if (!read_process((pid_t)pid, &entry))
            continue;
        if (n == cap) {
            cap = cap ? cap * 2 : 256;
            list = xrealloc(list, cap * sizeof(*list));
        }
        list[n++] = entry;
    }
    *out = list;
    return n;
}

static bool is_descendant(const struct entry *list, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].pid == pid)
            return list[i].ours;
    return false;
}

/* Signals the selected descendants found in /proc; returns how many. */
static size_t signal_by_proc(int sig, const struct selection *selection)
{
    struct entry *list;
    size_t n = list_processes(&list), signalled = 0;
    pid_t self = getpid();
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            if (list[i].ours)
                continue;
            if (list[i].parent == self || is_descendant(list, n, list[i].parent)) {
                list[i].ours = more = true;
                if (is_selected(selection, list[i].group))
                    signalled += kill(list[i].pid, sig) == 0;
            }
        }
    }
    free(list);
    return signalled;
}

/* True if a child exists that is not merely waiting to be reaped. */
static bool has_running_child(void)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

/* Signals children and the process groups they lead; other descendants become children when their parents
 * end. */
static void signal_by_number(int sig, const struct selection *selection)
{
    for (pid_t pid = 2; pid <= PID_MAX; pid++) {
        siginfo_t info;
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            is_selected(selection, getpgid(pid)))
            kill(getpgid(pid) == pid ? -pid : pid, sig);
    }
}

void descend_signal(int sig, bool (*has_group)(const void *ctx, pid_t group), const void *ctx)
{
    const struct selection selection = {has_group, ctx};
    size_t signalled = 0;
    if (proc.spare >= 0)
        close(proc.spare);
    proc.spare = -1;
    if (proc.dir)
        signalled = signal_by_proc(sig, &selection);
    reserve_spare_descriptor();
    /* Children that are not selected may run on. */
    if (signalled == 0 && (!proc.dir || !has_group) && has_running_child())
        signal_by_number(sig, &selection);
}

/* Reaps ended children; false if no child is left. */
static bool reap_ended_children(void)
{
    pid_t pid;
    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0);
    return pid == 0 || errno != ECHILD;
}

bool descend_end(void)
{
    struct timespec pause = {.tv_nsec = PAUSE_FROM};
    uint64_t end = now_ms() + END_MS;
    for (int tries = 0; reap_ended_children(); tries++) {
        if (now_ms() >= end && tries >= TRIES_MIN) {
            message_print(
                "A process of this job did not end within %d seconds after SIGKILL and was left running; "
                "it may be waiting for a disk or a network file system that does not respond.",
                END_MS / 1000);
            return false;
        }
        descend_signal(SIGKILL, NULL, NULL);
        /* Killed processes end with a delay, and a grandchild's death raises no event. */
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < PAUSE_TO)
            pause.tv_nsec *= 2;
    }
    return true;
}
