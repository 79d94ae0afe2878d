/* rails_study.c: the runs of the load study [Coll01 5], each simulated once, and its figures.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rails.h"

struct study_run {
    struct study_key key;
    struct traffic_report report;
};

const struct study_line study_lines[] = {
    [LINE_BASIC] = {"basic", ALLOC_BASIC, 0, 0},
    [LINE_LOCAL] = {"local", ALLOC_LOCAL, 0, 0},
    [LINE_LOCAL_STRIPED] = {"local striped", ALLOC_LOCAL, 1, 0},
    [LINE_DYNAMIC] = {"dynamic", ALLOC_DYNAMIC, 0, 0},
    [LINE_DYNAMIC_STRIPED] = {"dynamic striped", ALLOC_DYNAMIC, 1, 0},
};

static const double loads[] = {0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5};
enum { LOADS = sizeof(loads) / sizeof(loads[0]) };
#define FLOOD 0.7 /* more than any policy accepts: the buses permit at most half */

const char *const figure_ids[] = {"3",  "4",  "5",  "6",  "7",    "8",    "9",    "10",   "11", "12",
                                  "13", "14", "15", "16", "8.16", "8.17", "8.18", "8.19", NULL};

struct study_key study_make_key(const struct study_line *line, int nodes, int rails, double kib, double load)
{
    return (struct study_key){.policy = line->policy,
                              .nodes = nodes,
                              .rails = rails,
                              .ratio = line->ratio,
                              .kib = kib,
                              .load = load,
                              .shortest_kib = line->shortest_kib};
}

static bool study_keys_are_equal(const struct study_key *a, const struct study_key *b)
{
    return a->policy == b->policy && a->nodes == b->nodes && a->rails == b->rails && a->ratio == b->ratio &&
           a->kib == b->kib && a->load == b->load && a->shortest_kib == b->shortest_kib;
}

static void study_print_progress(struct study *s)
{
    if (!s->progress.program)
        progress_start(&s->progress, "sim rails");
    if (!s->quiet)
        progress_report(&s->progress, 0, 0, "%zu runs, %.1f million events", s->runs_count,
                        (double)s->events * 1e-6);
}

static struct traffic_report study_simulate_run(struct study *s, struct study_key key)
{
    struct machine m = s->machine;
    struct traffic_report r;
    m.rails = key.rails;
    /* long enough for some tens of messages of each process, at the rate of the adapter's processor if that
     * is slower */
    double message_us = key.kib * 1024 / m.link_rate / 1000 + 6 * s->control_ns / 1000;
    if (key.load < 0.3) /* a low load creates fewer messages in the same time */
        message_us *= 0.3 / key.load;
    /* fewer nodes send fewer messages, so the run is longer */
    double more = key.nodes < s->nodes ? (double)s->nodes / key.nodes : 1;
    struct traffic_order o = {.machine = &m,
                              .nodes = key.nodes,
                              .per_node = 4,
                              .policy = key.policy,
                              .ratio = key.ratio,
                              .shortest = (uint64_t)key.shortest_kib * 1024,
                              .mean_bytes = key.kib * 1024,
                              .load = key.load,
                              .control_ns = s->control_ns,
                              .warm_us = 15 * s->length * message_us,
                              .us = 50 * s->length * message_us * more,
                              .seed = s->seed};
    traffic_simulate(&o, &r);
    return r;
}

struct traffic_report study_report_of_run(struct study *s, struct study_key key)
{
    for (size_t i = 0; i < s->runs_count; i++)
        if (study_keys_are_equal(&s->runs[i].key, &key))
            return s->runs[i].report;
    if (s->runs_count == s->runs_capacity) {
        size_t room = s->runs_capacity ? 2 * s->runs_capacity : 256;
        struct study_run *larger = realloc(s->runs, room * sizeof(*larger));
        if (!larger) {
            fprintf(stderr, "fishplate-lab sim rails: out of memory after %zu runs.\n", s->runs_count);
            exit(1);
        }
        s->runs = larger;
        s->runs_capacity = room;
    }
    study_print_progress(s);
    struct traffic_report r = study_simulate_run(s, key);
    if (r.failed) {
        fprintf(stderr, "fishplate-lab sim rails: %d nodes, %d rails: %s.\n", key.nodes, key.rails, r.failed);
        exit(1);
    }
    s->events += r.events;
    s->runs[s->runs_count++] = (struct study_run){key, r};
    return r;
}

double study_max_accepted(struct study *s, struct study_key key)
{
    key.load = FLOOD;
    return study_report_of_run(s, key).accepted;
}

static bool study_report_is_saturated(const struct traffic_report *r)
{
    return r->accepted < 0.95 * r->offered;
}

double study_saturation(struct study *s, struct study_key key)
{
    double low = 0, high = 0.5;
    for (int step = 0; step < 6; step++) {
        key.load = (low + high) / 2;
        struct traffic_report r = study_report_of_run(s, key);
        if (study_report_is_saturated(&r))
            high = key.load;
        else
            low = key.load;
    }
    return high;
}

void study_free(struct study *s)
{
    free(s->runs);
    s->runs = NULL;
}

/* ---- figures ---- */

static void chart_set_x(struct chart *c, const double *x, int count)
{
    memcpy(c->x, x, (size_t)count * sizeof(*x));
    c->points = count;
}

/* Accepted load, or latency while the network is not saturated, over the offered load. */
static void study_plot_over_load(struct study *s, struct chart *c, const struct study_line *lines, int count,
                                 double kib, bool latency)
{
    c->x_name = "offered";
    c->y_name = latency ? "latency in cycles" : "accepted load";
    c->format = latency ? "%.0f" : "%.3f";
    chart_set_x(c, loads, LOADS);
    for (int l = 0; l < count; l++) {
        int line = chart_line(c, lines[l].name);
        for (int i = 0; i < LOADS; i++) {
            struct traffic_report r =
                study_report_of_run(s, study_make_key(&lines[l], s->nodes, 4, kib, loads[i]));
            c->y[line][i] = !latency ? r.accepted : study_report_is_saturated(&r) ? NAN : r.latency_us * 1000;
        }
    }
}

/* Compares thresholds of the hybrid policy with the two policies that it combines. */
static void study_plot_hybrids(struct study *s, struct chart *c, double ratio, bool latency)
{
    const struct study_line lines[] = {{"basic", ALLOC_BASIC, 0, 0},
                                       {"dynamic", ALLOC_DYNAMIC, ratio, 0},
                                       {"hybrid 1 KiB", ALLOC_HYBRID, ratio, 1},
                                       {"hybrid 4 KiB", ALLOC_HYBRID, ratio, 4},
                                       {"hybrid 8 KiB", ALLOC_HYBRID, ratio, 8},
                                       {"hybrid 16 KiB", ALLOC_HYBRID, ratio, 16},
                                       {"hybrid 32 KiB", ALLOC_HYBRID, ratio, 32}};
    study_plot_over_load(s, c, lines, sizeof(lines) / sizeof(lines[0]), 32, latency);
}

static double study_latency(struct study *s, struct study_key key)
{
    struct traffic_report r = study_report_of_run(s, key);
    return study_report_is_saturated(&r) ? NAN : r.latency_us * 1000;
}

enum what { MOST, LATENCY, SATURATION };

/* Plots one value (`what`) for each size, number of nodes or number of rails. */
static void study_plot_value(struct study *s, struct chart *c, const int *lines, int count, enum what what,
                             double nodes, double rails, double kib)
{
    c->y_name = what == MOST      ? "maximum accepted load"
                : what == LATENCY ? "latency in cycles"
                                  : "saturation point";
    c->format = what == LATENCY ? "%.0f" : "%.3f";
    for (int l = 0; l < count; l++) {
        int line = chart_line(c, study_lines[lines[l]].name);
        for (int i = 0; i < c->points; i++) {
            double x = c->x[i];
            struct study_key key =
                study_make_key(&study_lines[lines[l]], (int)(nodes > 0 ? nodes : x),
                               (int)(rails > 0 ? rails : x), kib > 0 ? kib : x / 1024, 0.15);
            c->y[line][i] = what == MOST      ? study_max_accepted(s, key)
                            : what == LATENCY ? study_latency(s, key)
                                              : study_saturation(s, key);
        }
    }
}

static void study_make_figure_9(struct study *s, struct chart *c)
{
    static const char *const names[2][3] = {{"basic, 1 rail", "basic, 2 rails", "basic, 4 rails"},
                                            {"dynamic, 1 rail", "dynamic, 2", "dynamic, 4"}};
    c->y_name = "maximum accepted load";
    c->format = "%.3f";
    for (int d = 0; d < 2; d++)
        for (int r = 0; r < 3; r++) {
            int line = chart_line(c, names[d][r]);
            const struct study_line *policy = &study_lines[d ? LINE_DYNAMIC_STRIPED : LINE_BASIC];
            for (int i = 0; i < c->points; i++)
                c->y[line][i] = study_max_accepted(s, study_make_key(policy, 32, 1 << r, c->x[i] / 1024, 0));
        }
}

static const int all_lines[] = {LINE_BASIC, LINE_LOCAL, LINE_LOCAL_STRIPED, LINE_DYNAMIC,
                                LINE_DYNAMIC_STRIPED};
static const int three_lines[] = {LINE_BASIC, LINE_LOCAL, LINE_DYNAMIC};

static void chart_set_sizes_axis(struct chart *c)
{
    static const double sizes[] = {1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144};
    chart_set_x(c, sizes, sizeof(sizes) / sizeof(sizes[0]));
    c->x_name = "mean size";
    c->x_bytes = c->by_factors = true;
}

static void chart_set_rails_axis(struct chart *c)
{
    static const double rails[] = {1, 2, 3, 4, 5, 6, 7};
    chart_set_x(c, rails, 7);
    c->x_name = "rails";
}

bool study_make_figure(struct study *s, const char *id, struct chart *c)
{
    static const double nodes[] = {32, 64, 128};
    if (strchr(id, '.'))
        return stream_make_figure(id, s->length, c, &s->events);
    *c = (struct chart){.id = id};
    switch (atoi(id)) {
    case 3:
    case 4:
        c->title = "messages of 4 KiB on average, 4 rails";
        study_plot_over_load(s, c, study_lines, STUDY_LINES, 4, atoi(id) == 4);
        return true;
    case 5:
    case 6:
        c->title = "messages of 64 KiB on average, 4 rails";
        study_plot_over_load(s, c, study_lines, STUDY_LINES, 64, atoi(id) == 6);
        return true;
    case 7:
        c->title = "latency by size at an offered load of 0.15";
        chart_set_sizes_axis(c);
        study_plot_value(s, c, all_lines, 5, LATENCY, s->nodes, 4, 0);
        return true;
    case 8:
        c->title = "scaling of nodes, 4 rails, 32 KiB";
        chart_set_x(c, nodes, 3);
        c->x_name = "nodes";
        c->by_factors = true;
        study_plot_value(s, c, three_lines, 3, MOST, 0, 4, 32);
        return true;
    case 9:
        c->title = "sizes and rails, 32 nodes";
        chart_set_sizes_axis(c);
        study_make_figure_9(s, c);
        return true;
    case 10:
        c->title = "scaling of rails, 32 nodes, 32 KiB";
        chart_set_rails_axis(c);
        study_plot_value(s, c, all_lines, 5, MOST, 32, 0, 32);
        return true;
    case 11:
        c->title = "latency by rails at an offered load of 0.15, 32 nodes, 32 KiB";
        chart_set_rails_axis(c);
        study_plot_value(s, c, all_lines, 5, LATENCY, 32, 0, 32);
        return true;
    case 12:
        c->title = "saturation point by size, 4 rails";
        chart_set_sizes_axis(c);
        study_plot_value(s, c, three_lines, 3, SATURATION, s->nodes, 4, 0);
        return true;
    case 13:
    case 14:
        c->title = "hybrid without stripes, 32 KiB, 4 rails";
        study_plot_hybrids(s, c, 0, atoi(id) == 14);
        return true;
    case 15:
    case 16:
        c->title = "hybrid with stripes, 32 KiB, 4 rails";
        study_plot_hybrids(s, c, 1, atoi(id) == 16);
        return true;
    default:
        return false;
    }
}
