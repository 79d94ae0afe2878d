/* stream.c: a stream of messages over two rails of 1 GB/s, measured in intervals of 0.1 s: while a second
 * program uses half of a rail for some time [Liu04 fig. 8.19], and while a rail fails and recovers. The
 * receiver counts the bytes and checks every message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "rails.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW = 8, WINDOW_MAX = 32, SLOTS = 40, STOP = 1 };
static const double slot = 0.1;

/* Messages alternate between two contents, so that the content of an earlier message in the buffer is
 * detected as an error. */
struct stream {
    int peer;
    bool sends;
    size_t bytes;
    unsigned window;
    double rate; /* limit of the sender in bytes per second; 0: no limit */
    char *content[2], *buffer[WINDOW_MAX];
    MPI_Request request[WINDOW_MAX];
    double start, end;
};

static void stream_open(struct stream *s, int peer, bool sends, size_t bytes, unsigned window)
{
    *s = (struct stream){.peer = peer, .sends = sends, .bytes = bytes, .window = window};
    for (int i = 0; i < 2; i++) {
        s->content[i] = bench_alloc(s->bytes);
        bench_fill(s->content[i], s->bytes, (unsigned)(1 + i));
    }
    for (unsigned w = 0; w < window && !sends; w++)
        s->buffer[w] = bench_alloc(s->bytes);
}

static void stream_close(struct stream *s)
{
    free(s->content[0]);
    free(s->content[1]);
    for (unsigned w = 0; w < WINDOW_MAX; w++)
        free(s->buffer[w]);
}

static long stream_find_difference(const struct stream *s, const char *buffer, const char *content)
{
    long wrong = 0;
    if (memcmp(buffer, content, s->bytes) != 0)
        for (size_t i = 0; i < s->bytes; i++)
            wrong += buffer[i] != content[i];
    return wrong;
}

static void stream_wait_until(double when)
{
    while (MPI_Wtime() < when)
        usleep(200);
}

/* Sends until the end time, then a window of messages with another tag. `done` is called for every
 * message. */
static void stream_send(struct stream *s, void (*done)(void *ctx, double at, size_t bytes), void *ctx)
{
    unsigned i = 0, stops = 0;
    double began = MPI_Wtime();
    for (unsigned w = 0; w < s->window; w++)
        s->request[w] = MPI_REQUEST_NULL;
    for (; stops < s->window; i++) {
        MPI_Request *request = &s->request[i % s->window];
        MPI_Wait(request, MPI_STATUS_IGNORE);
        if (s->rate > 0)
            stream_wait_until(began + (double)i * (double)s->bytes / s->rate);
        bool over = MPI_Wtime() >= s->end;
        stops += over;
        MPI_Isend(s->content[i / s->window % 2], (int)s->bytes, MPI_BYTE, s->peer, over ? STOP : 0,
                  MPI_COMM_WORLD, request);
        if (done)
            done(ctx, MPI_Wtime() - s->start, s->bytes);
    }
    MPI_Waitall((int)s->window, s->request, MPI_STATUSES_IGNORE);
}

/* Receives the stream until its end; returns the number of bytes with wrong values. */
static long stream_receive(struct stream *s, void (*done)(void *ctx, double at, size_t bytes), void *ctx)
{
    long wrong = 0;
    unsigned left = s->window;
    bool over = false;
    for (unsigned w = 0; w < s->window; w++)
        MPI_Irecv(s->buffer[w], (int)s->bytes, MPI_BYTE, s->peer, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &s->request[w]);
    for (unsigned i = 0; left > 0; i++) {
        unsigned w = i % s->window;
        MPI_Status status;
        MPI_Wait(&s->request[w], &status);
        wrong += stream_find_difference(s, s->buffer[w], s->content[i / s->window % 2]);
        over |= status.MPI_TAG == STOP;
        left -= over;
        if (!over)
            MPI_Irecv(s->buffer[w], (int)s->bytes, MPI_BYTE, s->peer, MPI_ANY_TAG, MPI_COMM_WORLD,
                      &s->request[w]);
        if (done)
            done(ctx, MPI_Wtime() - s->start, s->bytes);
    }
    return wrong;
}

static long stream_run(struct stream *s, void (*done)(void *ctx, double at, size_t bytes), void *ctx)
{
    if (!s->sends)
        return stream_receive(s, done, ctx);
    stream_send(s, done, ctx);
    return 0;
}

struct slots {
    double bytes[SLOTS];
};

static void slots_add_bytes(void *ctx, double at, size_t bytes)
{
    struct slots *s = ctx;
    int i = (int)(at / slot);
    if (i >= 0 && i < SLOTS)
        s->bytes[i] += (double)bytes;
}

/* Sets the state of the second adapter's ports on both nodes, by the tool in the folder of this program. */
static void stream_set_second_rail(const char *state)
{
    char program[PATH_MAX], command[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[n > 0 ? n : 0] = 0;
    char *slash = strrchr(program, '/');
    snprintf(command, sizeof(command), "\"%.*s/softib\" ctl port %s hca1", slash ? (int)(slash - program) : 1,
             slash ? program : ".", state);
    if (system(command) != 0)
        fprintf(stderr, "fishplate-lab rails: this command failed: %s\n", command);
}

struct events {
    struct slots slots;
    double down, up; /* seconds at which the sender changes the port; 0: never */
};

static void stream_sender_done(void *ctx, double at, size_t bytes)
{
    struct events *e = ctx;
    slots_add_bytes(&e->slots, at, bytes);
    if (e->down > 0 && at >= e->down) {
        stream_set_second_rail("down");
        e->down = 0;
    } else if (e->down <= 0 && e->up > 0 && at >= e->up) {
        stream_set_second_rail("up");
        e->up = 0;
    }
}

/* Ranks 0 and 1 are the measured program; ranks 2 and 3, if present, are the second program. Times are in
 * tenths of a second from the start. */
static void stream_run_rank(struct ib_rank *r)
{
    struct stream s;
    struct events e = {.down = (double)ib_read_argument(r, "down", 0) * slot,
                       .up = (double)ib_read_argument(r, "up", 0) * slot};
    double from = (double)ib_read_argument(r, "from", 10) * slot,
           until = (double)ib_read_argument(r, "until", 20) * slot;
    int rank = r->bench.rank, slots = (int)ib_read_argument(r, "slots", 30);
    if (rank < 2)
        stream_open(&s, rank ^ 1, rank % 2 == 0, (size_t)ib_read_argument(r, "bytes", 1 << 20), WINDOW);
    else
        stream_open(&s, rank ^ 1, rank % 2 == 0, 64 * KI, WINDOW_MAX);
    MPI_Barrier(MPI_COMM_WORLD);
    s.start = MPI_Wtime();
    s.end = s.start + slots * slot;
    if (rank >= 2) {
        s.end = s.start + until;
        s.rate = 125e6; /* half of the rail's rate */
        stream_wait_until(s.start + from);
        r->bench.errors += stream_run(&s, NULL, NULL);
    } else {
        r->bench.errors += stream_run(&s, rank == 0 ? stream_sender_done : slots_add_bytes, &e);
    }
    if (rank == 1)
        MPI_Send(e.slots.bytes, SLOTS, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD);
    else if (rank == 0)
        MPI_Recv(e.slots.bytes, SLOTS, MPI_DOUBLE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < slots && i < SLOTS; i++)
        ib_report_figure(r, IB_COUNT, e.slots.bytes[i] / slot / 1e6, "slot.%d", i);
    stream_close(&s);
    rails_report_bytes(r);
}

/* The second program uses only the second rail. */
static void stream_run_second_program(struct ib_rank *r)
{
    const char *rank = getenv("FISHPLATE_WORLD_RANK");
    (void)r;
    if (rank && atoi(rank) >= 2)
        setenv("FISHPLATE_IB_DEVICES", "softib1", 1);
}

static double stream_mean_rate(const struct ib_figures *f, int from, int to)
{
    double sum = 0;
    for (int i = from; i < to; i++)
        sum += ib_find_figure(f, "slot.%d", i);
    return to > from ? sum / (to - from) : NAN;
}

/* Seconds after slot `at` until the bandwidth is back at 90 % of `before`. */
static double stream_recovery_seconds(const struct ib_figures *f, int at, int slots, double before)
{
    for (int i = at; i < slots; i++)
        if (ib_find_figure(f, "slot.%d", i) >= 0.9 * before)
            return (i - at) * slot;
    return NAN;
}

static void stream_fill_curve(struct ib_curves *c, const struct ib_figures *f, const char *name, int slots)
{
    c->points = slots;
    for (int i = 0; i < slots; i++) {
        c->x[i] = i * slot;
        c->y[c->lines][i] = ib_find_figure(f, "slot.%d", i);
    }
    c->name[c->lines++] = name;
}

/* The links are slow, so that the rails stay the bottleneck although four processes share two cores. */
static void shared_print_tables(struct ib_driver *d)
{
    int slots = d->quick ? 12 : 30, from = slots / 3, until = 2 * slots / 3;
    static const char *const policies[] = {STRIPE_EVEN, STRIPE_ADAPTIVE};
    static const char *const names[] = {"even", "adaptive"};
    struct ib_curves c = {.id = "8.19",
                          .title = "Bandwidth while a second program takes half of a rail",
                          .x_name = "seconds",
                          .y_name = "MB/s"};
    struct ib_figures *f[2];
    struct ib_table *t = ib_table_open(
        d, "Bandwidth over two rails of 250 MB/s while a second program takes half of one [Liu04 fig. 8.19]",
        "adaptive adjusts the weights when the second program starts, is better than even while it runs, "
        "and reaches the peak again after it.");
    ib_table_add_column(t, "stripes");
    ib_table_add_column(t, "before, MB/s");
    ib_table_add_column(t, "meanwhile, MB/s");
    ib_table_add_column(t, "after, MB/s");
    ib_table_add_column(t, "back after, s");
    for (int w = 0; w < 2; w++) {
        struct ib_job job = {.topic = "shared",
                             .ranks = 4,
                             .nodes = 2,
                             .settings = policies[w],
                             .hcas = "2x250MB/s",
                             .alternate_nodes = true,
                             .repeat = 1};
        f[w] = ib_run_job(d, &job, "bytes=%d slots=%d from=%d until=%d", 256 << 10, slots, from, until);
        double before = stream_mean_rate(f[w], 1, from);
        ib_table_add_cell(t, "%s", names[w]);
        ib_table_add_number(t, before, 0);
        ib_table_add_number(t, stream_mean_rate(f[w], from + 2, until), 0);
        ib_table_add_number(t, stream_mean_rate(f[w], until + (slots - until) / 2, slots - 1), 0);
        ib_table_add_number(t, stream_recovery_seconds(f[w], until, slots, before), 1);
        stream_fill_curve(&c, f[w], names[w], slots);
    }
    ib_table_add_remark(
        t, "the second program runs from %.1f to %.1f s; the aim: what is left meanwhile, back within 0.3 s.",
        from * slot, until * slot);
    rails_print_second_share(t, f[1]);
    ib_table_close(t);
    ib_draw_curves(d, &c);
    ib_figures_free(f[0]);
    ib_figures_free(f[1]);
}

const struct ib_topic rails_shared = {
    .name = "shared",
    .doc = "bandwidth every 0.1 s while a second program takes half of a rail (fig. 8.19)",
    .before = stream_run_second_program,
    .rank = stream_run_rank,
    .tables = shared_print_tables,
};

static void loss_print_tables(struct ib_driver *d)
{
    int slots = d->quick ? 15 : 36, down = slots / 3, up = 2 * slots / 3;
    struct ib_curves c = {.id = "loss",
                          .title = "Bandwidth of 4 MiB messages while a rail is away",
                          .x_name = "seconds",
                          .y_name = "MB/s"};
    /* The acknowledgement timeout is 4 ms, a setting of the adapter, after which a loss is detected. */
    struct ib_job job = {.topic = "loss",
                         .ranks = 2,
                         .nodes = 2,
                         .hcas = RAILS_TWO,
                         .repeat = 1,
                         .settings = STRIPE_ADAPTIVE " FISHPLATE_IB_TIMEOUT=10"};
    struct ib_figures *f = ib_run_job(d, &job, "bytes=%d slots=%d down=%d up=%d", 4 << 20, slots, down, up);
    struct ib_table *t = ib_table_open(d, "A rail killed in the middle of a stream of 4 MiB messages",
                                       "no figure: the paper's rails do not fail.");
    double before = stream_mean_rate(f, 1, down), wrong = ib_find_figure(f, "wrong");
    ib_table_add_column(t, "before, MB/s");
    ib_table_add_column(t, "one rail left, MB/s");
    ib_table_add_column(t, "after it came back, MB/s");
    ib_table_add_column(t, "bytes wrong");
    ib_table_add_number(t, before, 0);
    ib_table_add_number(t, stream_mean_rate(f, down + 3, up), 0);
    ib_table_add_number(t, stream_mean_rate(f, up + (slots - up) / 2, slots - 1), 0);
    ib_table_add_number(t, wrong, 0);
    if (isnan(wrong))
        ib_table_add_remark(t, "the job did not survive the loss of the rail.");
    else
        ib_table_add_remark(
            t, "the rail goes at %.1f s and comes back at %.1f s; every byte of every message was checked.",
            down * slot, up * slot);
    rails_print_second_share(t, f);
    ib_table_close(t);
    stream_fill_curve(&c, f, "two rails, adaptive", slots);
    ib_draw_curves(d, &c);
    ib_figures_free(f);
}

const struct ib_topic rails_loss = {
    .name = "loss",
    .doc = "bandwidth every 0.1 s while a rail is taken away and comes back",
    .rank = stream_run_rank,
    .tables = loss_print_tables,
};
