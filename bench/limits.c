/* limits.c: limits of the machine, measured without MPI on the cores of the ranks: a cache line that bounces
 * between two cores (lower bound of latency) and memcpy (upper bound of bandwidth with one copy). Rank 0
 * measures with threads of its own while the other ranks sleep.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cli/number.h"

/* A round bounces one of LINES cache lines, because the location of a line on the chip affects its
 * latency. LINE: bytes; some processors fetch lines in pairs. */
enum { LINE = 128, LINES = 64, LINE_STRIDE = 33, BOUNCES = 2000 };

struct ball {
    struct {
        _Alignas(LINE) _Atomic unsigned turn;
    } lines[LINES * LINE_STRIDE];
    int rounds, core;
};

static _Atomic unsigned *cache_line_of_round(struct ball *ball, int round)
{
    return &ball->lines[round % LINES * LINE_STRIDE].turn;
}

static void pin_thread(int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof(one), &one); /* on failure the figure is only less precise */
}

static void *answer_ping_pong(void *arg)
{
    struct ball *ball = arg;
    pin_thread(ball->core);
    unsigned i = 0;
    for (int r = 0; r < ball->rounds; r++) {
        _Atomic unsigned *turn = cache_line_of_round(ball, r);
        for (int n = 0; n < BOUNCES; n++, i++) {
            while (atomic_load_explicit(turn, memory_order_acquire) != 2 * i + 1)
                ;
            atomic_store_explicit(turn, 2 * i + 2, memory_order_release);
        }
    }
    return NULL;
}

/* Measures the one-way time of a cache line between two cores. False without a second core. */
static bool measure_line(struct bench *b, struct bench_stats *out)
{
    int core[2];
    cpu_set_t before;
    pthread_t thread;
    double *samples = malloc(sizeof(*samples) * BENCH_SAMPLES_MAX);
    struct ball *ball = aligned_alloc(LINE, sizeof(*ball));
    bool ok = false;
    if (!samples || !ball || bench_cores(b, core) < 2)
        goto free_memory;
    int rounds = (int)(b->options.seconds / (BOUNCES * 200e-9));
    rounds = rounds < 2 * LINES ? 2 * LINES : rounds > BENCH_SAMPLES_MAX ? BENCH_SAMPLES_MAX : rounds;
    memset(ball, 0, sizeof(*ball));
    ball->rounds = rounds;
    ball->core = core[1];
    if (pthread_create(&thread, NULL, answer_ping_pong, ball) != 0)
        goto free_memory;
    sched_getaffinity(0, sizeof(before), &before);
    pin_thread(core[0]);
    unsigned i = 0;
    for (int r = 0; r < rounds; r++) {
        _Atomic unsigned *turn = cache_line_of_round(ball, r);
        double start = MPI_Wtime();
        for (int n = 0; n < BOUNCES; n++, i++) {
            atomic_store_explicit(turn, 2 * i + 1, memory_order_release);
            while (atomic_load_explicit(turn, memory_order_acquire) != 2 * i + 2)
                ;
        }
        samples[r] = (MPI_Wtime() - start) / (2 * BOUNCES);
    }
    pthread_join(thread, NULL);
    sched_setaffinity(0, sizeof(before), &before);
    bench_stats_compute(samples, rounds, BOUNCES, out);
    ok = true;
free_memory:
    free(ball);
    free(samples);
    return ok;
}

struct copy {
    char *from, *to;
    size_t bytes;
    int slots;
};

/* Copies as much memory as the bandwidth test. */
static void copy_batch(void *arg, int n)
{
    struct copy *c = arg;
    for (int i = 0; i < n; i++)
        for (int s = 0; s < c->slots; s++) {
            memcpy(c->to + (size_t)s * c->bytes, c->from + (size_t)s * c->bytes, c->bytes);
            __asm__ volatile("" ::"r"(c->to) : "memory");
        }
}

static void measure_copy(struct bench *b, size_t bytes, struct bench_stats *out)
{
    int slots = (int)(16 * MI / bytes);
    struct copy c = {.bytes = bytes, .slots = slots > 64 ? 64 : slots};
    c.from = bench_alloc(bytes * (size_t)c.slots);
    c.to = bench_alloc(bytes * (size_t)c.slots);
    bench_fill(c.from, bytes * (size_t)c.slots, 1);
    bench_measure(b, MPI_COMM_SELF, false, copy_batch, &c, out);
    bench_stats_divide(out, c.slots);
    free(c.from);
    free(c.to);
}

void bench_limits(struct bench *b, const struct bench_test *test, size_t bytes)
{
    static const size_t copy_sizes[3] = {64 * KI, 1 * MI, 4 * MI};
    struct bench_stats s;
    (void)test, (void)bytes;
    if (b->rank != 0)
        return;
    if (measure_line(b, &s)) {
        bench_report_time(b, "cacheline", 0, &s);
        if (b->latency8 > 0)
            bench_report_ratio(b, "8 B latency / cache line", b->latency8 / s.median);
    } else {
        bench_report_note(b, "limits: only one core is available; the time of a cache line between two cores "
                             "is not measured.");
    }
    for (int i = 0; i < 3; i++) {
        char name[32], what[64];
        measure_copy(b, copy_sizes[i], &s);
        bench_report_rate(b, "memcpy", copy_sizes[i], &s, (double)copy_sizes[i] / 1e6, "MB/s");
        if (b->bandwidth[i] <= 0)
            continue;
        number_print_size(copy_sizes[i], name);
        strcpy(what, name);
        strcat(what, " bandwidth / memcpy");
        bench_report_ratio(b, what, b->bandwidth[i] / ((double)copy_sizes[i] / 1e6 / s.median));
    }
}
