/* util.h: what every file of the launcher uses: memory allocation that never fails (mpiexec reports it and
 * ends), a byte buffer, messages to the user, and the clock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_UTIL_H
#define FP_LAUNCHER_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT_OF(array)   (sizeof(array) / sizeof((array)[0]))
#define PRINTF_LIKE(a, b) __attribute__((format(printf, a, b)))

/* Exit statuses of mpiexec itself. */
#define STATUS_USAGE   2
#define STATUS_TIMEOUT 124
#define STATUS_NO_EXEC 126 /* found but cannot be run, as in a shell */
#define STATUS_NO_FILE 127

void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xstrf(const char *fmt, ...) PRINTF_LIKE(1, 2);
char *xvstrf(const char *fmt, va_list args) PRINTF_LIKE(1, 0);

/* Prints "mpiexec: " and one paragraph on standard error, in one write. */
void message_print(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* The system's text for an errno, plus the limit to raise. */
const char *error_reason(int error);

/* Calls fn for each line of a file, with the number of the line, from 1; the line may be written to.
 * False, with errno, if the file cannot be read. */
bool file_for_each_line(const char *path, void (*fn)(void *ctx, char *line, unsigned number), void *ctx);

/* Ends the process without freeing memory. */
_Noreturn void launcher_exit(int status);

/* message_print(), then launcher_exit(). Only before ranks run; later errors end the job through
 * job_fail(). */
_Noreturn void launcher_die(int status, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Sets the host name that an agent adds to its messages. */
void message_set_host(const char *host);

uint64_t now_ms(void);

/* Path of this executable; "" if unknown. */
const char *self_path(void);

/* A byte queue: bytes from `off` to `len` are queued; bytes are appended at `len`, consumed at `off`. */
struct buf {
    char *data;
    size_t off, len, cap;
};

void buf_add(struct buf *b, const void *data, size_t len);
void buf_consume(struct buf *b, size_t len);
void buf_free(struct buf *b);

/* Writes queued bytes to a nonblocking file. Returns 0 if none are left, else an errno: EAGAIN if the file
 * is full. */
int buf_write(struct buf *b, int fd);

static inline size_t buf_size(const struct buf *b)
{
    return b->len - b->off;
}

static inline char *buf_head(const struct buf *b)
{
    return b->data ? b->data + b->off : NULL;
}

#endif
