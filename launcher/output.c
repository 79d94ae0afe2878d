/*
 * A sink is a place to write to, a stream is one rank's output or error. Only whole lines are passed on, so
 * that lines of different ranks never mix. Without a prefix the beginning of a line goes out as well when
 * its rest has not come for a while; the stream then owns the sink until the line ends, and others wait for
 * it, but no longer than that either.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONG_LINE  (256 * 1024)  /* a longer line is passed on in parts */
#define HIGH_WATER (1024 * 1024) /* more than this is waiting: stop reading from ranks */
#define LOW_WATER  (256 * 1024)
#define WRITE_SIZE 4096 /* PIPE_BUF: when poll says yes, a write of this size does not block */

struct stream {
    struct sink *sink;
    uint32_t rank;
    struct buf held; /* not passed on yet */
    struct stream *next_waiting;
    uint64_t since; /* when it last got something it could not pass on */
    bool waiting, ended;
};

struct sink {
    struct output *output;
    int fd;
    bool always_ready, dead;
    struct watch w;
    struct buf out;
    struct stream *owner, *waiting; /* first in the queue */
    struct timer hold;
    uint64_t hold_ms; /* 0: for ever */
};

struct output {
    struct loop *loop;
    struct output_options opt;
    struct sink *std[2];
    struct stream *streams[2]; /* [rank] */
    struct sink **all;
    size_t nsinks;
    bool paused;
};

static size_t waiting_bytes(const struct output *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->nsinks; i++)
        n += buf_size(&o->all[i]->out);
    return n;
}

bool output_idle(const struct output *o)
{
    return waiting_bytes(o) == 0;
}

static void check_water(struct output *o)
{
    size_t n = waiting_bytes(o);
    bool pause = n > (o->paused ? LOW_WATER : HIGH_WATER);
    if (pause == o->paused)
        return;
    o->paused = pause;
    o->opt.pause(o->opt.ctx, pause);
}

static bool writable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, ms) > 0;
}

/* A reader that has gone away is no reason to end the job: what it does not want is dropped. */
static void sink_flush(struct sink *s)
{
    while (buf_size(&s->out) > 0) {
        if (!s->always_ready && !writable(s->fd, 0))
            break;
        size_t n = buf_size(&s->out);
        ssize_t done = write(s->fd, buf_head(&s->out), s->always_ready || n < WRITE_SIZE ? n : WRITE_SIZE);
        if (done < 0 && (errno == EINTR || errno == EAGAIN)) {
            if (errno == EAGAIN)
                break;
            continue;
        }
        if (done < 0) {
            s->dead = true;
            done = (ssize_t)n;
        }
        buf_take(&s->out, (size_t)done);
    }
    if (buf_size(&s->out) > 0 && s->w.fd < 0)
        s->always_ready = !loop_add(s->output->loop, &s->w, s->fd, EPOLLOUT);
    else if (buf_size(&s->out) == 0 && s->w.fd >= 0)
        loop_remove(s->output->loop, &s->w);
}

static void on_writable(void *ctx, uint32_t events)
{
    struct sink *s = ctx;
    (void)events;
    sink_flush(s);
    check_water(s->output);
    if (output_idle(s->output))
        s->output->opt.drained(s->output->opt.ctx);
}

static void sink_add(struct sink *s, const char *data, size_t len)
{
    if (!s->dead)
        buf_add(&s->out, data, len);
}

/* Whole lines with the rank before each; what follows the last newline stays in `held`. */
static void pass_prefixed(struct stream *st, bool end)
{
    char head[32];
    int head_len = snprintf(head, sizeof head, "[%u] ", st->rank);
    for (;;) {
        char *start = buf_head(&st->held), *newline = NULL;
        size_t n = buf_size(&st->held);
        if (n > 0)
            newline = memchr(start, '\n', n);
        if (!newline && (n == 0 || (!end && n < LONG_LINE)))
            return;
        size_t len = newline ? (size_t)(newline + 1 - start) : n;
        sink_add(st->sink, head, (size_t)head_len);
        sink_add(st->sink, start, len);
        if (!newline)
            sink_add(st->sink, "\n", 1);
        buf_take(&st->held, len);
    }
}

static void leave_queue(struct stream *st)
{
    struct stream **p = &st->sink->waiting;
    if (!st->waiting)
        return;
    while (*p != st)
        p = &(*p)->next_waiting;
    *p = st->next_waiting;
    st->waiting = false;
}

/* Last in the queue, unless it has a place already; its patience starts anew. */
static void join_queue(struct stream *st)
{
    struct sink *s = st->sink;
    struct stream **p = &s->waiting;
    st->since = now_ms();
    if (st->waiting)
        return;
    st->waiting = true;
    st->next_waiting = NULL;
    while (*p)
        p = &(*p)->next_waiting;
    *p = st;
    if (s->hold.at == 0 && s->hold_ms > 0)
        loop_after(s->output->loop, &s->hold, s->hold_ms);
}

/* How much of what is held may go out now: whole lines, or everything. */
static size_t ready(const struct stream *st, bool everything)
{
    size_t n = buf_size(&st->held);
    if (n == 0 || everything || st->ended || n > LONG_LINE)
        return n;
    const char *newline = memrchr(buf_head(&st->held), '\n', n);
    return newline ? (size_t)(newline + 1 - buf_head(&st->held)) : 0;
}

static void pass(struct stream *st, bool everything)
{
    struct sink *s = st->sink;
    size_t n = ready(st, everything);
    if (n > 0) {
        s->owner = buf_head(&st->held)[n - 1] == '\n' || st->ended ? NULL : st;
        sink_add(s, buf_head(&st->held), n);
        buf_take(&st->held, n);
    }
    if (buf_size(&st->held) == 0)
        leave_queue(st);
}

/* No line is open: those who waited pass on their whole lines. */
static void next_turn(struct sink *s)
{
    for (struct stream *st = s->waiting, *next; st && !s->owner; st = next) {
        next = st->next_waiting;
        pass(st, false);
    }
}

/* Somebody has waited long enough, be it for the rest of its own line or for another to end one. */
static void on_hold(void *ctx)
{
    struct sink *s = ctx;
    uint64_t now = now_ms();
    for (struct stream *st = s->waiting, *next; st; st = next) {
        next = st->next_waiting;
        if (now - st->since >= s->hold_ms)
            pass(st, true);
    }
    if (!s->owner)
        next_turn(s);
    sink_flush(s);
    if (s->waiting)
        loop_after(s->output->loop, &s->hold, s->hold_ms);
}

static void pass_plain(struct stream *st, bool end)
{
    struct sink *s = st->sink;
    st->ended = end;
    if (end && s->owner == st)
        s->owner = NULL;
    bool may = !s->owner || s->owner == st || buf_size(&st->held) > LONG_LINE;
    if (may)
        pass(st, false);
    if (buf_size(&st->held) > 0)
        join_queue(st);
    if (!s->owner)
        next_turn(s);
}

void output_write(struct output *o, uint32_t rank, int stream, const char *data, size_t len)
{
    struct stream *st = &o->streams[stream - 1][rank];
    buf_add(&st->held, data, len);
    if (o->opt.prefix)
        pass_prefixed(st, len == 0);
    else
        pass_plain(st, len == 0);
    sink_flush(st->sink);
    check_water(o);
}

void output_flush(struct output *o, uint64_t ms)
{
    uint64_t end = now_ms() + ms;
    for (size_t i = 0; i < o->nsinks; i++) {
        struct sink *s = o->all[i];
        while (s->waiting)
            pass(s->waiting, true);
        for (sink_flush(s); buf_size(&s->out) > 0 && now_ms() < end; sink_flush(s))
            writable(s->fd, (int)(end - now_ms()));
    }
}

static struct sink *sink_new(struct output *o, int fd)
{
    struct sink *s = xcalloc(1, sizeof *s);
    struct stat st;
    s->output = o;
    s->fd = fd;
    s->always_ready = fstat(fd, &st) != 0 || S_ISREG(st.st_mode);
    /* A person waits for a prompt, a program perhaps, a file never. */
    s->hold_ms = isatty(fd) ? 100 : s->always_ready ? 0 : 1000;
    s->w = (struct watch){.fd = -1, .fn = on_writable, .ctx = s};
    s->hold = (struct timer){.fn = on_hold, .ctx = s};
    o->all = xrealloc(o->all, (o->nsinks + 1) * sizeof *o->all);
    o->all[o->nsinks++] = s;
    return s;
}

/* %r the rank, %h its host, %% a percent sign. */
static char *expand(const struct output *o, const char *pattern, uint32_t rank)
{
    struct buf b = {0};
    for (const char *p = pattern; *p; p++) {
        char number[16];
        const char *word = NULL;
        if (p[0] == '%' && p[1] == 'r') {
            snprintf(number, sizeof number, "%u", rank);
            word = number;
        } else if (p[0] == '%' && p[1] == 'h') {
            word = o->opt.host_of(o->opt.ctx, rank);
        } else if (p[0] == '%' && p[1] == '%') {
            word = "%";
        }
        if (word)
            buf_add(&b, word, strlen(word));
        else
            buf_add(&b, p, 1);
        p += word ? 1 : 0;
    }
    buf_add(&b, "", 1);
    return b.data;
}

/* Ranks whose pattern gives the same name share the file. */
static struct sink *file_sink(struct output *o, char **names, uint32_t rank, const char *pattern, int stream)
{
    char *name = expand(o, pattern, rank);
    names[rank] = name;
    for (uint32_t r = 0; r < rank; r++)
        if (strcmp(names[r], name) == 0)
            return o->streams[stream][r].sink;
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        die(1, "The output file %s cannot be written: %s.", name, strerror(errno));
    return sink_new(o, fd);
}

static void open_streams(struct output *o, int stream, const char *pattern)
{
    char **names = pattern ? xcalloc(o->opt.size, sizeof *names) : NULL;
    o->streams[stream] = xcalloc(o->opt.size, sizeof *o->streams[stream]);
    for (uint32_t r = 0; r < o->opt.size; r++) {
        o->streams[stream][r].rank = r;
        o->streams[stream][r].sink = pattern ? file_sink(o, names, r, pattern, stream) : o->std[stream];
    }
    for (uint32_t r = 0; names && r < o->opt.size; r++)
        free(names[r]);
    free(names);
}

struct output *output_new(struct loop *l, const struct output_options *opt)
{
    struct output *o = xcalloc(1, sizeof *o);
    struct stat one, two;
    o->loop = l;
    o->opt = *opt;
    o->std[0] = sink_new(o, STDOUT_FILENO);
    /* On a terminal both are the same place, where lines must not mix either. */
    bool same =
        fstat(1, &one) == 0 && fstat(2, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
    o->std[1] = same ? o->std[0] : sink_new(o, STDERR_FILENO);
    open_streams(o, 0, opt->out_pattern);
    open_streams(o, 1, opt->err_pattern);
    return o;
}
