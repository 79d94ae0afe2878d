/* util.c: memory, messages, buffers. Running out of memory ends mpiexec, and with it the job, because the
 * guard process ends the ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "core/util.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static char speaker[300] = "mpiexec";

void message_set_host(const char *host)
{
    snprintf(speaker, sizeof(speaker), "mpiexec on %s", host);
}

static void message_vprint(const char *fmt, va_list args)
{
    char text[8192];
    int used = snprintf(text, sizeof(text), "%s: ", speaker);
    int more = vsnprintf(text + used, sizeof(text) - (size_t)used - 1, fmt, args);
    size_t len = (size_t)used + (size_t)(more > 0 ? more : 0);
    if (len > sizeof(text) - 2)
        len = sizeof(text) - 2;
    text[len++] = '\n';
    for (size_t at = 0; at < len;) {
        ssize_t n = write(STDERR_FILENO, text + at, len - at);
        if (n < 0 && errno != EINTR)
            return;
        at += n > 0 ? (size_t)n : 0;
    }
}

void message_print(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    message_vprint(fmt, args);
    va_end(args);
}

const char *error_reason(int error)
{
    struct rlimit space;
    if (error == EAGAIN)
        return "Resource temporarily unavailable; raise the limit of processes (ulimit -u)";
    if (error == EMFILE)
        return "Too many open files; raise the limit of open files (ulimit -n)";
    if (error == ENOMEM && getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        return "Cannot allocate memory; the limit of address space may be too low (ulimit -v)";
    return strerror(error);
}

bool file_for_each_line(const char *path, void (*fn)(void *ctx, char *line, unsigned number), void *ctx)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;
    if (!f)
        return false;
    errno = 0;
    for (unsigned number = 1; getline(&line, &cap, f) >= 0; number++)
        fn(ctx, line, number);
    const int error = ferror(f) ? errno : 0;
    free(line);
    fclose(f);
    errno = error;
    return error == 0;
}

_Noreturn void launcher_exit(int status)
{
    fflush(stdout);
    _exit(status);
}

_Noreturn void launcher_die(int status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    message_vprint(fmt, args);
    va_end(args);
    launcher_exit(status);
}

static void *check_allocated(void *p)
{
    if (!p)
        launcher_die(1, "Out of memory.");
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    return check_allocated(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t size)
{
    return check_allocated(realloc(p, size));
}

char *xstrdup(const char *s)
{
    return check_allocated(strdup(s));
}

char *xvstrf(const char *fmt, va_list args)
{
    char *out;
    const int n = vasprintf(&out, fmt, args);
    return check_allocated(n < 0 ? NULL : out);
}

char *xstrf(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *out = xvstrf(fmt, args);
    va_end(args);
    return out;
}

uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

const char *self_path(void)
{
    static char path[PATH_MAX];
    if (path[0])
        return path;
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    /* Without /proc: the path from the auxiliary vector, valid while the working directory is unchanged. */
    const char *called = (const char *)getauxval(AT_EXECFN);
    if (n <= 0 && (!called || !realpath(called, path)))
        path[0] = '\0';
    return path;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
    if (b->len + len > b->cap && b->off > 0) {
        memmove(b->data, b->data + b->off, b->len - b->off);
        b->len -= b->off;
        b->off = 0;
    }
    if (b->len + len > b->cap) {
        size_t cap = b->cap ? b->cap : 512;
        while (cap < b->len + len)
            cap *= 2;
        b->data = xrealloc(b->data, cap);
        b->cap = cap;
    }
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
}

void buf_consume(struct buf *b, size_t len)
{
    b->off += len;
    if (b->off == b->len)
        b->off = b->len = 0;
}

int buf_write(struct buf *b, int fd)
{
    while (buf_size(b) > 0) {
        const ssize_t n = write(fd, buf_head(b), buf_size(b));
        if (n < 0 && errno != EINTR)
            return errno;
        buf_consume(b, n > 0 ? (size_t)n : 0);
    }
    return 0;
}

void buf_free(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}
