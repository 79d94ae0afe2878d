/* sample.c: takes samples. A status page is an open file of the rank's process, which /proc shows only to its
 * user and to root.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sample.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

/* Reads /proc/PID/stat after the name, which may contain blanks and parentheses. */
static bool read_stat(int pid, char *state, int *parent, unsigned long *ticks, unsigned long *started,
                      unsigned long *pages)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *behind = strrchr(text, ')');
    unsigned long user, system;
    if (!behind ||
        sscanf(behind + 1,
               " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %lu %*u %lu",
               state, parent, &user, &system, started, pages) != 6)
        return false;
    *ticks = user + system;
    return true;
}

int process_parent(int pid)
{
    char state;
    int parent;
    unsigned long ticks, started, pages;
    return read_stat(pid, &state, &parent, &ticks, &started, &pages) ? parent : 0;
}

double process_started(int pid)
{
    char state;
    int parent;
    unsigned long ticks, started, pages;
    if (!read_stat(pid, &state, &parent, &ticks, &started, &pages))
        return -1;
    return (double)started / (double)sysconf(_SC_CLK_TCK);
}

/* Copies a consistent page: `version` is odd while the rank writes, and differs after a write. */
static bool copy_page(int fd, struct page *out)
{
    uint32_t after;
    for (int i = 0; i < 100; i++) {
        if (pread(fd, out, sizeof(*out), 0) != sizeof(*out))
            return false;
        if (pread(fd, &after, sizeof(after), offsetof(struct page, version)) != sizeof(after))
            return false;
        if (after == atomic_load(&out->version) && (after & 1) == 0)
            return true;
    }
    return false;
}

static void shorten_path(char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash)
        memmove(path, slash + 1, strlen(slash + 1) + 1);
}

void sample_set_user(struct sample *s, uint32_t user)
{
    s->user = user;
    for (int i = 0; user != geteuid() && i < PAGE_WAITS; i++)
        shorten_path(s->page.waits[i].caller.module);
}

static bool sample_read_rank(int pid, int fd, struct sample *s)
{
    struct stat file;
    unsigned long ticks, started, pages;
    int parent;
    memset(s, 0, sizeof(*s));
    s->torn = !copy_page(fd, &s->page);
    s->now = clock_ns();
    s->pid = pid;
    if (!read_stat(pid, &s->state, &parent, &ticks, &started, &pages))
        return false;
    s->cpu_ns = (uint64_t)ticks * (1000000000u / (unsigned long)sysconf(_SC_CLK_TCK));
    s->memory = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    /* A forked child inherits its parent's page, whose pid differs. */
    if (!page_check(&s->page) || s->page.pid != pid || fstat(fd, &file) != 0)
        return false;
    sample_set_user(s, file.st_uid);
    return true;
}

bool snapshots_account(struct snapshots *l, uint32_t user, size_t bytes)
{
    if (user == geteuid())
        return true;
    if (bytes > FOREIGN_MAX - l->foreign) {
        l->is_incomplete = true;
        return false;
    }
    l->foreign += bytes;
    return true;
}

static struct snapshot *snapshots_find_job(struct snapshots *l, const struct page *page, uint32_t user)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->jobs[i].job, page->job) == 0 && l->jobs[i].user == user)
            return &l->jobs[i];
    if (!snapshots_account(l, user, sizeof(*l->jobs) + page->ranks * sizeof(struct sample *)))
        return NULL;
    struct snapshot *grown = realloc(l->jobs, (l->count + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    l->jobs = grown;
    struct snapshot *snapshot = &grown[l->count];
    *snapshot = (struct snapshot){
        .user = user, .ranks = page->ranks, .samples = calloc(page->ranks, sizeof(struct sample *))};
    snprintf(snapshot->job, sizeof(snapshot->job), "%s", page->job);
    if (!snapshot->samples)
        return NULL;
    l->count++;
    return snapshot;
}

bool snapshots_add(struct snapshots *l, const struct sample *s)
{
    struct snapshot *snapshot = snapshots_find_job(l, &s->page, s->user);
    if (!snapshot || s->page.ranks != snapshot->ranks || s->page.rank >= snapshot->ranks)
        return false;
    struct sample **at = &snapshot->samples[s->page.rank];
    snapshot->seen += *at == NULL;
    if (!*at)
        *at = malloc(sizeof(**at));
    if (*at)
        **at = *s;
    return *at != NULL;
}

/* Opens a page file and nothing else: the link text in /proc is not proof of the file type, and opening a
 * FIFO or a device may block or have side effects. */
static int page_file_open(struct snapshots *l, int folder, const char *name)
{
    char path[64];
    struct stat s;
    const int seen = openat(folder, name, O_PATH | O_CLOEXEC);
    if (seen < 0)
        return -1;
    int fd = -1;
    if (fstat(seen, &s) == 0 && S_ISREG(s.st_mode) && s.st_size == (off_t)sizeof(struct page) &&
        snapshots_account(l, s.st_uid, sizeof(struct sample))) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", seen);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    close(seen);
    return fd;
}

/* Adds the pages among the open files of a process: one, or none, or several if a rank forked it. */
static void scan_process(struct snapshots *l, int pid, struct sample *scratch)
{
    char folder[64], link[64];
    snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
    DIR *d = opendir(folder);
    if (!d)
        return; /* the process has ended or belongs to another user */
    for (struct dirent *e; (e = readdir(d));) {
        const ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
        if (n <= 0)
            continue;
        link[n] = '\0';
        if (strncmp(link, "/memfd:" PAGE_NAME, strlen("/memfd:" PAGE_NAME)) != 0)
            continue;
        const int fd = page_file_open(l, dirfd(d), e->d_name);
        if (fd < 0)
            continue;
        if (sample_read_rank(pid, fd, scratch))
            snapshots_add(l, scratch);
        close(fd);
    }
    closedir(d);
}

int snapshots_take_host(struct snapshots *out)
{
    *out = (struct snapshots){0};
    DIR *d = opendir("/proc");
    struct sample *scratch = malloc(sizeof(*scratch));
    if (!d || !scratch) {
        const int error = d ? ENOMEM : errno;
        if (d)
            closedir(d);
        free(scratch);
        return error;
    }
    for (struct dirent *e; (e = readdir(d));) {
        const int pid = atoi(e->d_name);
        if (pid > 0)
            scan_process(out, pid, scratch);
    }
    closedir(d);
    free(scratch);
    return 0;
}

void snapshots_free(struct snapshots *l)
{
    for (size_t i = 0; i < l->count; i++) {
        for (uint32_t r = 0; r < l->jobs[i].ranks; r++)
            free(l->jobs[i].samples[r]);
        free(l->jobs[i].samples);
    }
    free(l->jobs);
    *l = (struct snapshots){0};
}

static bool process_descends_from(int pid, int from)
{
    for (int steps = 0; pid > 1 && steps < 64; steps++) {
        if (pid == from)
            return true;
        pid = process_parent(pid);
    }
    return false;
}

static bool is_job_selected(const struct snapshot *snapshot, const char *which)
{
    char *end;
    const long pid = strtol(which, &end, 10);
    if (*end != '\0' || pid <= 0)
        return strstr(snapshot->job, which) != NULL;
    if (strncmp(snapshot->job, "fp", 2) == 0 && strtol(snapshot->job + 2, NULL, 10) == pid)
        return true; /* `pid` is the mpiexec whose number is in the job's name */
    for (uint32_t r = 0; r < snapshot->ranks; r++)
        if (snapshot->samples[r] && !snapshot->samples[r]->away &&
            process_descends_from(snapshot->samples[r]->pid, (int)pid))
            return true;
    return false;
}

const struct snapshot *snapshots_find_same(const struct snapshots *l, const struct snapshot *job)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->jobs[i].job, job->job) == 0 && l->jobs[i].user == job->user &&
            l->jobs[i].ranks == job->ranks)
            return &l->jobs[i];
    return NULL;
}

struct snapshot *snapshots_choose(struct snapshots *l, const char *which, const char **why)
{
    struct snapshot *found = NULL;
    for (size_t i = 0; i < l->count; i++) {
        if (which && !is_job_selected(&l->jobs[i], which))
            continue;
        if (found) {
            *why = which ? "several jobs fit; `fishplate ps` lists them"
                         : "several jobs run; say which: `fishplate ps` lists them";
            return NULL;
        }
        found = &l->jobs[i];
    }
    if (!found)
        *why = which ? "no such job of yours runs on this machine; `fishplate ps` lists those that do"
                     : "no MPI job of yours runs on this machine";
    return found;
}
