/* figures.c: what the benchmark shows beside its measurements: the number of operations in each schedule, the
 * predictions of [Hoefler05 figs. 2.38 and 2.39], and charts of the measured times.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "barrier.h"

bool barrier_count(const struct barrier_setting *setting, int ranks, struct barrier_counts *out)
{
    const struct coll_algorithm *a =
        setting->algorithm ? algorithm_find(COLL_BARRIER, setting->algorithm) : NULL;
    *out = (struct barrier_counts){0};
    if (!a || !a->generate || setting->by_node)
        return false;
    struct coll_shape shape = {
        .kind = COLL_BARRIER, .size = ranks, .count = 1, .commutative = true, .adjacent = true};
    for (int i = 0; i < COLL_PARAMETERS; i++)
        shape.parameter[i] = setting->parameter[i] ? setting->parameter[i] : a->parameter[i].preset;
    for (shape.rank = 0; shape.rank < ranks; shape.rank++) {
        struct sched s;
        long sends = 0, rounds = 0;
        sched_init(&s);
        a->generate(&shape, &s);
        for (uint32_t i = 0; i < s.count; i++) {
            sends += s.steps[i].kind == STEP_SEND;
            rounds += s.steps[i].kind == STEP_FENCE;
        }
        out->messages += sends;
        out->most = sends > out->most ? sends : out->most;
        out->rounds = rounds > out->rounds ? rounds : out->rounds;
        sched_free(&s);
    }
    return true;
}

static const char *const measured_lines[] = {"",         "central",   "combining:n=4", "tournament",
                                             "bst",      "butterfly", "dissemination", "nway:n=2",
                                             "rdma:n=1", "switch",    "multicast",     "wires"};

static int figures_find_setting(const char *text)
{
    for (int i = 0; i < barrier_nsettings; i++)
        if (strcmp(barrier_settings[i].text, text) == 0)
            return i;
    return 0;
}

/* The chart with one rank a node over the number of nodes, or with several over the number of ranks. */
void barrier_chart_measured(const struct barrier_study *s, bool one_each, struct chart *c)
{
    *c = (struct chart){.id = one_each ? "nodes" : "ranks",
                        .title = one_each ? "barriers measured, one rank a node"
                                          : "barriers measured, several ranks a node",
                        .x_name = one_each ? "nodes" : "ranks",
                        .y_name = "us",
                        .format = "%.1f",
                        .by_factors = true};
    for (size_t l = 0; l < sizeof(measured_lines) / sizeof(measured_lines[0]); l++)
        chart_line(c, barrier_label(figures_find_setting(measured_lines[l])));
    for (int i = 0; i < s->nshapes; i++) {
        const struct barrier_shape *shape = &s->shape[i];
        if ((shape->ranks == shape->nodes) != one_each || shape->nodes < 2 ||
            (c->points > 0 && shape->ranks <= c->x[c->points - 1]))
            continue;
        c->x[c->points] = shape->ranks;
        for (int l = 0; l < c->lines; l++)
            c->y[l][c->points] = shape->of[figures_find_setting(measured_lines[l])].us;
        c->points++;
    }
}

static double best_of(const struct barrier_shape *s, bool (*is_kind)(const struct barrier_setting *))
{
    double best = NAN;
    for (int i = 1; i < barrier_nsettings; i++)
        if (is_kind(&barrier_settings[i]) && !isnan(s->of[i].us))
            best = isnan(best) ? s->of[i].us : fmin(best, s->of[i].us);
    return best;
}

static bool is_multicast(const struct barrier_setting *s)
{
    return strcmp(s->algorithm, "multicast") == 0;
}

bool barrier_is_wires(const struct barrier_setting *s)
{
    return s->algorithm && strcmp(s->algorithm, "wires") == 0;
}

/* Whether the barrier uses messages, that is, has a schedule. */
static bool is_software(const struct barrier_setting *s)
{
    const struct coll_algorithm *a = algorithm_find(COLL_BARRIER, s->algorithm);
    return a && a->generate && !s->by_node;
}

static bool is_rdma(const struct barrier_setting *s)
{
    return strcmp(s->algorithm, "rdma") == 0;
}

/* The barrier by RDMA that [Hoefler05 4.4] compares with. */
static bool is_pairwise_rdma(const struct barrier_setting *s)
{
    return strcmp(s->algorithm, "rdma_pairwise") == 0;
}

static bool is_switch(const struct barrier_setting *s)
{
    return strcmp(s->algorithm, "switch") == 0;
}

/* Chapter 4: software, InfiniBand, hardware. */
void barrier_chart_kinds(const struct barrier_study *s, struct chart *c)
{
    *c = (struct chart){.id = "4",
                        .title = "the best by messages, RDMA, multicast, switch and wires, one rank a node",
                        .x_name = "nodes",
                        .y_name = "us",
                        .format = "%.1f",
                        .by_factors = true};
    const int software = chart_line(c, "messages"), rdma = chart_line(c, "RDMA"),
              pairs = chart_line(c, "pairwise RDMA"), multicast = chart_line(c, "multicast"),
              hardware = chart_line(c, "switch"), wires = chart_line(c, "barrier network");
    for (int i = 0; i < s->nshapes; i++) {
        if (s->shape[i].ranks != s->shape[i].nodes)
            continue;
        c->x[c->points] = s->shape[i].nodes;
        c->y[software][c->points] = best_of(&s->shape[i], is_software);
        c->y[rdma][c->points] = best_of(&s->shape[i], is_rdma);
        c->y[pairs][c->points] = best_of(&s->shape[i], is_pairwise_rdma);
        c->y[multicast][c->points] = best_of(&s->shape[i], is_multicast);
        c->y[hardware][c->points] = best_of(&s->shape[i], is_switch);
        c->y[wires][c->points++] = best_of(&s->shape[i], barrier_is_wires);
    }
}

void barrier_chart_lop(int times, struct chart *c)
{
    static const char *const names[] = {"central", "combining", "tournament", "dissemination", "nway"};
    *c = (struct chart){.id = times > 2 ? "2.38 right" : "2.38 left",
                        .title = times > 2 ? "LoP predictions for RDMA write inline, cnt = 5000"
                                           : "LoP predictions for RDMA write inline, cnt = 2",
                        .x_name = "nodes",
                        .y_name = "us",
                        .format = "%.1f"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        chart_line(c, names[i]);
    for (c->points = 0; c->points < 16; c->points++) {
        c->x[c->points] = 4 + 4 * c->points;
        for (int l = 0; l < c->lines; l++)
            c->y[l][c->points] =
                model_barrier_lop(&model_paper_inline, algorithm_find(COLL_BARRIER, names[l]), NULL,
                                  (int)c->x[c->points], times);
    }
}

void barrier_chart_nway(bool rounds, struct chart *c)
{
    static const char *const names[] = {"16 nodes", "64 nodes", "256 nodes"};
    static const int nodes[] = {16, 64, 256};
    *c = (struct chart){.id = rounds ? "2.39 left" : "2.39 right",
                        .title = rounds ? "rounds of the n-way dissemination"
                                        : "predicted time of the n-way dissemination (LoP, cnt = 5000)",
                        .x_name = "n",
                        .y_name = rounds ? "rounds" : "us",
                        .format = rounds ? "%.0f" : "%.1f"};
    for (int l = 0; l < 3; l++)
        chart_line(c, names[l]);
    for (int n = 1; n <= 16; n++) {
        c->x[c->points] = n;
        for (int l = 0; l < 3; l++)
            c->y[l][c->points] =
                rounds ? model_log_up(n + 1, nodes[l])
                       : model_barrier_lop(&model_paper_inline, algorithm_find(COLL_BARRIER, "nway"),
                                           (int[COLL_PARAMETERS]){n}, nodes[l], 5000);
        c->points++;
    }
}

double barrier_regret(const struct barrier_shape *s, int *best)
{
    *best = 0;
    for (int i = 0; i < barrier_nsettings; i++)
        if (!isnan(s->of[i].choose) && s->of[i].choose < s->of[*best].choose &&
            !barrier_is_wires(&barrier_settings[i]))
            *best = i;
    return s->of[0].judge / s->of[*best].judge;
}

double barrier_regret_mean(const struct barrier_study *s)
{
    double logs = 0;
    int n = 0, best;
    for (int i = 0; i < s->nshapes; i++) {
        const double regret = barrier_regret(&s->shape[i], &best);
        if (isnan(regret))
            continue;
        logs += log(regret);
        n++;
    }
    return n ? exp(logs / n) : NAN;
}
