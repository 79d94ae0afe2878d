/* traffic.c: the ranks' part of most topics: pairs exchange messages, half of the ranks on each of two nodes,
 * each rank with its counterpart on the other node. Latency, bandwidth in one direction (with two pairs the
 * senders are on different nodes, as in the paper), and in both directions at the same time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rails.h"

#include <stdlib.h>

enum { WINDOW_MAX = 64, FLIGHT = 8 << 20 };

struct traffic {
    int peer, bytes, window;
    bool sends, receives;
    char *out, *in;
    MPI_Request requests[2 * WINDOW_MAX];
};

static void traffic_ping_pong(void *arg, int n)
{
    struct traffic *t = arg;
    for (int i = 0; i < n; i++) {
        if (t->sends)
            MPI_Send(t->out, t->bytes, MPI_BYTE, t->peer, 1, MPI_COMM_WORLD);
        MPI_Recv(t->in, t->bytes, MPI_BYTE, t->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!t->sends)
            MPI_Send(t->out, t->bytes, MPI_BYTE, t->peer, 1, MPI_COMM_WORLD);
    }
}

static void traffic_stream(void *arg, int n)
{
    struct traffic *t = arg;
    for (int i = 0; i < n; i++) {
        int k = 0;
        for (int w = 0; w < t->window && t->receives; w++)
            MPI_Irecv(t->in, t->bytes, MPI_BYTE, t->peer, 2, MPI_COMM_WORLD, &t->requests[k++]);
        for (int w = 0; w < t->window && t->sends; w++)
            MPI_Isend(t->out, t->bytes, MPI_BYTE, t->peer, 2, MPI_COMM_WORLD, &t->requests[k++]);
        MPI_Waitall(k, t->requests, MPI_STATUSES_IGNORE);
        /* Synchronises both ranks of the pair: messages of the next window must not arrive before the
         * receiver begins the window. */
        if (t->sends && t->receives)
            MPI_Sendrecv(NULL, 0, MPI_BYTE, t->peer, 3, NULL, 0, MPI_BYTE, t->peer, 3, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        else if (!t->sends)
            MPI_Send(NULL, 0, MPI_BYTE, t->peer, 3, MPI_COMM_WORLD);
        else
            MPI_Recv(NULL, 0, MPI_BYTE, t->peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Runs the traffic once, so that adaptive stripes settle, and then measures it. */
static double traffic_best_time(struct ib_rank *r, struct traffic *t, void (*fn)(void *arg, int n))
{
    struct bench_stats s = {0};
    fn(t, r->quick ? 2 : 20);
    bench_measure(&r->bench, MPI_COMM_WORLD, r->bench.size > 2, fn, t, &s);
    if (t->receives)
        r->bench.errors += bench_check(t->in, (size_t)t->bytes, (unsigned)t->peer);
    return s.min;
}

static void traffic_measure_size(struct ib_rank *r, struct traffic *t)
{
    int half = r->bench.size / 2;
    bool first = r->bench.rank < half;
    double bytes = (double)t->bytes * half * t->window;
    if (ib_read_argument(r, "latency", 1)) {
        t->sends = first;
        t->receives = true;
        ib_report_figure(r, IB_TIME, traffic_best_time(r, t, traffic_ping_pong) / 2 * 1e6, "latency.%d",
                         t->bytes);
    }
    if (ib_read_argument(r, "bw", 1)) {
        t->sends = (r->bench.rank % half) % 2 == 0 ? first : !first;
        t->receives = !t->sends;
        ib_report_figure(r, IB_RATE, bytes / traffic_best_time(r, t, traffic_stream) / 1e6, "bw.%d",
                         t->bytes);
    }
    if (ib_read_argument(r, "bibw", 1)) {
        t->sends = t->receives = true;
        ib_report_figure(r, IB_RATE, 2 * bytes / traffic_best_time(r, t, traffic_stream) / 1e6, "bibw.%d",
                         t->bytes);
    }
}

/* Arguments: from=, to=, factor= of the sizes; latency=0, bw=0 and bibw=0 omit a measurement. */
void rails_run_traffic(struct ib_rank *r)
{
    int half = r->bench.size / 2;
    long from = ib_read_argument(r, "from", 4), to = ib_read_argument(r, "to", 1 << 20),
         factor = ib_read_argument(r, "factor", 4);
    struct traffic t = {.peer = (r->bench.rank + half) % r->bench.size};
    t.out = bench_alloc((size_t)to);
    t.in = bench_alloc((size_t)to);
    bench_fill(t.out, (size_t)to, (unsigned)r->bench.rank);
    for (long bytes = from; bytes <= to; bytes *= factor) {
        t.bytes = (int)bytes;
        t.window = bytes * WINDOW_MAX <= FLIGHT ? WINDOW_MAX : (int)(FLIGHT / bytes);
        traffic_measure_size(r, &t);
    }
    free(t.in);
    free(t.out);
    rails_report_bytes(r);
}
