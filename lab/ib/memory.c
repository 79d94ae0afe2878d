/* memory.c: memory for communication of a process in jobs of growing size [Shipman06 figs 3 to 5]: after
 * MPI_Init, after neighbours have communicated, and after all ranks have communicated with all others; memory
 * of a program that only calls MPI_Barrier [Liu04 fig. 9.13]; queue pairs of a process with eight ranks a
 * node.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "ib.h"

enum { STAGES = 3, MESSAGES = 40 };
static const char *const stage_names[STAGES] = {"hello", "pairwise", "all-to-all"};

struct stage {
    double buffers, resident, connections;
};

static void stage_record(struct stage *s)
{
    s->buffers = ib_counter("ib_buffer_bytes");
    s->resident = ib_resident_bytes();
    s->connections = ib_counter("ib_connections_opened");
}

/* Runs in a job of its own because the connections that a barrier opens would be counted in the other
 * stages. */
static void barrier_run_rank(struct ib_rank *r)
{
    struct stage s;
    MPI_Barrier(MPI_COMM_WORLD);
    stage_record(&s);
    ib_report_figure(r, IB_COUNT, ib_max_over_ranks(r, s.buffers), "buffers");
    ib_report_figure(r, IB_COUNT, ib_max_over_ranks(r, s.resident), "resident");
    ib_report_figure(r, IB_COUNT, ib_max_over_ranks(r, s.connections), "connections");
}

static void memory_exchange_with_all(const struct ib_rank *r)
{
    int me = r->bench.rank, n = r->bench.size, out = 1, in;
    for (int k = 1; k < n; k++)
        for (int i = 0; i < MESSAGES; i++)
            MPI_Sendrecv(&out, 1, MPI_INT, (me + k) % n, 2, &in, 1, MPI_INT, (me + n - k) % n, 2,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void queue_pairs_run_rank(struct ib_rank *r)
{
    struct stage s;
    memory_exchange_with_all(r);
    stage_record(&s);
    const double pairs =
        ib_counter("ib_queue_pairs") + ib_counter("ib_xrc_initiators") + ib_counter("ib_xrc_targets");
    ib_report_figure(r, IB_COUNT, ib_sum_over_ranks(r, pairs) / r->bench.size, "pairs");
    ib_report_figure(r, IB_COUNT, ib_max_over_ranks(r, s.buffers), "buffers");
    ib_report_figure(r, IB_COUNT, ib_max_over_ranks(r, s.resident), "resident");
}

static void memory_run_rank(struct ib_rank *r)
{
    struct stage stages[STAGES];
    if (ib_read_argument(r, "barrier", 0)) {
        barrier_run_rank(r);
        return;
    }
    if (ib_read_argument(r, "pairs", 0)) {
        queue_pairs_run_rank(r);
        return;
    }
    int me = r->bench.rank, n = r->bench.size, out = 1, in;
    stage_record(&stages[0]);
    for (int i = 0; i < MESSAGES && (me ^ 1) < n; i++)
        MPI_Sendrecv(&out, 1, MPI_INT, me ^ 1, 1, &in, 1, MPI_INT, me ^ 1, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    stage_record(&stages[1]);
    for (int k = 1; k < n; k++)
        for (int i = 0; i < MESSAGES; i++)
            MPI_Sendrecv(&out, 1, MPI_INT, (me + k) % n, 2, &in, 1, MPI_INT, (me + n - k) % n, 2,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    stage_record(&stages[2]);
    for (int s = 0; s < STAGES; s++) {
        ib_report_figure(r, IB_COUNT, ib_max_over_ranks(r, stages[s].buffers), "buffers.%d", s);
        ib_report_figure(r, IB_COUNT, ib_max_over_ranks(r, stages[s].resident), "resident.%d", s);
        ib_report_figure(r, IB_COUNT, ib_max_over_ranks(r, stages[s].connections), "connections.%d", s);
    }
}

static const struct {
    const char *name, *settings;
} connect_modes[] = {
    {"static", "FISHPLATE_IB_CONNECT=static FISHPLATE_IB_POLLSET=0"},
    {"on demand", "FISHPLATE_IB_CONNECT=on-demand FISHPLATE_IB_POLLSET=0"},
    {"and rings", "FISHPLATE_IB_CONNECT=on-demand FISHPLATE_IB_POLLSET=16"},
    {"shared queues", "FISHPLATE_IB_CONNECT=on-demand FISHPLATE_IB_POLLSET=0 FISHPLATE_IB_RECEIVE=shared"},
};
enum { NMODES = sizeof(connect_modes) / sizeof(connect_modes[0]), SIZES_MAX = 6 };

static void memory_print_stage(struct ib_driver *d, struct ib_figures *f[SIZES_MAX][NMODES], int nsizes,
                               int stage)
{
    static const char *const titles[STAGES] = {
        "Memory of a process after MPI_Init: MiB registered for frames, and resident [Shipman06 fig. 3]",
        "The same after neighbours have exchanged messages [Shipman06 fig. 4]",
        "The same after all have exchanged messages with all [Shipman06 fig. 5]"};
    static const char *const papers[STAGES] = {
        "constant with connections on demand; grows with the number of ranks when they are opened at start.",
        "constant on demand; grows when static.",
        "grows with the number of peers, with shared queues much more slowly."};
    struct ib_table *t = ib_table_open(d, titles[stage], papers[stage]);
    ib_table_add_column(t, "ranks");
    for (int w = 0; w < NMODES; w++)
        ib_table_add_column(t, "%s", connect_modes[w].name);
    for (int w = 0; w < NMODES; w++)
        ib_table_add_column(t, "%s: RSS", connect_modes[w].name);
    for (int i = 0; i < nsizes; i++) {
        ib_table_add_cell(t, "%d", 2 << i);
        for (int w = 0; w < NMODES; w++)
            ib_table_add_number(t, ib_find_figure(f[i][w], "buffers.%d", stage) / (double)MI, 2);
        for (int w = 0; w < NMODES; w++)
            ib_table_add_number(t, ib_find_figure(f[i][w], "resident.%d", stage) / (double)MI, 1);
    }
    int last = nsizes - 1;
    ib_table_add_remark(t, "%s, %d ranks: static %.2f MiB, on demand %.2f MiB, shared queues %.2f MiB.",
                        stage_names[stage], 2 << last,
                        ib_find_figure(f[last][0], "buffers.%d", stage) / (double)MI,
                        ib_find_figure(f[last][1], "buffers.%d", stage) / (double)MI,
                        ib_find_figure(f[last][3], "buffers.%d", stage) / (double)MI);
    ib_table_close(t);
}

static void barrier_print_table(struct ib_driver *d, int nsizes)
{
    static const int shown[] = {0, 1, 3}; /* indices in `connect_modes`; rings do not affect a barrier */
    struct ib_table *t = ib_table_open(d,
                                       "A program that only calls MPI_Barrier: MiB registered for frames, "
                                       "connections, resident [Liu04 fig. 9.13]",
                                       "grows with the number of nodes, since every pair is connected at "
                                       "start; on-demand connections would help.");
    ib_table_add_column(t, "ranks");
    for (int w = 0; w < 3; w++)
        ib_table_add_column(t, "%s", connect_modes[shown[w]].name);
    for (int w = 0; w < 3; w++)
        ib_table_add_column(t, "%s: connections", connect_modes[shown[w]].name);
    for (int w = 0; w < 3; w++)
        ib_table_add_column(t, "%s: RSS", connect_modes[shown[w]].name);
    for (int i = 0; i < nsizes; i++) {
        struct ib_figures *f[3];
        for (int w = 0; w < 3; w++)
            f[w] = ib_run_job(d,
                              &(struct ib_job){.topic = "memory",
                                               .ranks = 2 << i,
                                               .nodes = 2 << i,
                                               .settings = connect_modes[shown[w]].settings,
                                               .repeat = 1},
                              "barrier=1");
        ib_table_add_cell(t, "%d", 2 << i);
        for (int w = 0; w < 3; w++)
            ib_table_add_number(t, ib_find_figure(f[w], "buffers") / (double)MI, 2);
        for (int w = 0; w < 3; w++)
            ib_table_add_number(t, ib_find_figure(f[w], "connections"), 0);
        for (int w = 0; w < 3; w++)
            ib_table_add_number(t, ib_find_figure(f[w], "resident") / (double)MI, 1);
        for (int w = 0; w < 3; w++)
            ib_figures_free(f[w]);
    }
    ib_table_close(t);
}

enum { RANKS_A_NODE = 8, RECEIVES = 3 };

static void queue_pairs_print_table(struct ib_driver *d)
{
    static const char *const receives[RECEIVES] = {"peer", "shared", "xrc"};
    const int most = d->quick ? 2 : 8;
    struct ib_table *t = ib_table_open(
        d,
        "Eight ranks a node, after all have exchanged messages with all: queue pairs of a process, MiB "
        "registered for frames, resident",
        "with XRC queue pairs grow with the number of nodes, not of processes [InfiniBand, annex A14].");
    ib_table_add_column(t, "nodes");
    for (int w = 0; w < RECEIVES; w++)
        ib_table_add_column(t, "%s: queue pairs", receives[w]);
    for (int w = 0; w < RECEIVES; w++)
        ib_table_add_column(t, "%s", receives[w]);
    for (int w = 0; w < RECEIVES; w++)
        ib_table_add_column(t, "%s: RSS", receives[w]);
    for (int nodes = 2; nodes <= most; nodes *= 2) {
        struct ib_figures *f[RECEIVES];
        char settings[80];
        for (int w = 0; w < RECEIVES; w++) {
            snprintf(settings, sizeof(settings), "FISHPLATE_IB_POLLSET=0 FISHPLATE_IB_RECEIVE=%s",
                     receives[w]);
            f[w] = ib_run_job(d,
                              &(struct ib_job){.topic = "memory",
                                               .ranks = nodes * RANKS_A_NODE,
                                               .nodes = nodes,
                                               .settings = settings,
                                               .repeat = 1},
                              "pairs=1");
        }
        ib_table_add_cell(t, "%d", nodes);
        for (int w = 0; w < RECEIVES; w++)
            ib_table_add_number(t, ib_find_figure(f[w], "pairs"), 1);
        for (int w = 0; w < RECEIVES; w++)
            ib_table_add_number(t, ib_find_figure(f[w], "buffers") / (double)MI, 2);
        for (int w = 0; w < RECEIVES; w++)
            ib_table_add_number(t, ib_find_figure(f[w], "resident") / (double)MI, 1);
        for (int w = 0; w < RECEIVES; w++)
            ib_figures_free(f[w]);
    }
    ib_table_close(t);
}

static void memory_print_tables(struct ib_driver *d)
{
    struct ib_figures *f[SIZES_MAX][NMODES];
    int nsizes = d->quick ? 2 : SIZES_MAX;
    for (int i = 0; i < nsizes; i++)
        for (int w = 0; w < NMODES; w++) {
            struct ib_job job = {.topic = "memory",
                                 .ranks = 2 << i,
                                 .nodes = 2 << i,
                                 .settings = connect_modes[w].settings,
                                 .repeat = 1};
            f[i][w] = ib_run_job(d, &job, "%s", "");
        }
    for (int stage = 0; stage < STAGES; stage++)
        memory_print_stage(d, f, nsizes, stage);
    for (int i = 0; i < nsizes; i++)
        for (int w = 0; w < NMODES; w++)
            ib_figures_free(f[i][w]);
    barrier_print_table(d, nsizes);
    queue_pairs_print_table(d);
}

const struct ib_topic ib_memory = {
    .name = "memory",
    .doc = "memory of a process, 2 to 64 ranks: static, on demand, with rings, shared queues; XRC",
    .rank = memory_run_rank,
    .tables = memory_print_tables,
};
