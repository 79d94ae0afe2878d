/* polling.c: cost of polling the rings of many connections ([Liu04 fig. 6.15] simulated it). Rank 0 adds more
 * and more peers to its polling set; the peers then sleep, and MPI_Iprobe, which polls every ring once, is
 * timed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "ib.h"

enum { PEERS_MAX = 128, PEERS_QUICK = 2, GREETINGS = 4, TAG_GO = 1, TAG_HELLO = 2 };

static void polling_probe(void *arg, int n)
{
    (void)arg;
    for (int i = 0; i < n; i++) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_HELLO, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

/* Exchanges messages with a peer in two rounds: in the first, rank 0 adds the peer to the polling set; in
 * the second, the peer learns the address of its ring. */
static void polling_add_peer(int peer)
{
    int word = 1;
    for (int round = 0; round < 2; round++) {
        MPI_Send(&word, 1, MPI_INT, peer, TAG_GO, MPI_COMM_WORLD);
        for (int i = 0; i < GREETINGS; i++)
            MPI_Recv(&word, 1, MPI_INT, peer, TAG_HELLO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void polling_answer_rank0(void)
{
    for (;;) {
        int word;
        MPI_Recv(&word, 1, MPI_INT, 0, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (word == 0)
            return;
        for (int i = 0; i < GREETINGS; i++)
            MPI_Send(&word, 1, MPI_INT, 0, TAG_HELLO, MPI_COMM_WORLD);
    }
}

static void polling_run_rank(struct ib_rank *r)
{
    if (r->bench.rank != 0) {
        polling_answer_rank0();
        return;
    }
    int members = 0;
    for (int wanted = 1; wanted < r->bench.size; wanted *= 2) {
        struct bench_stats s;
        while (members < wanted)
            polling_add_peer(++members);
        bench_measure(&r->bench, MPI_COMM_SELF, false, polling_probe, NULL, &s);
        ib_report_figure(r, IB_TIME, s.min * 1e6, "poll.%d", wanted);
        ib_report_figure(r, IB_COUNT, ib_counter("ib_rings_added"), "rings.%d", wanted);
    }
    for (int peer = 1, stop = 0; peer < r->bench.size; peer++)
        MPI_Send(&stop, 1, MPI_INT, peer, TAG_GO, MPI_COMM_WORLD);
}

static void polling_print_tables(struct ib_driver *d)
{
    int most = d->quick ? PEERS_QUICK : PEERS_MAX;
    struct ib_job job = {
        .topic = "polling", .ranks = most + 1, .nodes = most + 1, .settings = "FISHPLATE_IB_POLLSET=128"};
    struct ib_figures *f = ib_run_job(d, &job, "%s", "");
    struct ib_table *t =
        ib_table_open(d, "Time to poll the rings of a process [Liu04 fig. 6.15]",
                      "simulated: 0.14 us for 16 connections, about 1.3 us for 128: 0.010 us each.");
    ib_table_add_column(t, "connections in the polling set");
    ib_table_add_column(t, "MPI_Iprobe, us");
    ib_table_add_column(t, "more than for one, us");
    double one = ib_find_figure(f, "poll.1"), last = one;
    for (int n = 1; n <= most; n *= 2) {
        last = ib_find_figure(f, "poll.%d", n);
        ib_table_add_cell(t, "%.0f", ib_find_figure(f, "rings.%d", n));
        ib_table_add_number(t, last, 3);
        ib_table_add_number(t, last - one, 3);
    }
    ib_table_add_remark(
        t, "%.4f us for each connection more; measured with %d processes, of which all but one sleep.",
        (last - one) / (most - 1), most + 1);
    ib_table_close(t);
    ib_figures_free(f);
}

const struct ib_topic ib_polling = {
    .name = "polling",
    .doc = "time to look into the rings of 1 to 128 connections",
    .rank = polling_run_rank,
    .tables = polling_print_tables,
};
