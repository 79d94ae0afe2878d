/* matching.c: measures the cost of message matching: by MPI_Mprobe, and by wildcard among 1000 unexpected
 * messages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { UNEXPECTED = 1000, TAG_LAST = UNEXPECTED };

struct matching {
    struct bench *b;
    int me, bytes;
    char *out, *in;
};

/* Ping-pong in which every message is received by MPI_Mprobe and MPI_Mrecv. */
static void ping_pong_probed(void *arg, int n)
{
    struct matching *m = arg;
    for (int i = 0; i < 2 * n; i++) {
        if (i % 2 == m->me) {
            MPI_Send(m->out, m->bytes, MPI_BYTE, 1 - m->me, 1, m->b->team);
        } else {
            MPI_Message message;
            MPI_Status status;
            int bytes;
            MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, m->b->team, &message, &status);
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            MPI_Mrecv(m->in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        }
    }
}

/* Rank 1 sends a thousand messages and one more. Rank 0 receives the last one first, so that all others
 * have arrived unexpected, then the others by wildcard. The time is that of one wildcard receive. */
static void receive_unexpected(void *arg, int n)
{
    struct matching *m = arg;
    double spent = 0;
    for (int round = 0; round < n; round++) {
        if (m->me == 1) {
            for (int tag = 0; tag <= TAG_LAST; tag++)
                MPI_Send(m->out, m->bytes, MPI_BYTE, 0, tag, m->b->team);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, m->b->team, MPI_STATUS_IGNORE);
            continue;
        }
        MPI_Recv(m->in, m->bytes, MPI_BYTE, 1, TAG_LAST, m->b->team, MPI_STATUS_IGNORE);
        const double start = MPI_Wtime();
        for (int i = 0; i < UNEXPECTED; i++) {
            MPI_Status status;
            MPI_Recv(m->in, m->bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, m->b->team, &status);
            m->b->errors += status.MPI_TAG != i || status.MPI_SOURCE != 1;
        }
        spent += (MPI_Wtime() - start) / UNEXPECTED;
        MPI_Send(NULL, 0, MPI_BYTE, 1, 0, m->b->team);
    }
    m->b->own_time = spent;
}

void bench_matching(struct bench *b, const struct bench_test *test, size_t bytes)
{
    const bool probed = strcmp(test->name, "mprobe") == 0;
    struct matching m = {.b = b, .me = b->rank, .bytes = (int)bytes};
    struct bench_stats s;
    m.out = bench_alloc(bytes);
    m.in = bench_alloc(bytes);
    bench_fill(m.out, bytes, (unsigned)b->rank);
    b->times_itself = !probed;
    bench_measure(b, b->team, false, probed ? ping_pong_probed : receive_unexpected, &m, &s);
    b->times_itself = false;
    if (probed || b->rank == 0)
        b->errors += bench_check(m.in, bytes, 1 - (unsigned)b->rank);
    free(m.out);
    free(m.in);
    if (b->rank != 0)
        return;
    if (probed)
        bench_stats_divide(&s, 2);
    bench_report_time(b, test->name, bytes, &s);
}
