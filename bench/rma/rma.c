/* rma.c: measures the cost, at rank 0, of one-sided operations on the memory of rank 1: one operation with
 * its flush, many with one flush, bandwidth, locks, and a fence of all ranks. Rank 1 waits in a barrier, or
 * computes without MPI calls (--busy), which reveals the operations that need the target's processor.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bench.h"
#include "cli/options.h"

enum { LONGEST = 1 << 20, MANY = 64 };

struct setup {
    int rank, size;
    bool created, adapter, busy, apart, json;
    struct json document;
    double seconds;    /* seconds for each case */
    MPI_Datatype type; /* datatype of rma_run_sum and run_get_accumulate */
    int element;       /* bytes of one element of `type` */
    MPI_Win win;
    char *memory, *local;
    MPI_Comm node;
    MPI_Win floor;
    void *direct; /* memory of rank 1 in the window `floor`; NULL: ranks 0 and 1 share no memory */
};

typedef void operation(struct setup *s, int bytes, int times);

static void rma_run_put(struct setup *s, int bytes, int times)
{
    for (int i = 0; i < times; i++)
        MPI_Put(s->local, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, s->win);
    MPI_Win_flush(1, s->win);
}

static void rma_run_get(struct setup *s, int bytes, int times)
{
    for (int i = 0; i < times; i++)
        MPI_Get(s->local, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, s->win);
    MPI_Win_flush(1, s->win);
}

static void rma_run_fetch(struct setup *s, int bytes, int times)
{
    long one = 1;
    (void)bytes;
    for (int i = 0; i < times; i++)
        MPI_Fetch_and_op(&one, s->local, MPI_LONG, 1, 0, MPI_SUM, s->win);
    MPI_Win_flush(1, s->win);
}

static void rma_run_swap(struct setup *s, int bytes, int times)
{
    long zero = 0, one = 1;
    (void)bytes;
    for (int i = 0; i < times; i++)
        MPI_Compare_and_swap(&one, &zero, s->local, MPI_LONG, 1, 0, s->win);
    MPI_Win_flush(1, s->win);
}

/* Accumulates elements of s->type with MPI_SUM. */
static void rma_run_sum(struct setup *s, int bytes, int times)
{
    const int count = bytes / s->element;
    for (int i = 0; i < times; i++)
        MPI_Accumulate(s->local, count, s->type, 1, 0, count, s->type, MPI_SUM, s->win);
    MPI_Win_flush(1, s->win);
}

static void run_get_accumulate(struct setup *s, int bytes, int times)
{
    const int count = bytes / s->element;
    for (int i = 0; i < times; i++)
        MPI_Get_accumulate(s->local, count, s->type, s->local + LONGEST / 2, count, s->type, 1, 0, count,
                           s->type, MPI_SUM, s->win);
    MPI_Win_flush(1, s->win);
}

static void rma_run_lock(struct setup *s, int bytes, int times)
{
    (void)bytes;
    MPI_Win_unlock_all(s->win);
    for (int i = 0; i < times; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, s->win);
        MPI_Win_unlock(1, s->win);
    }
    MPI_Win_lock_all(0, s->win);
}

/* Plain stores to shared memory: the lower bound of a put. */
static void rma_run_store(struct setup *s, int bytes, int times)
{
    volatile long *to = s->direct;
    (void)bytes;
    for (int i = 0; i < times; i++)
        *to = i;
    atomic_thread_fence(memory_order_seq_cst);
}

static const struct {
    const char *name;
    operation *run;
    int bytes, times; /* `times`: operations before one flush */
} cases[] = {
    {"store, fence", rma_run_store, 8, 1}, /* only if both ranks share memory */
    {"put", rma_run_put, 8, 1},
    {"get", rma_run_get, 8, 1},
    {"fetch_and_op", rma_run_fetch, 8, 1},
    {"compare_and_swap", rma_run_swap, 8, 1},
    {"accumulate", rma_run_sum, 8, 1},
    {"lock, unlock", rma_run_lock, 0, 1},
    {"64 puts", rma_run_put, 8, MANY},
    {"64 gets", rma_run_get, 8, MANY},
    {"64 fetch_and_ops", rma_run_fetch, 8, MANY},
    {"put", rma_run_put, 4096, 1},
    {"get", rma_run_get, 4096, 1},
    {"put", rma_run_put, 1 << 16, 8},
    {"get", rma_run_get, 1 << 16, 8},
    {"put", rma_run_put, LONGEST, 4},
    {"get", rma_run_get, LONGEST, 4},
    {"accumulate", rma_run_sum, 1 << 16, 4},
};

static void rma_print_heading(struct setup *s, const struct bench_host *host)
{
    char transport[BENCH_TRANSPORTS_MAX];
    const char *memory = s->created ? "MPI_Win_create" : "MPI_Win_allocate";
    if (s->json) {
        char program[64];
        snprintf(program, sizeof(program), "%s rma", host->program);
        json_object(&s->document, NULL);
        json_members(&s->document, "program=%s ranks=%d", program, s->size);
        bench_transports_json(host, s->size, &s->document);
        json_string(&s->document, "memory", memory);
        json_bool(&s->document, "busy", s->busy);
        json_array(&s->document, "results");
        return;
    }
    bench_transports_describe(host, s->size, transport, sizeof(transport));
    printf("%s rma: %d ranks, %s; memory of %s\n\n", host->program, s->size, transport, memory);
    printf("%-18s %9s %7s %12s %12s\n", "operation", "bytes", "a flush", "us each", "MB/s");
}

static void rma_print_row(struct setup *s, const char *name, int bytes, int times, double each)
{
    if (s->rank != 0)
        return;
    const double us = each * 1e6 / times, mbs = bytes / (each / times) / 1e6;
    if (s->json) {
        json_record(&s->document, NULL, "name=%s bytes=%d before_flush=%d us=%g mb_s=%g", name, bytes, times,
                    us, mbs);
        return;
    }
    printf("%-18s %9d %7d %12.3f %12.1f\n", name, bytes, times, us, bytes ? mbs : 0.0);
    fflush(stdout);
}

/* Measures an operation in five rounds, which share s->seconds, and reports the best one. */
static void rma_measure_operation(struct setup *s, const char *name, operation *op, int bytes, int times)
{
    double best = 1e9;
    MPI_Barrier(MPI_COMM_WORLD);
    if (s->rank == 1 && s->busy) {
        const double until = MPI_Wtime() + s->seconds;
        for (volatile double x = 1; MPI_Wtime() < until;)
            x = x * 1.0000001;
    }
    for (int round = 0; round < 5 && s->rank == 0; round++) {
        const double start = MPI_Wtime();
        double end = start;
        int n = 0;
        while (end - start < s->seconds / 5) {
            for (int k = 0; k < 10; k++)
                op(s, bytes, times);
            n += 10;
            end = MPI_Wtime();
        }
        best = (end - start) / n < best ? (end - start) / n : best;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    rma_print_row(s, name, bytes, times, best);
}

/* Measures accumulate and get_accumulate for each element type and three lengths. */
static void measure_elements(struct setup *s)
{
    static const int lengths[] = {64, 1024, 1 << 16};
    const struct {
        const char *name;
        MPI_Datatype type;
        int bytes;
    } types[] = {{"int8", MPI_INT8_T, 1},   {"int16", MPI_INT16_T, 2}, {"int32", MPI_INT32_T, 4},
                 {"int64", MPI_INT64_T, 8}, {"float", MPI_FLOAT, 4},   {"double", MPI_DOUBLE, 8}};
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
        for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
            char name[40];
            s->type = types[t].type;
            s->element = types[t].bytes;
            snprintf(name, sizeof(name), "accumulate %s", types[t].name);
            rma_measure_operation(s, name, rma_run_sum, lengths[k], 1);
            snprintf(name, sizeof(name), "get_accumulate %s", types[t].name);
            rma_measure_operation(s, name, run_get_accumulate, lengths[k], 1);
        }
}

static void rma_measure_fences(struct setup *s)
{
    enum { N = 200 };
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (int i = 0; i < N; i++)
            MPI_Win_fence(0, s->win);
        const double each = (MPI_Wtime() - start) / N;
        best = each < best ? each : best;
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, s->win);
    rma_print_row(s, "fence", 0, 1, best);
}

/* Measures post, start, put of 8 bytes, complete and wait: rank 1 exposes its memory and rank 0 puts. */
static void rma_measure_exposures(struct setup *s)
{
    enum { N = 200 };
    MPI_Group all, other;
    double best = 1e9;
    MPI_Win_get_group(s->win, &all);
    MPI_Group_incl(all, 1, (int[]){s->rank == 0}, &other);
    for (int round = 0; round < 5; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (int i = 0; i < N && s->rank < 2; i++) {
            if (s->rank == 1) {
                MPI_Win_post(other, 0, s->win);
                MPI_Win_wait(s->win);
                continue;
            }
            MPI_Win_start(other, 0, s->win);
            MPI_Put(s->local, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, s->win);
            MPI_Win_complete(s->win);
        }
        const double each = (MPI_Wtime() - start) / N;
        best = each < best ? each : best;
    }
    MPI_Group_free(&all);
    MPI_Group_free(&other);
    MPI_Barrier(MPI_COMM_WORLD);
    rma_print_row(s, "post to wait, put", 8, 1, best);
}

/* Measures the time to create and free a window of one page per rank, with `open` windows at once. */
static void rma_measure_windows(struct setup *s, const char *name, int open, int times)
{
    enum { BYTES = 4096 };
    MPI_Win *made = malloc((size_t)open * sizeof(MPI_Win));
    char *mine = malloc(BYTES), *memory = mine;
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (int i = 0; i < times; i++) {
            for (int k = 0; k < open; k++)
                if (s->created)
                    MPI_Win_create(mine, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made[k]);
                else
                    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &made[k]);
            for (int k = 0; k < open; k++)
                MPI_Win_free(&made[k]);
        }
        const double each = (MPI_Wtime() - start) / open / times;
        best = each < best ? each : best;
    }
    free(made);
    free(mine);
    rma_print_row(s, name, 0, 1, best);
}

/* Allocates a shared-memory window if all ranks are on one node: a store into it is a put's lower bound. */
static void open_shared_window(struct setup *s)
{
    int here, unit;
    MPI_Aint bytes;
    MPI_Comm_split_type(MPI_COMM_WORLD, s->apart ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &s->node);
    if (s->apart)
        return;
    MPI_Comm_size(s->node, &here);
    if (here < s->size)
        return;
    MPI_Win_allocate_shared(sizeof(long), 1, MPI_INFO_NULL, s->node, &s->direct, &s->floor);
    MPI_Win_shared_query(s->floor, 1, &bytes, &unit, &s->direct);
}

static void close_shared_window(struct setup *s)
{
    if (s->direct)
        MPI_Win_free(&s->floor);
    if (!s->apart)
        MPI_Comm_free(&s->node);
}

static void window_open(struct setup *s)
{
    MPI_Info info;
    MPI_Info_create(&info);
    if (s->adapter)
        MPI_Info_set(info, "fishplate_accumulate_by", "adapter");
    if (s->created)
        MPI_Win_create(s->memory, LONGEST, 1, info, MPI_COMM_WORLD, &s->win);
    else
        MPI_Win_allocate(LONGEST, 1, info, MPI_COMM_WORLD, &s->memory, &s->win);
    MPI_Info_free(&info);
}

static const struct cli_option options[] = {
    CLI_FLAG_LINE("--created", struct setup, created,
                  "window in memory of the program (MPI_Win_create) instead of MPI_Win_allocate"),
    CLI_FLAG_LINE(
        "--adapter", struct setup, adapter,
        "integers of 8 bytes are changed by the target's adapter (fishplate_accumulate_by=adapter)"),
    CLI_FLAG_LINE("--busy", struct setup, busy, "rank 1 computes during the test and makes no MPI call"),
    CLI_FLAG_LINE("--apart", struct setup, apart,
                  "do not measure a store into shared memory: the ranks only seem to be on one node"),
    CLI_REAL_LINE("--seconds", "0.2", struct setup, seconds, 1e-9, 3600, "time for each case"),
    CLI_FLAG_LINE("--json", struct setup, json, "one JSON document instead of the table"),
    CLI_END};

int bench_rma_main(const struct bench_host *host, int argc, char **argv)
{
    struct setup s = {.seconds = 0.2,
                      .type = MPI_DOUBLE,
                      .element = sizeof(double),
                      .document = {.out = stdout, .flat = 3}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.size);
    const struct cli c = {.program = "fishplate bench rma", .options = options, .silent = s.rank != 0};
    const int next = cli_parse(&c, argc, argv, &s);
    if (next == CLI_HELP && s.rank == 0) {
        cli_print_page("Usage: mpiexec -n 2 fishplate bench rma [options]\n\n"
                       "Times one-sided operations of rank 0 on the memory of rank 1.\n\nOptions:\n",
                       stdout);
        cli_print_options(options, stdout);
        puts("\nExamples:\n"
             "  mpiexec -n 2 fishplate bench rma\n"
             "  mpiexec -n 2 -hosts n1,n2 fishplate bench rma --busy");
    }
    if (next < 0) {
        MPI_Finalize();
        return next == CLI_HELP ? 0 : 2;
    }
    if (s.size < 2) {
        fprintf(stderr, "bench rma: two ranks are needed: mpiexec -n 2 fishplate bench rma\n");
        MPI_Finalize();
        return 2;
    }
    s.local = calloc(1, LONGEST);
    s.memory = s.created ? calloc(1, LONGEST) : NULL;
    window_open(&s);
    memset(s.memory, 0, LONGEST);
    open_shared_window(&s);
    if (s.rank == 0)
        rma_print_heading(&s, host);
    rma_measure_fences(&s);
    rma_measure_exposures(&s);
    if (s.rank == 0)
        MPI_Win_lock_all(0, s.win);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (cases[i].run != rma_run_store || s.direct)
            rma_measure_operation(&s, cases[i].name, cases[i].run, cases[i].bytes, cases[i].times);
    measure_elements(&s);
    if (s.rank == 0)
        MPI_Win_unlock_all(s.win);
    rma_measure_windows(&s, "make, free", 1, 100);
    rma_measure_windows(&s, "... of 1000 open", 1000, 1);
    if (s.rank == 0 && s.json) {
        json_end(&s.document);
        json_end(&s.document);
    }
    MPI_Win_free(&s.win);
    close_shared_window(&s);
    if (s.created)
        free(s.memory);
    free(s.local);
    MPI_Finalize();
    return 0;
}
