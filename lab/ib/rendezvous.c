/* rendezvous.c: the rendezvous protocols [Takagi13]: BOWTIE, in which both ends of every pair send at the
 * same time, with six protocols; the worst case of PUTNR, in which the last byte of a message equals the byte
 * that the buffer held before; an all-to-all exchange. Messages of every size use rendezvous here.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ib.h"

static const size_t sizes[] = {1 * KI, 2 * KI, 4 * KI, 8 * KI, 16 * KI, 32 * KI, 64 * KI, 256 * KI};
enum { NSIZES = sizeof(sizes) / sizeof(sizes[0]), QUICK_STEP = 4, AT_ONCE = 4 };

/* PUTNR stores this value in the last byte of a receive buffer that it offers (src/p2p/rendezvous_put.c);
 * the worst case is a message whose last byte has this value. */
enum { PUTNR_CONSTANT = 0 };

struct bowtie {
    int me, size, peer, bytes;
    bool change; /* the last byte differs from message to message; otherwise it is always PUTNR_CONSTANT */
    unsigned char turn;
    char *out, *in;
};

static void bowtie_set_last_byte(struct bowtie *t)
{
    t->out[t->bytes - 1] = t->change ? (char)++t->turn : PUTNR_CONSTANT;
}

static void bowtie_exchange(void *arg, int n)
{
    struct bowtie *t = arg;
    for (int i = 0; i < n; i++) {
        MPI_Request both[2];
        bowtie_set_last_byte(t);
        MPI_Irecv(t->in, t->bytes, MPI_BYTE, t->peer, 1, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(t->out, t->bytes, MPI_BYTE, t->peer, 1, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
}

/* All-to-all exchange with four partners at a time, as in [Takagi13 4.2.2]. */
static void bowtie_exchange_all_to_all(void *arg, int n)
{
    struct bowtie *t = arg;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < t->size; j += AT_ONCE) {
            MPI_Request requests[2 * AT_ONCE];
            int used = 0;
            for (int k = j; k < j + AT_ONCE && k < t->size; k++) {
                int to = (t->me + k) % t->size, from = (t->me + t->size - k) % t->size;
                MPI_Irecv(t->in + (size_t)from * (size_t)t->bytes, t->bytes, MPI_BYTE, from, 2,
                          MPI_COMM_WORLD, &requests[used++]);
                MPI_Isend(t->out, t->bytes, MPI_BYTE, to, 2, MPI_COMM_WORLD, &requests[used++]);
            }
            MPI_Waitall(used, requests, MPI_STATUSES_IGNORE);
        }
}

static void bowtie_check(struct ib_rank *r, struct bowtie *t)
{
    size_t bytes = (size_t)t->bytes;
    for (unsigned round = 0; round < 3; round++) {
        bench_fill(t->out, bytes, 2 * round + (unsigned)t->me);
        memset(t->in, (int)round, bytes);
        bowtie_exchange(t, 1);
        r->bench.errors += bench_check(t->in, bytes - 1, 2 * round + (unsigned)t->peer);
        const char last = t->change ? (char)t->turn : PUTNR_CONSTANT; /* both ranks count alike */
        r->bench.errors += t->in[bytes - 1] != last;
    }
}

static void bowtie_check_all_to_all(struct ib_rank *r, struct bowtie *t)
{
    size_t bytes = (size_t)t->bytes;
    bench_fill(t->out, bytes, 7 + (unsigned)t->me);
    memset(t->in, 0, bytes * (size_t)t->size);
    bowtie_exchange_all_to_all(t, 1);
    for (int from = 0; from < t->size; from++)
        r->bench.errors += bench_check(t->in + (size_t)from * bytes, bytes, 7 + (unsigned)from);
}

static void rendezvous_run_rank(struct ib_rank *r)
{
    struct bowtie t = {
        .me = r->bench.rank, .size = r->bench.size, .peer = (r->bench.size / 2) ^ r->bench.rank};
    bool all = ib_read_argument(r, "alltoall", 0) != 0;
    t.change = ib_read_argument(r, "change", 0) != 0;
    for (int i = 0; i < NSIZES; i += r->quick ? QUICK_STEP : 1) {
        struct bench_stats s;
        t.bytes = (int)sizes[i];
        t.out = bench_alloc(sizes[i]);
        t.in = bench_alloc(sizes[i] * (all ? (size_t)t.size : 1));
        (all ? bowtie_check_all_to_all : bowtie_check)(r, &t);
        bench_measure(&r->bench, MPI_COMM_WORLD, true, all ? bowtie_exchange_all_to_all : bowtie_exchange, &t,
                      &s);
        (all ? bowtie_check_all_to_all : bowtie_check)(r, &t);
        ib_report_figure(r, IB_TIME, s.min * 1e6, "time.%zu", sizes[i]);
        free(t.in);
        free(t.out);
    }
    double offered = ib_counter("p2p_rendezvous_put") + ib_counter("p2p_rendezvous_putnr");
    ib_report_figure(r, IB_COUNT, ib_sum_over_ranks(r, offered), "offered");
    ib_report_figure(r, IB_COUNT, ib_sum_over_ranks(r, ib_counter("p2p_offer_notifications")), "notified");
}

static const char *const protocols[] = {"rput", "getcqe", "get", "putnr", "put", "r3"};
enum { RPUT, GETCQE, GET, PUTNR, PUT, R3, NPROTOCOLS };

static struct ib_figures *rendezvous_run_job(struct ib_driver *d, int protocol, int ranks, bool all,
                                             bool change)
{
    char settings[160];
    snprintf(settings, sizeof(settings), "FISHPLATE_EAGER_MAX=64 FISHPLATE_RENDEZVOUS=%s%s",
             protocols[protocol], ranks > d->cores ? " FISHPLATE_LAB=LAST_BYTE_POLL=always" : "");
    return ib_run_job(
        d, &(struct ib_job){.topic = "rendezvous", .ranks = ranks, .nodes = 2, .settings = settings},
        "alltoall=%d change=%d", all, change);
}

/* The largest advantage in time of `a` over `b` over all sizes, in percent. */
static double rendezvous_find_speedup(struct ib_figures *a, struct ib_figures *b)
{
    double most = -1000;
    for (int i = 0; i < NSIZES; i++) {
        double saved =
            (1 - ib_find_figure(a, "time.%zu", sizes[i]) / ib_find_figure(b, "time.%zu", sizes[i])) * 100;
        if (!isnan(saved) && saved > most)
            most = saved;
    }
    return most;
}

/* Put and putnr are faster only if the sender does not notify the receiver, so the share of notified
 * messages is printed: if ranks share cores, the library polls for the last byte only if LAST_BYTE_POLL is
 * set. */
static void rendezvous_print_polling(struct ib_table *t, const struct ib_driver *d, int ranks,
                                     const struct ib_figures *putnr, const struct ib_figures *put)
{
    ib_table_add_remark(
        t,
        "putnr notified its receivers of %.0f %% of the messages, put of %.0f %%: the rest was found by "
        "polling the last byte.",
        100 * ib_find_figure(putnr, "notified") / ib_find_figure(putnr, "offered"),
        100 * ib_find_figure(put, "notified") / ib_find_figure(put, "offered"));
    if (ranks > d->cores)
        ib_table_add_remark(
            t,
            "%d ranks share %d cores: polling is forced (FISHPLATE_LAB=LAST_BYTE_POLL=always); by default it "
            "is off there, and put and putnr are the same. Ranks take turns, so compare columns, not tables.",
            ranks, d->cores);
}

static void rendezvous_compare_six(struct ib_driver *d, int ranks, bool all, const char *title,
                                   const char *paper)
{
    struct ib_figures *f[NPROTOCOLS];
    struct ib_table *t = ib_table_open(d, title, paper);
    ib_table_add_column(t, "bytes");
    for (int p = 0; p < NPROTOCOLS; p++) {
        ib_table_add_column(t, "%s", protocols[p]);
        f[p] = rendezvous_run_job(d, p, ranks, all, true);
    }
    for (int i = 0; i < NSIZES; i += d->quick ? QUICK_STEP : 1) {
        ib_table_add_cell(t, "%zu", sizes[i]);
        for (int p = 0; p < NPROTOCOLS; p++)
            ib_table_add_number(t, ib_find_figure(f[p], "time.%zu", sizes[i]), 2);
    }
    ib_table_add_remark(
        t,
        "at its best put is %.0f %% faster than get, get %.0f %% faster than getcqe; against rput, put "
        "%.0f %% "
        "and get %.0f %%.",
        rendezvous_find_speedup(f[PUT], f[GET]), rendezvous_find_speedup(f[GET], f[GETCQE]),
        rendezvous_find_speedup(f[PUT], f[RPUT]), rendezvous_find_speedup(f[GET], f[RPUT]));
    rendezvous_print_polling(t, d, ranks, f[PUTNR], f[PUT]);
    ib_table_close(t);
    for (int p = 0; p < NPROTOCOLS; p++)
        ib_figures_free(f[p]);
}

static void rendezvous_print_worst_case(struct ib_driver *d, int ranks, const char *title)
{
    static const char *const names[] = {"putnr, same byte", "put, same byte", "putnr, changed",
                                        "put, changed"};
    struct ib_figures *f[4];
    struct ib_table *t = ib_table_open(
        d, title,
        "where the last byte is what the receive buffer holds, putnr must send one message more: put is "
        "up to 24.6 % faster.");
    ib_table_add_column(t, "bytes");
    for (int i = 0; i < 4; i++) {
        f[i] = rendezvous_run_job(d, i % 2 ? PUT : PUTNR, ranks, false, i >= 2);
        ib_table_add_column(t, "%s", names[i]);
    }
    for (int i = 0; i < NSIZES; i += d->quick ? QUICK_STEP : 1) {
        ib_table_add_cell(t, "%zu", sizes[i]);
        for (int k = 0; k < 4; k++)
            ib_table_add_number(t, ib_find_figure(f[k], "time.%zu", sizes[i]), 2);
    }
    ib_table_add_remark(
        t, "with the same byte put is up to %.0f %% faster than putnr; with another, up to %.0f %%.",
        rendezvous_find_speedup(f[1], f[0]), rendezvous_find_speedup(f[3], f[2]));
    for (int i = 0; i < 4; i++)
        ib_table_add_remark(t, "%s: one more message for %.0f of %.0f.", names[i],
                            ib_find_figure(f[i], "notified"), ib_find_figure(f[i], "offered"));
    ib_table_close(t);
    for (int i = 0; i < 4; i++)
        ib_figures_free(f[i]);
}

static void rendezvous_print_tables(struct ib_driver *d)
{
    static const char *const bowtie_paper = "get is like getcqe; put is up to 16 % faster than get; put and "
                                            "get up to 38 % and 26 % faster than rput "
                                            "(as MVAPICH2 does it).";
    rendezvous_compare_six(d, 2, false, "BOWTIE, 1 pair: us for a message each way [Takagi13 figs 6, 8, 11]",
                           bowtie_paper);
    rendezvous_print_worst_case(d, 2,
                                "BOWTIE, 1 pair, the last byte as it was and changed: us [Takagi13 fig. 7]");
    if (d->quick)
        return;
    rendezvous_compare_six(d, 4, false, "BOWTIE, 2 pairs: us [Takagi13 figs 6, 8, 11]", bowtie_paper);
    rendezvous_compare_six(d, 8, false, "BOWTIE, 4 pairs: us [Takagi13 figs 6, 8, 11]", bowtie_paper);
    rendezvous_compare_six(d, 16, false, "BOWTIE, 8 pairs: us [Takagi13 figs 6, 8, 11]", bowtie_paper);
    rendezvous_compare_six(d, 32, false, "BOWTIE, 16 pairs: us [Takagi13 figs 6, 8, 11]", bowtie_paper);
    rendezvous_print_worst_case(
        d, 32, "BOWTIE, 16 pairs, the last byte as it was and changed: us [Takagi13 fig. 7]");
    rendezvous_compare_six(d, 32, true, "All-to-all of 32 ranks on 2 nodes: us [Takagi13 fig. 9]",
                           "put is up to 26 % faster than get.");
}

const struct ib_topic ib_rendezvous = {
    .name = "rendezvous",
    .doc = "six rendezvous protocols: BOWTIE with 1 to 16 pairs, PUTNR's worst case, all-to-all",
    .rank = rendezvous_run_rank,
    .tables = rendezvous_print_tables,
};
