/* rma.c: what rank 0 pays for one-sided operations on the memory of rank 1: the time of one with its flush, the rate of
 * many with one flush, bandwidth, locks, and the fence of all ranks. Meanwhile rank 1 waits in a barrier, or computes without
 * any MPI call (--busy): what needs its processor shows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bench.h"

enum { LONGEST = 1 << 20, MANY = 64 };

struct setup {
    int rank, size, created, adapter, busy, apart, json, rows;
    double seconds; /* a case */
    MPI_Win win;
    char *memory, *local;
    MPI_Comm node;
    MPI_Win floor;
    void *direct; /* memory of rank 1 in that window, NULL: they share none */
};

typedef void operation(struct setup *s, int bytes, int times);

static void put(struct setup *s, int bytes, int times)
{
    for (int i = 0; i < times; i++)
        MPI_Put(s->local, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, s->win);
    MPI_Win_flush(1, s->win);
}

static void get(struct setup *s, int bytes, int times)
{
    for (int i = 0; i < times; i++)
        MPI_Get(s->local, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, s->win);
    MPI_Win_flush(1, s->win);
}

static void fetch(struct setup *s, int bytes, int times)
{
    long one = 1;
    (void)bytes;
    for (int i = 0; i < times; i++)
        MPI_Fetch_and_op(&one, s->local, MPI_LONG, 1, 0, MPI_SUM, s->win);
    MPI_Win_flush(1, s->win);
}

static void swap(struct setup *s, int bytes, int times)
{
    long zero = 0, one = 1;
    (void)bytes;
    for (int i = 0; i < times; i++)
        MPI_Compare_and_swap(&one, &zero, s->local, MPI_LONG, 1, 0, s->win);
    MPI_Win_flush(1, s->win);
}

static void accumulate(struct setup *s, int bytes, int times)
{
    for (int i = 0; i < times; i++)
        MPI_Accumulate(s->local, bytes / 8, MPI_DOUBLE, 1, 0, bytes / 8, MPI_DOUBLE, MPI_SUM, s->win);
    MPI_Win_flush(1, s->win);
}

static void lock(struct setup *s, int bytes, int times)
{
    (void)bytes;
    MPI_Win_unlock_all(s->win);
    for (int i = 0; i < times; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, s->win);
        MPI_Win_unlock(1, s->win);
    }
    MPI_Win_lock_all(0, s->win);
}

/* What a put into memory that is shared cannot be faster than. */
static void store(struct setup *s, int bytes, int times)
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
    int bytes, times; /* operations before one flush */
} cases[] = {
    {"store, fence", store, 8, 1}, /* where memory is shared */
    {"put", put, 8, 1},
    {"get", get, 8, 1},
    {"fetch_and_op", fetch, 8, 1},
    {"compare_and_swap", swap, 8, 1},
    {"accumulate", accumulate, 8, 1},
    {"lock, unlock", lock, 0, 1},
    {"64 puts", put, 8, MANY},
    {"64 gets", get, 8, MANY},
    {"64 fetch_and_ops", fetch, 8, MANY},
    {"put", put, 4096, 1},
    {"get", get, 4096, 1},
    {"put", put, 1 << 16, 8},
    {"get", get, 1 << 16, 8},
    {"put", put, LONGEST, 4},
    {"get", get, LONGEST, 4},
    {"accumulate", accumulate, 1 << 16, 4},
};

static void head(const struct setup *s, const struct bench_host *host)
{
    char transport[BENCH_WAYS_MAX];
    const char *memory = s->created ? "MPI_Win_create" : "MPI_Win_allocate";
    if (s->json) {
        printf("{\"program\": \"%s rma\", \"ranks\": %d, ", host->program, s->size);
        bench_ways_json(host, s->size, stdout);
        printf(", \"memory\": \"%s\", \"busy\": %s,\n \"results\": [", memory, s->busy ? "true" : "false");
        return;
    }
    bench_ways_describe(host, s->size, transport, sizeof(transport));
    printf("%s rma: %d ranks, %s; memory of %s\n\n", host->program, s->size, transport, memory);
    printf("%-18s %9s %7s %12s %12s\n", "operation", "bytes", "a flush", "us each", "MB/s");
}

static void row(struct setup *s, const char *name, int bytes, int times, double each)
{
    if (s->rank != 0)
        return;
    const double us = each * 1e6 / times, mbs = bytes / (each / times) / 1e6;
    if (s->json)
        printf("%s{\"name\": \"%s\", \"bytes\": %d, \"before_flush\": %d, \"us\": %.4f, \"mb_s\": %.1f}",
               s->rows++ ? ",\n  " : "\n  ", name, bytes, times, us, mbs);
    else
        printf("%-18s %9d %7d %12.3f %12.1f\n", name, bytes, times, us, bytes ? mbs : 0.0);
    fflush(stdout);
}

/* The best of five rounds, each a share of the time. */
static void measure(struct setup *s, size_t which)
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
                cases[which].run(s, cases[which].bytes, cases[which].times);
            n += 10;
            end = MPI_Wtime();
        }
        best = (end - start) / n < best ? (end - start) / n : best;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    row(s, cases[which].name, cases[which].bytes, cases[which].times, best);
}

static void fences(struct setup *s)
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
    row(s, "fence", 0, 1, best);
}

/* Rank 1 exposes its memory, rank 0 puts 8 bytes there: until rank 1 has them. */
static void exposures(struct setup *s)
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
    row(s, "post to wait, put", 8, 1, best);
}

/* What a window costs to make and free, a page of memory at each rank: one alone, and many that are open at once. */
static void windows(struct setup *s, const char *name, int open, int times)
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
    row(s, name, 0, 1, best);
}

/* Memory that ranks 0 and 1 share in any case, if they are on one node. */
static void floor_open(struct setup *s)
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

static void floor_close(struct setup *s)
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

static int usage(void)
{
    puts("usage: mpiexec -n 2 fishplate bench rma [--created] [--adapter] [--busy] [--apart] [--seconds S] "
         "[--json]\n"
         "Times one-sided operations of rank 0 on the memory of rank 1.\n"
         "  --created    window in memory of the program (MPI_Win_create) instead of MPI_Win_allocate\n"
         "  --adapter    integers of 8 bytes are changed by the target's adapter "
         "(fishplate_accumulate_by=adapter)\n"
         "  --busy       rank 1 computes during the test and makes no MPI call\n"
         "  --apart      do not measure a store into shared memory: the ranks only seem to be on one node\n"
         "  --seconds S  time for each case (default 0.2)\n"
         "  --json       one JSON document instead of the table");
    return 0;
}

int bench_rma_main(const struct bench_host *host, int argc, char **argv)
{
    struct setup s = {.seconds = 0.2};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--created") == 0)
            s.created = 1;
        else if (strcmp(argv[i], "--adapter") == 0)
            s.adapter = 1;
        else if (strcmp(argv[i], "--busy") == 0)
            s.busy = 1;
        else if (strcmp(argv[i], "--apart") == 0)
            s.apart = 1;
        else if (strcmp(argv[i], "--json") == 0)
            s.json = 1;
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            s.seconds = atof(argv[++i]);
        else
            return usage() + (strcmp(argv[i], "--help") != 0);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.size);
    if (s.size < 2) {
        fprintf(stderr, "bench rma: two ranks are needed: mpiexec -n 2 fishplate bench rma\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    s.local = calloc(1, LONGEST);
    s.memory = s.created ? calloc(1, LONGEST) : NULL;
    window_open(&s);
    memset(s.memory, 0, LONGEST);
    floor_open(&s);
    if (s.rank == 0)
        head(&s, host);
    fences(&s);
    exposures(&s);
    if (s.rank == 0)
        MPI_Win_lock_all(0, s.win);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (cases[i].run != store || s.direct)
            measure(&s, i);
    if (s.rank == 0)
        MPI_Win_unlock_all(s.win);
    windows(&s, "make, free", 1, 100);
    windows(&s, "... of 1000 open", 1000, 1);
    if (s.rank == 0 && s.json)
        puts("\n ]}");
    MPI_Win_free(&s.win);
    floor_close(&s);
    if (s.created)
        free(s.memory);
    free(s.local);
    MPI_Finalize();
    return 0;
}
