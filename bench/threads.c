/* threads.c: message rate of several threads in each of two ranks. Thread i of rank 0 sends to thread i of
 * rank 1 on a communicator of their own. The test needs --threads, which requests MPI_THREAD_MULTIPLE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

enum { WINDOW = 64 };

struct talker {
    MPI_Comm comm;
    int me, bytes, rounds;
    char *buffers; /* WINDOW buffers of `bytes` */
    MPI_Request requests[WINDOW];
};

/* Sends windows of messages from rank 0 to rank 1, each followed by an empty reply. */
static void *message_thread_body(void *arg)
{
    struct talker *t = arg;
    for (int round = 0; round < t->rounds; round++) {
        for (int w = 0; w < WINDOW; w++)
            if (t->me == 0)
                MPI_Isend(t->buffers + (size_t)w * (size_t)t->bytes, t->bytes, MPI_BYTE, 1, 1, t->comm,
                          &t->requests[w]);
            else
                MPI_Irecv(t->buffers + (size_t)w * (size_t)t->bytes, t->bytes, MPI_BYTE, 0, 1, t->comm,
                          &t->requests[w]);
        MPI_Waitall(WINDOW, t->requests, MPI_STATUSES_IGNORE);
        if (t->me == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, t->comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, t->comm);
    }
    return NULL;
}

struct talkers {
    struct bench *b;
    int count;
    struct talker *each;
    pthread_t *threads;
};

/* Runs n rounds of every thread. The time includes the start of the threads, negligible in a long batch. */
static void run_message_threads(void *arg, int n)
{
    struct talkers *t = arg;
    for (int i = 0; i < t->count; i++) {
        t->each[i].rounds = n;
        if (pthread_create(&t->threads[i], NULL, message_thread_body, &t->each[i]) != 0)
            MPI_Abort(t->b->comm, 1);
    }
    for (int i = 0; i < t->count; i++)
        pthread_join(t->threads[i], NULL);
}

void bench_threads(struct bench *b, const struct bench_test *test, size_t bytes)
{
    struct talkers t = {.b = b, .count = b->options.threads};
    struct bench_stats s;
    const size_t room = bytes * WINDOW;
    if (!b->threads_allowed) {
        bench_report_note(b, "%s: this library does not offer MPI_THREAD_MULTIPLE.", test->name);
        return;
    }
    t.each = bench_alloc(sizeof(*t.each) * (size_t)t.count);
    t.threads = bench_alloc(sizeof(*t.threads) * (size_t)t.count);
    for (int i = 0; i < t.count; i++) {
        t.each[i].me = b->rank;
        t.each[i].bytes = (int)bytes;
        t.each[i].buffers = bench_alloc(room);
        MPI_Comm_dup(b->team, &t.each[i].comm);
        if (b->rank == 0)
            bench_fill(t.each[i].buffers, room, (unsigned)i);
    }
    bench_measure(b, b->team, true, run_message_threads, &t, &s);
    for (int i = 0; i < t.count; i++) {
        b->errors += bench_check(t.each[i].buffers, room, (unsigned)i);
        MPI_Comm_free(&t.each[i].comm);
        free(t.each[i].buffers);
    }
    free(t.each);
    free(t.threads);
    if (b->rank == 0)
        bench_report_rate(b, test->name, bytes, &s, (double)WINDOW * t.count / 1e6, "M/s");
}
