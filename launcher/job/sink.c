/* sink.c: writes without blocking, and records write errors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "job/sink.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_SIZE 4096 /* PIPE_BUF: after poll reports POLLOUT, a write of this size does not block */

static bool sink_poll_writable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, ms) > 0;
}

static void discard_output(struct sink *s, int error)
{
    s->error = error;
    buf_consume(&s->out, buf_size(&s->out));
}

void sink_flush(struct sink *s)
{
    while (buf_size(&s->out) > 0) {
        if (!s->always_ready && !sink_poll_writable(s->fd, 0))
            break;
        size_t n = buf_size(&s->out);
        ssize_t done = write(s->fd, buf_head(&s->out), s->always_ready || n < WRITE_SIZE ? n : WRITE_SIZE);
        if (done > 0)
            buf_consume(&s->out, (size_t)done);
        else if (done < 0 && errno == EAGAIN)
            break;
        else if (done < 0 && errno != EINTR)
            discard_output(s, errno);
    }
    if (buf_size(&s->out) > 0 && s->w.fd < 0)
        s->always_ready = !loop_add(s->loop, &s->w, s->fd, EPOLLOUT);
    else if (buf_size(&s->out) == 0 && s->w.fd >= 0)
        loop_remove(s->loop, &s->w);
}

static void sink_on_writable(void *ctx, uint32_t events)
{
    struct sink *s = ctx;
    (void)events;
    sink_flush(s);
    s->written(s->ctx);
}

void sink_add(struct sink *s, const char *data, size_t len)
{
    if (!s->error)
        buf_add(&s->out, data, len);
}

void sink_finish(struct sink *s, uint64_t end)
{
    uint64_t now;
    for (sink_flush(s); buf_size(&s->out) > 0 && (now = now_ms()) < end; sink_flush(s))
        sink_poll_writable(s->fd, (int)(end - now));
}

void sink_close(struct sink *s)
{
    /* Some file systems report a full disk only at close. */
    if (s->is_file && close(s->fd) != 0 && !s->error)
        s->error = errno;
}

struct sink *sink_new(struct loop *l, int fd, const char *name, void (*written)(void *ctx), void *ctx)
{
    struct sink *s = xcalloc(1, sizeof(*s));
    struct stat st;
    *s = (struct sink){.loop = l, .fd = fd, .name = xstrdup(name), .written = written, .ctx = ctx};
    s->always_ready = fstat(fd, &st) != 0 || S_ISREG(st.st_mode);
    s->w = (struct watch){.fd = -1, .fn = sink_on_writable, .ctx = s};
    return s;
}
