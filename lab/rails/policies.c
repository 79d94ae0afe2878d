/* policies.c: whole messages over two rails, by each policy of multiplexing [Liu04 8.2.4]; allocation of
 * rails if an adapter cannot send and receive at full speed at the same time [Coll01]: basic, local-dynamic,
 * dynamic with reservation, hybrid, on 4 nodes with 2 rails. `fishplate-lab sim rails` runs the study for 32
 * to 128 nodes with the same code.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rails.h"

#include <math.h>
#include <stdlib.h>

/* ---- multiplexing ---- */

static const char *const whole_policies[] = {"off", "turns", "shares", "window", "room"};
static const char *const policy_names[] = {"binding", "round robin", "weighted 4:1", "windows of 16",
                                           "256K each"};
enum { WHOLE_POLICIES = sizeof(whole_policies) / sizeof(whole_policies[0]) };

static void multiplex_print_tables(struct ib_driver *d)
{
    long from = 1 << 16, to = d->quick ? 1 << 18 : 1 << 20;
    struct ib_figures *f[WHOLE_POLICIES];
    struct ib_table *t =
        ib_table_open(d, "Bandwidth of whole messages, rails of 1 GB/s and 250 MB/s [Liu04 8.2.4]",
                      "no figure: multiplexing is for small messages there, striping for large ones.");
    ib_table_add_column(t, "bytes");
    for (int w = 0; w < WHOLE_POLICIES; w++) {
        char settings[96];
        snprintf(settings, sizeof(settings), "FISHPLATE_LAB=IB_STRIPE=%s FISHPLATE_IB_WEIGHTS=4,1",
                 whole_policies[w]);
        struct ib_job job = {
            .topic = "whole", .ranks = 2, .nodes = 2, .settings = settings, .hcas = RAILS_ODD};
        f[w] = ib_run_job(d, &job, "from=%ld to=%ld latency=0 bibw=0", from, to);
        ib_table_add_column(t, "%s, MB/s", policy_names[w]);
    }
    for (long bytes = from; bytes <= to; bytes *= 4) {
        ib_table_add_cell(t, "%ldK", bytes >> 10);
        for (int w = 0; w < WHOLE_POLICIES; w++)
            ib_table_add_number(t, ib_find_figure(f[w], "bw.%ld", bytes), 0);
    }
    ib_table_add_remark(t, "the second rail carried %.0f, %.0f, %.0f, %.0f and %.0f %% of the bytes.",
                        rails_second_share(f[0]), rails_second_share(f[1]), rails_second_share(f[2]),
                        rails_second_share(f[3]), rails_second_share(f[4]));
    ib_table_close(t);
    for (int w = 0; w < WHOLE_POLICIES; w++)
        ib_figures_free(f[w]);
}

const struct ib_topic rails_whole = {
    .name = "whole",
    .doc = "whole messages over two rails: binding, round robin, weighted, windows",
    .rank = rails_run_traffic,
    .tables = multiplex_print_tables,
};

/* ---- allocation ---- */

enum { STEPS_MAX = 4096, FLIGHT = 4, RANKS = 4 };

/* Random destination of a rank's message in each step; every rank computes the destinations of all ranks. */
static int alloc_random_destination(unsigned *dice, int rank, int size)
{
    *dice = *dice * 1664525u + 1013904223u;
    int to = (int)((*dice >> 16) % (unsigned)(size - 1));
    return to < rank ? to : to + 1;
}

struct step {
    MPI_Request requests[RANKS + 1];
    int count;
};

static void alloc_begin_step(struct ib_rank *r, struct step *s, unsigned *dice, int bytes, const char *out,
                             char *in)
{
    int size = r->bench.size, me = r->bench.rank, to[RANKS];
    s->count = 0;
    for (int k = 0; k < size; k++)
        to[k] = alloc_random_destination(dice, k, size);
    for (int k = 0; k < size; k++)
        if (to[k] == me)
            MPI_Irecv(in + (size_t)k * (size_t)bytes, bytes, MPI_BYTE, k, 0, MPI_COMM_WORLD,
                      &s->requests[s->count++]);
    MPI_Isend(out, bytes, MPI_BYTE, to[me], 0, MPI_COMM_WORLD, &s->requests[s->count++]);
}

/* Every rank sends to random other ranks, a few messages at a time. */
static double alloc_time_random_traffic(struct ib_rank *r, int bytes, int steps, const char *out, char *in)
{
    struct step flight[FLIGHT] = {0};
    unsigned dice = 7;
    size_t part = (size_t)r->bench.size * (size_t)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < steps + FLIGHT; i++) {
        struct step *s = &flight[i % FLIGHT];
        MPI_Waitall(s->count, s->requests, MPI_STATUSES_IGNORE);
        s->count = 0;
        if (i < steps)
            alloc_begin_step(r, s, &dice, bytes, out, in + (size_t)(i % FLIGHT) * part);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    return (double)bytes * steps * r->bench.size / seconds / 1e6;
}

static void alloc_check_last_step(struct ib_rank *r, int bytes, int steps, const char *in)
{
    unsigned dice = 7;
    int size = r->bench.size, from[FLIGHT][RANKS] = {{0}};
    for (int i = 0; i < steps; i++)
        for (int k = 0; k < size; k++)
            from[i % FLIGHT][k] |= alloc_random_destination(&dice, k, size) == r->bench.rank;
    for (int i = 0; i < FLIGHT; i++)
        for (int k = 0; k < size; k++)
            if (from[i][k])
                r->bench.errors += bench_check(in + ((size_t)i * (size_t)size + (size_t)k) * (size_t)bytes,
                                               (size_t)bytes, (unsigned)k);
}

static void alloc_run_rank(struct ib_rank *r)
{
    long from = ib_read_argument(r, "from", 1 << 16), to = ib_read_argument(r, "to", 1 << 20),
         total = ib_read_argument(r, "total", 64 << 20);
    char *out = bench_alloc((size_t)to), *in = bench_alloc((size_t)(to * r->bench.size * FLIGHT));
    bench_fill(out, (size_t)to, (unsigned)r->bench.rank);
    for (long bytes = from; bytes <= to; bytes *= 4) {
        int steps = (int)(total / bytes / r->bench.size);
        alloc_time_random_traffic(r, (int)bytes, steps / 4 + 4, out,
                                  in); /* connects the rails before the measurement */
        double frames = ib_counter("ib_reserve_frames"), answers = ib_counter("ib_reserve_answers"),
               ns = ib_counter("ib_reserve_answer_ns");
        double rate = alloc_time_random_traffic(r, (int)bytes, steps, out, in);
        alloc_check_last_step(r, (int)bytes, steps, in);
        frames = ib_sum_over_ranks(r, ib_counter("ib_reserve_frames") - frames) / steps / r->bench.size;
        ib_report_figure(r, IB_RATE, rate, "rate.%ld", bytes);
        answers = ib_sum_over_ranks(r, ib_counter("ib_reserve_answers") - answers);
        ns = ib_sum_over_ranks(r, ib_counter("ib_reserve_answer_ns") - ns);
        ib_report_figure(r, IB_COUNT, frames, "frames.%ld", bytes);
        ib_report_figure(r, IB_TIME, answers > 0 ? ns / answers / 2 / 1000 : 0, "control.%ld", bytes);
    }
    free(in);
    free(out);
    rails_report_bytes(r);
}

static void alloc_print_tables(struct ib_driver *d)
{
    static const char *const policies[] = {"even", "basic", "local", "dynamic", "hybrid"};
    static const char *const names[] = {"all rails", "basic", "local-dynamic", "dynamic", "hybrid"};
    enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };
    long from = 1 << 16, to = d->quick ? 1 << 18 : 1 << 20;
    struct ib_figures *f[POLICIES];
    struct ib_table *t = ib_table_open(
        d,
        "All nodes send to random others: 4 nodes, 2 rails of 250 MB/s, a bus of 250 MB/s behind each "
        "adapter "
        "[Coll01]",
        "dynamic and hybrid deliver most where messages are long; for short ones the reservation costs more "
        "than it saves.");
    ib_table_add_column(t, "bytes");
    for (int p = 0; p < POLICIES; p++) {
        char settings[64];
        snprintf(settings, sizeof(settings), "FISHPLATE_LAB=IB_STRIPE=%s", policies[p]);
        struct ib_job job = {.topic = "alloc",
                             .ranks = RANKS,
                             .nodes = RANKS,
                             .settings = settings,
                             .hcas = "2x250MB/s,bus=250MB/s"};
        f[p] = ib_run_job(d, &job, "from=%ld to=%ld total=%d", from, to, d->quick ? 8 << 20 : 128 << 20);
        ib_table_add_column(t, "%s, MB/s", names[p]);
    }
    ib_table_add_column(t, "frames a message, dynamic");
    ib_table_add_column(t, "us for a frame");
    for (long bytes = from; bytes <= to; bytes *= 4) {
        ib_table_add_cell(t, "%ldK", bytes >> 10);
        for (int p = 0; p < POLICIES; p++)
            ib_table_add_number(t, ib_find_figure(f[p], "rate.%ld", bytes), 0);
        ib_table_add_number(t, ib_find_figure(f[3], "frames.%ld", bytes), 1);
        ib_table_add_number(t, ib_find_figure(f[3], "control.%ld", bytes), 1);
    }
    ib_table_add_remark(
        t, "dynamic against all rails at once: %.2f times at the largest size; every byte was checked.",
        ib_find_figure(f[3], "rate.%ld", to) / ib_find_figure(f[0], "rate.%ld", to));
    ib_table_add_remark(
        t, "a frame takes half the time from a request for rails to its answer, the mean of all: "
           "fishplate-lab sim rails --control N");
    rails_print_second_share(t, f[3]);
    ib_table_close(t);
    for (int p = 0; p < POLICIES; p++)
        ib_figures_free(f[p]);
}

const struct ib_topic rails_alloc = {
    .name = "alloc",
    .doc = "reserved rails, 4 nodes: basic, local-dynamic, dynamic, hybrid (Coll 2001)",
    .rank = alloc_run_rank,
    .tables = alloc_print_tables,
};
