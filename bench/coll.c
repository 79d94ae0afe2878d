/* coll.c: times collectives over all ranks. A sample is the slowest rank's time for a batch of calls, made in
 * one of three sequences:
 *   rotate        back to back, the root changes with every call: the next root needs the last result, so no
 *                 rank can run ahead and hide the latency
 *   back-to-back  the root is always rank 0: ranks that only send may run ahead while there is room
 *   barrier       a barrier before every call, which is not counted: all ranks begin together
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll.h"

#include <stdlib.h>

static int count_persistent_requests(const struct coll *c)
{
    return c->kind->rooted ? c->size : 1;
}

static void run_rotating_root(void *arg, int n)
{
    const struct coll *c = arg;
    for (int i = 0, root = 0; i < n; i++, root = root + 1 < c->size ? root + 1 : 0)
        coll_call(c, root);
}

static void run_back_to_back(void *arg, int n)
{
    const struct coll *c = arg;
    for (int i = 0; i < n; i++)
        coll_call(c, 0);
}

static void run_after_barriers(void *arg, int n)
{
    const struct coll *c = arg;
    double spent = 0;
    for (int i = 0; i < n; i++) {
        MPI_Barrier(c->comm);
        double start = MPI_Wtime();
        coll_call(c, 0);
        spent += MPI_Wtime() - start;
    }
    c->b->own_time = spent;
}

bool coll_open(struct bench *b, const char *name, size_t bytes, struct coll *c)
{
    *c = (struct coll){
        .b = b, .kind = coll_kind_find(name), .comm = b->team, .rank = b->rank, .size = b->size};
    c->bytes = c->kind->reduces ? (bytes + 7) / 8 * 8 : bytes;
    c->count = (int)(c->kind->reduces ? c->bytes / 8 : c->bytes);
    const size_t all = c->bytes * (size_t)c->size;
    if ((c->kind->in_all || c->kind->out_all) && all > 256 * MI)
        return false;
    c->send = bench_buffer_new(b, b->rank, c->kind->in_all ? all : c->bytes);
    c->receive = bench_buffer_new(b, b->rank, c->kind->out_all ? all : c->bytes);
    c->in = c->send.at;
    c->out = c->receive.at;
    c->counts = bench_alloc(sizeof(int) * (size_t)c->size);
    for (int r = 0; r < c->size; r++)
        c->counts[r] = c->count;
    if (b->options.form == BENCH_PERSISTENT) {
        c->persistent = bench_alloc(sizeof(*c->persistent) * (size_t)count_persistent_requests(c));
        for (int root = 0; root < count_persistent_requests(c); root++)
            c->kind->init(c, root, &c->persistent[root]);
    }
    return true;
}

void coll_close(struct coll *c)
{
    bench_buffer_free(&c->send);
    bench_buffer_free(&c->receive);
    free(c->counts);
    for (int root = 0; c->persistent && root < count_persistent_requests(c); root++)
        MPI_Request_free(&c->persistent[root]);
    free(c->persistent);
}

/* Verifies the results for several seeds. Collectives in GPU memory are verified by
 * tests/gpu/collectives.c instead. */
static void coll_check_range(struct coll *c, unsigned first, unsigned last)
{
    if (c->b->options.memory)
        return;
    for (unsigned seed = first; c->kind->check && seed <= last; seed++)
        c->b->errors += c->kind->check(c, seed);
}

bool coll_measure(struct bench *b, const char *name, size_t *bytes, struct bench_stats *s)
{
    static void (*const manner[])(void *, int) = {run_rotating_root, run_back_to_back, run_after_barriers};
    struct coll c;
    if (b->options.form == BENCH_PERSISTENT && !coll_kind_find(name)->init) {
        bench_report_note(b, "%s: this MPI library has no persistent collectives (MPI 4).", name);
        return false;
    }
    const bool fits = coll_open(b, name, *bytes, &c);
    *bytes = c.bytes;
    if (!fits) {
        bench_report_note(
            b,
            "%s: %zu bytes for each of %d ranks is above the limit of this benchmark; the size is skipped.",
            name, c.bytes, b->size);
        return false;
    }
    coll_check_range(&c, 1, 3);
    b->times_itself = b->options.calls == CALLS_BARRIER;
    bench_measure(b, b->team, true, manner[b->options.calls], &c, s);
    b->times_itself = false;
    coll_check_range(&c, 11, 12);
    coll_close(&c);
    return true;
}

void bench_collective(struct bench *b, const struct bench_test *test, size_t bytes)
{
    struct bench_stats s;
    if (coll_measure(b, test->name, &bytes, &s) && b->rank == 0)
        bench_report_time(b, test->name, bytes, &s);
}
