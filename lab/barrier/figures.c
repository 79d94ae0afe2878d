/* figures.c: figures that accompany the measurements of the barrier benchmark: number of operations of each
 * schedule, predictions of [Hoefler05 figs. 2.38 and 2.39], charts of the measured times.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "barrier.h"

bool barrier_count_operations(const struct barrier_setting *setting, int ranks, struct barrier_counts *out)
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
        out->max_messages = sends > out->max_messages ? sends : out->max_messages;
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

/* Draws the measured times: shapes with one rank a node over the number of nodes, or shapes with several
 * ranks a node over the number of ranks. */
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
        chart_line(c, barrier_setting_label(figures_find_setting(measured_lines[l])));
    for (int i = 0; i < s->nshapes; i++) {
        const struct barrier_shape *shape = &s->shape[i];
        if ((shape->ranks == shape->nodes) != one_each || shape->nodes < 2 ||
            (c->points > 0 && shape->ranks <= c->x[c->points - 1]))
            continue;
        c->x[c->points] = shape->ranks;
        for (int l = 0; l < c->lines; l++)
            c->y[l][c->points] = shape->figures[figures_find_setting(measured_lines[l])].us;
        c->points++;
    }
}

static double shape_find_lowest_us(const struct barrier_shape *s,
                                   bool (*is_kind)(const struct barrier_setting *))
{
    double best = NAN;
    for (int i = 1; i < barrier_nsettings; i++)
        if (is_kind(&barrier_settings[i]) && !isnan(s->figures[i].us))
            best = isnan(best) ? s->figures[i].us : fmin(best, s->figures[i].us);
    return best;
}

static bool setting_uses_multicast(const struct barrier_setting *s)
{
    return strcmp(s->algorithm, "multicast") == 0;
}

bool barrier_uses_network(const struct barrier_setting *s)
{
    return s->algorithm && strcmp(s->algorithm, "wires") == 0;
}

/* Whether the barrier uses messages and therefore has a schedule. */
static bool setting_uses_messages(const struct barrier_setting *s)
{
    const struct coll_algorithm *a = algorithm_find(COLL_BARRIER, s->algorithm);
    return a && a->generate && !s->by_node;
}

static bool setting_uses_rdma(const struct barrier_setting *s)
{
    return strcmp(s->algorithm, "rdma") == 0;
}

/* Whether the setting is the pairwise barrier by RDMA writes, the baseline of [Hoefler05 4.4]. */
static bool setting_uses_pairwise_rdma(const struct barrier_setting *s)
{
    return strcmp(s->algorithm, "rdma_pairwise") == 0;
}

static bool setting_uses_switch(const struct barrier_setting *s)
{
    return strcmp(s->algorithm, "switch") == 0;
}

/* Chart of [Hoefler05 chapter 4]: barriers by messages, by InfiniBand's RDMA and by hardware. */
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
        c->y[software][c->points] = shape_find_lowest_us(&s->shape[i], setting_uses_messages);
        c->y[rdma][c->points] = shape_find_lowest_us(&s->shape[i], setting_uses_rdma);
        c->y[pairs][c->points] = shape_find_lowest_us(&s->shape[i], setting_uses_pairwise_rdma);
        c->y[multicast][c->points] = shape_find_lowest_us(&s->shape[i], setting_uses_multicast);
        c->y[hardware][c->points] = shape_find_lowest_us(&s->shape[i], setting_uses_switch);
        c->y[wires][c->points++] = shape_find_lowest_us(&s->shape[i], barrier_uses_network);
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
        if (!isnan(s->figures[i].choose) && s->figures[i].choose < s->figures[*best].choose &&
            !barrier_uses_network(&barrier_settings[i]))
            *best = i;
    return s->figures[0].judge / s->figures[*best].judge;
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
