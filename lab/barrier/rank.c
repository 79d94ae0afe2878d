/* rank.c: the measurement in the ranks of a job: each setting on its own communicator, in turn and several
 * times, so that other programs on the machine disturb all settings equally.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barrier.h"

enum { PASSES_MAX = 64, PASSES_MIN = 4, COUNTED_BARRIERS = 16, WARM_UP_BARRIERS = 12 };

struct candidate {
    int setting;
    MPI_Comm comm;
    int batch; /* barriers of one batch */
    double sample[PASSES_MAX];
    int samples;
};

const struct barrier_setting barrier_settings[] = {
    {"", NULL, false, {0}},
    {"shared", "shared", false, {0}},
    {"central", "central", false, {0}},
    {"combining:n=2", "combining", false, {2}},
    {"combining:n=4", "combining", false, {4}},
    {"tournament", "tournament", false, {0}},
    {"fway:f=4", "fway", false, {4}},
    {"mcs:n=4:release=2", "mcs", false, {4, 2}},
    {"bst", "bst", false, {0}},
    {"butterfly", "butterfly", false, {0}},
    {"pairwise", "pairwise", false, {0}},
    {"dissemination", "dissemination", false, {0}},
    {"nway:n=2", "nway", false, {2}},
    {"nway:n=3", "nway", false, {3}},
    {"nway:n=4", "nway", false, {4}},
    {"nwise:n=2", "nwise", false, {2}},
    {"nwise:n=3", "nwise", false, {3}},
    {"node+dissemination", "dissemination", true, {0}},
    {"node+nway:n=2", "nway", true, {2}},
    {"node+nway:n=3", "nway", true, {3}},
    {"rdma:n=1", "rdma", false, {1}},
    {"rdma:n=2", "rdma", false, {2}},
    {"rdma:n=3", "rdma", false, {3}},
    {"rdma_pairwise", "rdma_pairwise", false, {0}},
    {"rdma_counter", "rdma_counter", false, {0}},
    {"switch", "switch", false, {0}},
    {"multicast", "multicast", false, {0}},
    {"wires", "wires", false, {0}},
};
const int barrier_nsettings = (int)(sizeof(barrier_settings) / sizeof(barrier_settings[0]));
_Static_assert(sizeof(barrier_settings) / sizeof(barrier_settings[0]) <= BARRIER_SETTINGS_MAX,
               "more settings than places");

const char *barrier_setting_label(int setting)
{
    return setting == 0 ? "auto" : barrier_settings[setting].text;
}

/* False if parameter n of the algorithm is at least the number of nodes: the barrier would be identical to
 * the one with n = nodes - 1. */
static bool is_distinct_on_nodes(const struct barrier_setting *s, long nodes)
{
    return s->parameter[0] <= 1 || s->parameter[0] < nodes ||
           (strcmp(s->algorithm, "rdma") != 0 && !s->by_node);
}

static bool setting_is_usable(const struct ib_rank *r, const struct barrier_setting *s, bool several_nodes)
{
    const char *name;
    if (!s->algorithm)
        return true;
    if (!is_distinct_on_nodes(s, ib_read_argument(r, "nodes", 1)))
        return false;
    for (int i = 0; (name = r->bench.host->algorithm("barrier", i)) != NULL; i++)
        if (strcmp(name, s->algorithm) == 0)
            return several_nodes || !s->by_node;
    return false;
}

static void rank_select_setting(const struct ib_rank *r, int setting)
{
    char text[96] = "";
    if (setting > 0 && setting < barrier_nsettings)
        snprintf(text, sizeof(text), "barrier=%s", barrier_settings[setting].text);
    if (r->bench.host->choose(text) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static double rank_time_barriers(MPI_Comm comm, int n)
{
    double start = MPI_Wtime();
    for (int i = 0; i < n; i++)
        MPI_Barrier(comm);
    return (MPI_Wtime() - start) / n;
}

/* Number of operations of this rank so far: messages, RDMA writes, packets to a switch or multicast group,
 * changes of a barrier wire. */
static double rank_count_operations(void)
{
    return ib_counter("p2p_eager_sent") + ib_counter("ib_put_bytes") + ib_counter("coll_barrier_switch") +
           ib_counter("mcast_packets") + ib_counter("coll_barrier_wires");
}

/* Opens a communicator for each setting; the barrier network works on MPI_COMM_WORLD only. */
static void candidate_open_comm(const struct ib_rank *r, struct candidate *c)
{
    c->comm = MPI_COMM_WORLD;
    if (!barrier_uses_network(&barrier_settings[c->setting]))
        MPI_Comm_dup(r->bench.comm, &c->comm);
}

static void rank_measure_operations(struct ib_rank *r, struct candidate *c)
{
    const char *label = barrier_setting_label(c->setting);
    double before = ib_counter("coll_bytes");
    rank_select_setting(r, c->setting);
    rank_time_barriers(c->comm, WARM_UP_BARRIERS);
    const double bytes = ib_max_over_ranks(r, ib_counter("coll_bytes") - before);
    before = rank_count_operations();
    rank_time_barriers(c->comm, COUNTED_BARRIERS);
    /* The counters may miss operations of the last barrier that are still in progress: less than half a
     * barrier, which disappears when the printed figure is rounded. */
    const double mine = (rank_count_operations() - before) / COUNTED_BARRIERS;
    const double most = ib_max_over_ranks(r, mine), all = ib_sum_over_ranks(r, mine);
    ib_report_figure(r, IB_COUNT, all, "messages/%s", label);
    ib_report_figure(r, IB_COUNT, most, "most/%s", label);
    ib_report_figure(r, IB_COUNT, bytes, "bytes/%s", label);
    const double slice = r->quick ? 0.5e-3 : 4e-3;
    const double one = ib_max_over_ranks(r, rank_time_barriers(c->comm, 4));
    c->batch = (int)(slice / one) < 4 ? 4 : (int)(slice / one);
}

static int compare_by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of every step-th sample, beginning with sample `first`. */
static double candidate_median(const struct candidate *c, int first, int step)
{
    double some[PASSES_MAX] = {0};
    int n = 0;
    for (int i = first; i < c->samples; i += step)
        some[n++] = c->sample[i];
    qsort(some, (size_t)n, sizeof(*some), compare_by_value);
    return n == 0 ? 0 : n % 2 ? some[n / 2] : (some[n / 2 - 1] + some[n / 2]) / 2;
}

static void rank_measure(struct ib_rank *r, struct candidate *list, int n)
{
    const double end = MPI_Wtime() + (double)ib_read_argument(r, "ms", 2000) * 1e-3;
    const int least = r->quick ? 2 : PASSES_MIN, most = r->quick ? 4 : PASSES_MAX;
    for (int pass = 0, more = 1; pass < most && more; pass++) {
        for (int i = 0; i < n; i++) {
            struct candidate *c = &list[(i + pass) % n];
            rank_select_setting(r, c->setting);
            rank_time_barriers(c->comm, 2);
            c->sample[c->samples++] = ib_max_over_ranks(r, rank_time_barriers(c->comm, c->batch));
        }
        more = pass + 1 < least || MPI_Wtime() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, r->bench.comm);
    }
}

static void rank_run_study(struct ib_rank *r)
{
    struct candidate *list = calloc((size_t)barrier_nsettings, sizeof(*list));
    const bool several = ib_read_argument(r, "nodes", 1) > 1;
    int n = 0;
    if (!list)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < barrier_nsettings; i++)
        if (setting_is_usable(r, &barrier_settings[i], several)) {
            list[n].setting = i;
            candidate_open_comm(r, &list[n++]);
        }
    for (int i = 0; i < n; i++)
        rank_measure_operations(r, &list[i]);
    rank_measure(r, list, n);
    /* The two counters show whether frames used RDMA rings, the send/receive channel, or both. */
    ib_report_figure(r, IB_COUNT, ib_sum_over_ranks(r, ib_counter("ib_frames_sent")), "frames");
    ib_report_figure(r, IB_COUNT, ib_sum_over_ranks(r, ib_counter("ib_ring_frames_sent")), "ring_frames");
    rank_select_setting(r, 0);
    for (int i = 0; i < n; i++) {
        const char *label = barrier_setting_label(list[i].setting);
        ib_report_figure(r, IB_TIME, candidate_median(&list[i], 0, 1) * 1e6, "us/%s", label);
        ib_report_figure(r, IB_TIME, candidate_median(&list[i], 0, 2) * 1e6, "choose/%s", label);
        ib_report_figure(r, IB_TIME, candidate_median(&list[i], 1, 2) * 1e6, "judge/%s", label);
        if (list[i].comm != MPI_COMM_WORLD)
            MPI_Comm_free(&list[i].comm);
    }
    free(list);
}

const struct ib_topic barrier_topic = {
    .name = "barrier", .doc = "all barrier algorithms", .rank = rank_run_study};
