/*
 * One pass over /proc builds the list of (process, parent); descendants are then found by repeated passes
 * over that list. Used only when something has to be ended, never in a job that goes well.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "descend.h"

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

#include "util.h"

struct entry {
    pid_t pid, parent;
    bool ours;
};

void descend_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* The parent from /proc/PID/stat, where the name in parentheses may hold anything; 0 when gone or a zombie.
 */
static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *close_paren = strrchr(text, ')');
    char state;
    int parent;
    if (!close_paren || sscanf(close_paren + 1, " %c %d", &state, &parent) != 2 || state == 'Z' ||
        state == 'X')
        return 0;
    return parent;
}

static size_t list_processes(struct entry **out)
{
    struct entry *list = NULL;
    size_t n = 0, cap = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *d; dir && (d = readdir(dir));) {
        long pid;
        if (!parse_number(d->d_name, 1, 1 << 30, &pid))
            continue;
        pid_t parent = parent_of((pid_t)pid);
        if (parent <= 0)
            continue;
        if (n == cap) {
            cap = cap ? cap * 2 : 256;
            list = xrealloc(list, cap * sizeof *list);
        }
        list[n++] = (struct entry){(pid_t)pid, parent, false};
    }
    if (dir)
        closedir(dir);
    *out = list;
    return n;
}

static bool is_ours(const struct entry *list, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].pid == pid)
            return list[i].ours;
    return false;
}

void descend_signal(int sig)
{
    struct entry *list;
    size_t n = list_processes(&list);
    pid_t self = getpid();
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            if (list[i].ours)
                continue;
            if (list[i].parent == self || is_ours(list, n, list[i].parent)) {
                list[i].ours = more = true;
                kill(list[i].pid, sig);
            }
        }
    }
    free(list);
}

/* Collects what has ended; false when no child is left at all. */
static bool collect(void)
{
    pid_t pid;
    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0);
    return pid == 0 || errno != ECHILD;
}

void descend_end(void)
{
    struct timespec moment = {.tv_nsec = 1000000};
    while (collect()) {
        descend_signal(SIGKILL);
        /* What was killed needs a moment to die, and there is no event for a grandchild's death. */
        nanosleep(&moment, NULL);
    }
}
