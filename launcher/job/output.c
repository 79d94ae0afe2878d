/* output.c: a stream is the standard output or error of one rank; several streams share a sink. Only whole
 * lines are forwarded, so that lines of different ranks never mix. There are two exceptions. Without a
 * prefix, an incomplete line is also forwarded if its rest does not arrive in time; and the beginning of a
 * very long line is always forwarded. The stream then owns the sink until the line ends, and other streams
 * wait. A stream that has waited too long, or holds too much, is forwarded anyway: with prefixes, on a new
 * line.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "job/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/loop.h"
#include "core/util.h"

/* A destination of output: standard output, standard error or a file. Writes never block: bytes that the
 * reader does not accept yet are queued. The first error is recorded, so that lost output can be reported.
 * Writes without blocking, and records write errors. */

struct sink {
    struct loop *loop;
    int fd;
    char *name; /* for messages */
    bool always_ready, is_file;
    int error; /* errno of the write that failed; later output is dropped */
    struct watch w;
    struct buf out;
    void (*written)(void *ctx); /* some queued output was written */
    void *ctx;
};

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

/* Writes as much as the reader accepts without blocking. */
static void sink_flush(struct sink *s)
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

static void sink_add(struct sink *s, const char *data, size_t len)
{
    if (!s->error)
        buf_add(&s->out, data, len);
}

/* Writes everything; waits for the reader until `end` (now_ms). */
static void sink_finish(struct sink *s, uint64_t end)
{
    uint64_t now;
    for (sink_flush(s); buf_size(&s->out) > 0 && (now = now_ms()) < end; sink_flush(s))
        sink_poll_writable(s->fd, (int)(end - now));
}

/* Closes a file; standard output and error stay open. Call it once, after the last sink_finish(). */
static void sink_close(struct sink *s)
{
    /* Some file systems report a full disk only at close. */
    if (s->is_file && close(s->fd) != 0 && !s->error)
        s->error = errno;
}

/* `name` is copied. */
static struct sink *sink_new(struct loop *l, int fd, const char *name, void (*written)(void *ctx), void *ctx)
{
    struct sink *s = xcalloc(1, sizeof(*s));
    struct stat st;
    *s = (struct sink){.loop = l, .fd = fd, .name = xstrdup(name), .written = written, .ctx = ctx};
    s->always_ready = fstat(fd, &st) != 0 || S_ISREG(st.st_mode);
    s->w = (struct watch){.fd = -1, .fn = sink_on_writable, .ctx = s};
    return s;
}

#define LONG_LINE  (256 * 1024)  /* a longer line is passed on in parts */
#define HELD_MAX   (8 << 20)     /* limit of bytes held for a stream while another stream owns the sink */
#define HIGH_WATER (1024 * 1024) /* bytes queued for writing above which the output of ranks is not read */
#define LOW_WATER  (256 * 1024)

struct stream {
    struct destination *destination;
    uint32_t rank;
    char *head;      /* prefix of each line; NULL: none, or not expanded yet */
    struct buf held; /* bytes that are not forwarded yet */
    struct stream *next_waiting;
    uint64_t since; /* now_ms when bytes were added that could not be forwarded */
    bool waiting, ended;
};

/* A sink and the streams that share it. */
struct destination {
    struct output *output;
    struct sink *sink;
    struct stream *owner;   /* the stream whose line is incomplete; NULL: none */
    struct stream *waiting; /* queue of streams with bytes that cannot be written yet */
    struct timer hold;
    uint64_t hold_ms; /* longest wait of a stream for a complete line; 0: no limit */
};

struct output {
    struct loop *loop;
    struct output_options opt;
    struct destination *std[2];
    struct stream *streams[2]; /* [rank] */
    struct destination **all;
    size_t ndestinations;
    bool paused, has_reported_no_reader;
};

static size_t count_waiting_bytes(const struct output *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->ndestinations; i++)
        n += buf_size(&o->all[i]->sink->out);
    return n;
}

bool output_idle(const struct output *o)
{
    return count_waiting_bytes(o) == 0;
}

static void check_buffer_limits(struct output *o)
{
    size_t n = count_waiting_bytes(o);
    bool pause = n > (o->paused ? LOW_WATER : HIGH_WATER);
    if (pause == o->paused)
        return;
    o->paused = pause;
    o->opt.pause(o->opt.ctx, pause);
}

/* Handles a write error. A closed reader of standard output is normal in a pipeline; any other error is
 * not. */
static void output_handle_write_error(struct output *o, struct sink *s)
{
    if (s->error == 0)
        return;
    if (s->error == EPIPE) {
        if (s->fd == STDOUT_FILENO && !o->has_reported_no_reader) {
            o->has_reported_no_reader = true;
            o->opt.no_reader(o->opt.ctx);
        }
    } else if (s->name) {
        o->opt.failed(o->opt.ctx, s->name, s->error);
        free(s->name);
        s->name = NULL; /* reported once */
    }
}

static void output_flush_destination(struct destination *p)
{
    sink_flush(p->sink);
    output_handle_write_error(p->output, p->sink);
}

static void output_on_written(void *ctx)
{
    struct destination *p = ctx;
    struct output *o = p->output;
    output_handle_write_error(o, p->sink);
    check_buffer_limits(o);
    if (output_idle(o))
        o->opt.drained(o->opt.ctx);
}

/* Expands %r (rank), %h (host) and %% in a file name. */
static char *output_expand_pattern(const struct output *o, const char *pattern, uint32_t rank)
{
    struct buf b = {0};
    for (const char *p = pattern; *p; p++) {
        char number[16];
        const char *word = NULL;
        if (p[0] == '%' && p[1] == 'r') {
            snprintf(number, sizeof(number), "%u", rank);
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

/* Writes bytes of one stream, with the configured prefix before each line. */
static void output_emit(struct stream *st, const char *data, size_t len)
{
    struct destination *p = st->destination;
    if (p->output->opt.prefix && !st->head)
        st->head = output_expand_pattern(p->output, p->output->opt.prefix, st->rank);
    size_t head_len = st->head ? strlen(st->head) : 0;
    if (head_len > 0 && p->owner && p->owner != st) {
        sink_add(p->sink, "\n", 1);
        p->owner = NULL;
    }
    while (len > 0) {
        const char *newline = head_len > 0 ? memchr(data, '\n', len) : memrchr(data, '\n', len);
        size_t n = newline ? (size_t)(newline + 1 - data) : len;
        if (p->owner != st)
            sink_add(p->sink, st->head, head_len);
        sink_add(p->sink, data, n);
        p->owner = newline ? NULL : st;
        data += n;
        len -= n;
    }
}

/* Releases the sink of a stream that ended without a newline. */
static void output_release_open_line(struct stream *st)
{
    struct destination *p = st->destination;
    if (p->owner != st)
        return;
    if (p->output->opt.prefix)
        sink_add(p->sink, "\n", 1);
    p->owner = NULL;
}

static void remove_from_queue(struct stream *st)
{
    struct stream **p = &st->destination->waiting;
    if (!st->waiting)
        return;
    while (*p != st)
        p = &(*p)->next_waiting;
    *p = st->next_waiting;
    st->waiting = false;
}

/* Appends the stream to the queue unless it is queued; restarts its waiting time. */
static void append_to_queue(struct stream *st)
{
    struct destination *s = st->destination;
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
        loop_set_timer(s->output->loop, &s->hold, s->hold_ms);
}

/* Returns how many held bytes may be written now: whole lines, or all bytes. */
static size_t output_ready_bytes(const struct stream *st, bool everything)
{
    size_t n = buf_size(&st->held);
    if (n == 0 || everything || st->ended || n > LONG_LINE)
        return n;
    const char *newline = memrchr(buf_head(&st->held), '\n', n);
    return newline ? (size_t)(newline + 1 - buf_head(&st->held)) : 0;
}

static void output_release_held(struct stream *st, bool everything)
{
    size_t n = output_ready_bytes(st, everything);
    if (n > 0) {
        output_emit(st, buf_head(&st->held), n);
        buf_consume(&st->held, n);
    }
    if (buf_size(&st->held) == 0) {
        remove_from_queue(st);
        if (st->ended)
            output_release_open_line(st);
    }
}

/* Lets queued streams write their whole lines, when no line is open. */
static void write_queued_streams(struct destination *s)
{
    for (struct stream *st = s->waiting, *next; st && !s->owner; st = next) {
        next = st->next_waiting;
        output_release_held(st, false);
    }
}

/* Called when a stream has waited too long, for the end of its own line or of another stream's. */
static void output_on_hold_timeout(void *ctx)
{
    struct destination *s = ctx;
    uint64_t now = now_ms();
    for (struct stream *st = s->waiting, *next; st; st = next) {
        next = st->next_waiting;
        if (now - st->since >= s->hold_ms)
            output_release_held(st, !s->output->opt.prefix);
    }
    if (!s->owner)
        write_queued_streams(s);
    output_flush_destination(s);
    if (s->waiting)
        loop_set_timer(s->output->loop, &s->hold, s->hold_ms);
}

void output_write(struct output *o, uint32_t rank, int stream, const char *data, size_t len)
{
    struct stream *st = &o->streams[stream - 1][rank];
    struct destination *s = st->destination;
    buf_add(&st->held, data, len);
    st->ended = st->ended || len == 0;
    if (!s->owner || s->owner == st || buf_size(&st->held) > HELD_MAX)
        output_release_held(st, false);
    if (buf_size(&st->held) > 0)
        append_to_queue(st);
    if (!s->owner)
        write_queued_streams(s);
    output_flush_destination(s);
    check_buffer_limits(o);
}

void output_close(struct output *o, uint64_t ms)
{
    uint64_t end = now_ms() + ms;
    for (size_t i = 0; i < o->ndestinations; i++) {
        struct destination *s = o->all[i];
        while (s->waiting)
            output_release_held(s->waiting, true);
        sink_finish(s->sink, end);
        sink_close(s->sink);
        output_handle_write_error(o, s->sink);
    }
}

void output_sync(struct output *o, uint64_t ms)
{
    const uint64_t end = now_ms() + ms;
    for (size_t i = 0; i < o->ndestinations; i++)
        sink_finish(o->all[i]->sink, end);
}

static struct destination *destination_new(struct output *o, int fd, const char *name, bool is_file)
{
    struct destination *p = xcalloc(1, sizeof(*p));
    p->output = o;
    p->sink = sink_new(o->loop, fd, name, output_on_written, p);
    p->sink->is_file = is_file;
    /* Time limit for incomplete lines: short on a terminal, because a user waits for a prompt; none for a
     * file; one second for a pipe. With a prefix the limit concerns only streams that wait for another
     * rank's very long line. */
    p->hold_ms = isatty(fd) && !o->opt.prefix ? 100 : p->sink->always_ready && !o->opt.prefix ? 0 : 1000;
    p->hold = (struct timer){.fn = output_on_hold_timeout, .ctx = p};
    o->all = xrealloc(o->all, (o->ndestinations + 1) * sizeof(*o->all));
    o->all[o->ndestinations++] = p;
    return p;
}

/* Opens the output file of a rank. Ranks whose pattern expands to the same name share the file. */
static struct destination *file_destination(struct output *o, char **names, uint32_t rank,
                                            const char *pattern, int stream)
{
    char *name = output_expand_pattern(o, pattern, rank);
    names[rank] = name;
    for (uint32_t r = 0; r < rank; r++)
        if (strcmp(names[r], name) == 0)
            return o->streams[stream][r].destination;
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        launcher_die(1, "The output file %s cannot be written: %s.", name, strerror(errno));
    return destination_new(o, fd, name, true);
}

static void open_streams(struct output *o, int stream, const char *pattern)
{
    char **names = pattern ? xcalloc(o->opt.size, sizeof(*names)) : NULL;
    o->streams[stream] = xcalloc(o->opt.size, sizeof(*o->streams[stream]));
    for (uint32_t r = 0; r < o->opt.size; r++) {
        o->streams[stream][r].rank = r;
        o->streams[stream][r].destination =
            pattern ? file_destination(o, names, r, pattern, stream) : o->std[stream];
    }
    for (uint32_t r = 0; names && r < o->opt.size; r++)
        free(names[r]);
    free(names);
}

struct output *output_new(struct loop *l, const struct output_options *opt)
{
    struct output *o = xcalloc(1, sizeof(*o));
    struct stat one, two;
    o->loop = l;
    o->opt = *opt;
    o->std[0] = destination_new(o, STDOUT_FILENO, "standard output", false);
    /* Standard output and error share a destination if they are one terminal, so that lines do not mix. */
    bool same =
        fstat(1, &one) == 0 && fstat(2, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
    o->std[1] = same ? o->std[0] : destination_new(o, STDERR_FILENO, "standard error", false);
    open_streams(o, 0, opt->out_pattern);
    open_streams(o, 1, opt->err_pattern);
    return o;
}
