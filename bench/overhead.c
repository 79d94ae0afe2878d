/* overhead.c: measures processor time of communication [Liu04 9.1]: the host overhead of a message, and the
 * overlap potential, which is the longest computation that can run during an exchange without lengthening it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "bench.h"

enum { TAG = 1, PROBES_MAX = 16 };

struct exchange {
    struct bench *bench;
    MPI_Comm comm;
    int me, bytes;
    char *out, *in;
    double pause; /* seconds of computation during the exchange */
};

static void exchange_spin(double seconds)
{
    for (double until = MPI_Wtime() + seconds; MPI_Wtime() < until;) {
    }
}

static void exchange_open(struct bench *b, size_t bytes, struct exchange *h)
{
    *h = (struct exchange){.bench = b, .bytes = (int)bytes};
    MPI_Comm_dup(b->team, &h->comm);
    MPI_Comm_rank(h->comm, &h->me);
    h->out = bench_alloc(bytes);
    h->in = bench_alloc(bytes);
}

static void exchange_close(struct exchange *h)
{
    free(h->in);
    free(h->out);
    MPI_Comm_free(&h->comm);
}

static void exchange_answer_pings(struct exchange *h, int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Recv(h->in, h->bytes, MPI_BYTE, 0, TAG, h->comm, MPI_STATUS_IGNORE);
        MPI_Send(h->out, h->bytes, MPI_BYTE, 0, TAG, h->comm);
    }
}

/* Exchanges n messages in both directions; rank 0 computes for `pause` seconds during each exchange. */
static void exchange_batch(void *arg, int n)
{
    struct exchange *h = arg;
    MPI_Request requests[2];
    if (h->me != 0) {
        exchange_answer_pings(h, n);
        return;
    }
    for (int i = 0; i < n; i++) {
        MPI_Irecv(h->in, h->bytes, MPI_BYTE, 1, TAG, h->comm, &requests[0]);
        MPI_Isend(h->out, h->bytes, MPI_BYTE, 1, TAG, h->comm, &requests[1]);
        if (h->pause > 0)
            exchange_spin(h->pause);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

/* Measures the time in MPI_Send, and in MPI_Recv of a message that has already arrived. */
static void run_timed_calls(void *arg, int n)
{
    struct exchange *h = arg;
    double inside = 0;
    if (h->me != 0) {
        exchange_answer_pings(h, n);
        return;
    }
    for (int i = 0; i < n; i++) {
        double start = MPI_Wtime();
        MPI_Send(h->out, h->bytes, MPI_BYTE, 1, TAG, h->comm);
        inside += MPI_Wtime() - start;
        exchange_spin(h->pause);
        start = MPI_Wtime();
        MPI_Recv(h->in, h->bytes, MPI_BYTE, 1, TAG, h->comm, MPI_STATUS_IGNORE);
        inside += MPI_Wtime() - start;
    }
    h->bench->own_time = inside;
}

static void exchange_verify_data(struct bench *b, struct exchange *h, unsigned seed)
{
    bench_fill(h->out, (size_t)h->bytes, seed + (unsigned)h->me);
    exchange_batch(h, 1);
    b->errors += bench_check(h->in, (size_t)h->bytes, seed + (unsigned)(1 - h->me));
}

/* Returns the seconds of one exchange with this pause, the same value on both ranks. */
static double measure_exchange(struct bench *b, struct exchange *h, double pause)
{
    struct bench_stats s = {0};
    h->pause = pause;
    bench_measure(b, h->comm, false, exchange_batch, h, &s);
    MPI_Bcast(&s.median, 1, MPI_DOUBLE, 0, h->comm);
    return s.median;
}

void bench_overhead(struct bench *b, const struct bench_test *test, size_t bytes)
{
    struct exchange h;
    struct bench_stats s;
    exchange_open(b, bytes, &h);
    exchange_verify_data(b, &h, 1);
    h.pause = 3 * measure_exchange(b, &h, 0); /* longer than the reply needs */
    b->times_itself = true;
    bench_measure(b, h.comm, false, run_timed_calls, &h, &s);
    b->times_itself = false;
    exchange_close(&h);
    if (b->rank == 0)
        bench_report_time(b, test->name, bytes, &s);
}

/* Lengthens the computation until an exchange takes a tenth longer than without, then refines the step. */
void bench_potential(struct bench *b, const struct bench_test *test, size_t bytes)
{
    const double seconds = b->options.seconds, slack = 1.1;
    struct exchange h;
    double hidden = 0, step;
    int probes = 0;
    exchange_open(b, bytes, &h);
    exchange_verify_data(b, &h, 1);
    b->options.seconds = seconds / 8; /* one figure needs several measurements */
    double alone = measure_exchange(b, &h, 0);
    step = alone / 4;
    for (int finer = 0; finer < 2 && probes < PROBES_MAX; probes++) {
        if (measure_exchange(b, &h, hidden + step) <= slack * alone) {
            hidden += step;
        } else {
            step /= 2;
            finer++;
        }
    }
    b->options.seconds = seconds;
    h.pause = 0;
    exchange_verify_data(b, &h, 7);
    exchange_close(&h);
    if (b->rank == 0)
        bench_report_time(b, test->name, bytes, &(struct bench_stats){hidden, hidden, hidden, probes, 1});
}
