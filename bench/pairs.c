/* pairs.c: point-to-point between two ranks: latency in one and in both directions, bandwidth, message rate.
 * With --pairs several pairs do the same at once; the report has the latency of the first pair, and its
 * bandwidth or rate times the number of pairs, because all pairs run in step.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { WINDOW_MAX = 64, WINDOW_MIN = 4, TAG_DATA = 1, TAG_ACK = 2, CHECKS = 3 };
static const size_t window_memory = 16 * MI; /* bytes of large messages in flight in one direction */

struct pair {
    MPI_Comm comm; /* communicator of the two ranks */
    int me, peer, npairs;
    bool both; /* messages in both directions at once */
    size_t bytes;
    int window;
    struct bench_buffer send, receive;
    char *out, *in; /* memory of `send` and `receive`: `window` slots of `bytes` */
    MPI_Request requests[2 * WINDOW_MAX];
};

static void pair_open(struct bench *b, size_t bytes, int window, bool both, struct pair *p)
{
    int ranks;
    *p = (struct pair){.bytes = bytes, .window = window, .both = both};
    MPI_Comm_size(b->team, &ranks);
    p->npairs = ranks / 2;
    MPI_Comm_split(b->team, b->rank / 2, b->rank, &p->comm);
    MPI_Comm_rank(p->comm, &p->me);
    p->peer = 1 - p->me;
    p->send = bench_buffer_new(b, p->me, bytes * (size_t)window);
    p->receive = bench_buffer_new(b, p->me, bytes * (size_t)window);
    p->out = p->send.at;
    p->in = p->receive.at;
}

static void pair_close(struct pair *p)
{
    bench_buffer_free(&p->receive);
    bench_buffer_free(&p->send);
    MPI_Comm_free(&p->comm);
}

static void ping_pong(void *arg, int n)
{
    struct pair *p = arg;
    int bytes = (int)p->bytes;
    if (p->me == 0)
        for (int i = 0; i < n; i++) {
            MPI_Send(p->out, bytes, MPI_BYTE, 1, TAG_DATA, p->comm);
            MPI_Recv(p->in, bytes, MPI_BYTE, 1, TAG_DATA, p->comm, MPI_STATUS_IGNORE);
        }
    else
        for (int i = 0; i < n; i++) {
            MPI_Recv(p->in, bytes, MPI_BYTE, 0, TAG_DATA, p->comm, MPI_STATUS_IGNORE);
            MPI_Send(p->out, bytes, MPI_BYTE, 0, TAG_DATA, p->comm);
        }
}

/* Ping-pong with nonblocking requests, or with the persistent ones of ping_pong_persistent. */
static void ping_pong_requests(struct pair *p, int n, MPI_Request *persistent)
{
    const int bytes = (int)p->bytes;
    for (int i = 0; i < 2 * n; i++) {
        const bool sends = i % 2 == p->me;
        MPI_Request started = MPI_REQUEST_NULL, *request = persistent ? &persistent[sends] : &started;
        if (persistent)
            MPI_Start(request);
        else if (sends)
            MPI_Isend(p->out, bytes, MPI_BYTE, p->peer, TAG_DATA, p->comm, request);
        else
            MPI_Irecv(p->in, bytes, MPI_BYTE, p->peer, TAG_DATA, p->comm, request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
}

static void ping_pong_nonblocking(void *arg, int n)
{
    ping_pong_requests(arg, n, NULL);
}

static void ping_pong_persistent(void *arg, int n)
{
    struct pair *p = arg;
    MPI_Request persistent[2];
    MPI_Recv_init(p->in, (int)p->bytes, MPI_BYTE, p->peer, TAG_DATA, p->comm, &persistent[0]);
    MPI_Send_init(p->out, (int)p->bytes, MPI_BYTE, p->peer, TAG_DATA, p->comm, &persistent[1]);
    ping_pong_requests(p, n, persistent);
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
}

/* Both ranks of a pair send one message at the same time. */
static void pairs_send_in_both_directions(void *arg, int n)
{
    struct pair *p = arg;
    int bytes = (int)p->bytes;
    for (int i = 0; i < n; i++) {
        MPI_Irecv(p->in, bytes, MPI_BYTE, p->peer, TAG_DATA, p->comm, p->requests);
        MPI_Send(p->out, bytes, MPI_BYTE, p->peer, TAG_DATA, p->comm);
        MPI_Wait(p->requests, MPI_STATUS_IGNORE);
    }
}

/* Sends a window of messages and waits for an empty reply, so that the sender is at most one window ahead. */
static void pairs_send_stream(void *arg, int n)
{
    struct pair *p = arg;
    int bytes = (int)p->bytes, sends = p->both || p->me == 0, receives = p->both || p->me == 1;
    for (int i = 0; i < n; i++) {
        int nreq = 0;
        for (int w = 0; w < p->window && receives; w++)
            MPI_Irecv(p->in + (size_t)w * p->bytes, bytes, MPI_BYTE, p->peer, TAG_DATA, p->comm,
                      &p->requests[nreq++]);
        for (int w = 0; w < p->window && sends; w++)
            MPI_Isend(p->out + (size_t)w * p->bytes, bytes, MPI_BYTE, p->peer, TAG_DATA, p->comm,
                      &p->requests[nreq++]);
        MPI_Waitall(nreq, p->requests, MPI_STATUSES_IGNORE);
        if (p->me == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_ACK, p->comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ACK, p->comm);
    }
}

/* Sends a window of messages from one buffer to one buffer. Receives are blocking, because they share a
 * buffer. */
static void stream_single_buffer(void *arg, int n)
{
    struct pair *p = arg;
    int bytes = (int)p->bytes;
    for (int i = 0; i < n; i++) {
        for (int w = 0; w < p->window; w++)
            if (p->me == 0)
                MPI_Isend(p->out, bytes, MPI_BYTE, 1, TAG_DATA, p->comm, &p->requests[w]);
            else
                MPI_Recv(p->in, bytes, MPI_BYTE, 0, TAG_DATA, p->comm, MPI_STATUS_IGNORE);
        if (p->me == 0) {
            MPI_Waitall(p->window, p->requests, MPI_STATUSES_IGNORE);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_ACK, p->comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ACK, p->comm);
        }
    }
}

/* Repeats the traffic of the measurement a few times with new data, and verifies the data. */
static void pairs_verify_data(struct bench *b, struct pair *p, void (*batch)(void *arg, int n))
{
    size_t total = batch == stream_single_buffer ? p->bytes : p->bytes * (size_t)p->window;
    bool receives = (batch != pairs_send_stream && batch != stream_single_buffer) || p->both || p->me == 1;
    char *data = bench_alloc(total);
    for (unsigned round = 0; round < CHECKS; round++) {
        memset(data, 0xa5, total);
        bench_buffer_write(&p->receive, data, total);
        bench_fill(data, total, 2 * round + (unsigned)p->me);
        bench_buffer_write(&p->send, data, total);
        batch(p, 1);
        bench_buffer_read(&p->receive, data, total);
        if (receives)
            b->errors += bench_check(data, total, 2 * round + (unsigned)p->peer);
    }
    free(data);
}

/* Times a batch with `window` buffers of `bytes` in each direction; returns the number of pairs. */
static int pairs_measure(struct bench *b, size_t bytes, int window, bool both,
                         void (*batch)(void *arg, int n), struct bench_stats *s)
{
    struct pair p;
    pair_open(b, bytes, window, both, &p);
    pairs_verify_data(b, &p, batch);
    MPI_Barrier(b->team);
    if (b->options.forced.n > 0)
        bench_forced_measure(b, batch, &p, s);
    else
        bench_measure(b, b->team, false, batch, &p, s);
    pairs_verify_data(b, &p, batch);
    pair_close(&p);
    return p.npairs;
}

void bench_latency(struct bench *b, const struct bench_test *test, size_t bytes)
{
    static void (*const form[])(void *, int) = {ping_pong, ping_pong_nonblocking, ping_pong_persistent};
    struct bench_stats s;
    pairs_measure(b, bytes, 1, false, form[b->options.form], &s);
    if (b->rank != 0)
        return;
    bench_stats_divide(&s, 2);
    if (bytes == 8)
        b->latency8 = s.median;
    bench_report_time(b, test->name, bytes, &s);
}

void bench_bilat(struct bench *b, const struct bench_test *test, size_t bytes)
{
    struct bench_stats s;
    pairs_measure(b, bytes, 1, false, pairs_send_in_both_directions, &s);
    if (b->rank == 0)
        bench_report_time(b, test->name, bytes, &s);
}

void bench_window(struct bench *b, const struct bench_test *test, size_t bytes)
{
    static const int windows[] = {1, 4, 16, 64};
    char name[32];
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        struct bench_stats s;
        if (bytes * (size_t)windows[i] > 4 * window_memory)
            break;
        const int npairs = pairs_measure(b, bytes, windows[i], false, pairs_send_stream, &s);
        snprintf(name, sizeof(name), "%s.%d", test->name, windows[i]);
        if (b->rank == 0)
            bench_report_rate(b, name, bytes, &s, (double)bytes * windows[i] * npairs / 1e6, "MB/s");
    }
}

void bench_bw(struct bench *b, const struct bench_test *test, size_t bytes)
{
    struct bench_stats s;
    bool both = strcmp(test->name, "bibw") == 0, one = b->options.one_buffer && !both;
    int window = bytes ? (int)(window_memory / bytes) : WINDOW_MAX;
    window = window > WINDOW_MAX ? WINDOW_MAX : window < WINDOW_MIN ? WINDOW_MIN : window;
    const int npairs =
        pairs_measure(b, bytes, window, both, one ? stream_single_buffer : pairs_send_stream, &s);
    if (b->rank != 0)
        return;
    double amount = (double)bytes * window * npairs * (both ? 2 : 1) / 1e6;
    if (!both)
        for (int i = 0; i < 3; i++)
            if (bytes == (size_t[]){64 * KI, 1 * MI, 4 * MI}[i])
                b->bandwidth[i] = amount / s.median;
    bench_report_rate(b, test->name, bytes, &s, amount, "MB/s");
}

void bench_rate(struct bench *b, const struct bench_test *test, size_t bytes)
{
    struct bench_stats s;
    const int npairs = pairs_measure(b, bytes, WINDOW_MAX, false, pairs_send_stream, &s);
    if (b->rank == 0)
        bench_report_rate(b, test->name, bytes, &s, WINDOW_MAX * npairs / 1e6, "M/s");
}
