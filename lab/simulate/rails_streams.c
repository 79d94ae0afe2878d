/* rails_streams.c: adaptive striping over rails of 1 GB/s and 250 MB/s, and over a rail that another program
 * uses for some time [Liu04 8.3.3, figures 8.16 to 8.19].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "rails.h"

enum scheme { EVEN, FOUR_TO_ONE, ADAPTIVE, SCHEMES };
static const char *const scheme_names[] = {"even", "4:1", "adaptive"};

static struct stream_order stream_make_order(double second, bool bidirectional, int window, uint64_t bytes,
                                             double length)
{
    /* at least 60 messages; the weights settle during the first dozen */
    double message_us = (double)bytes / 500 + 5;
    return (struct stream_order){.machine = &stream_machine,
                                 .scale = {1, second},
                                 .weight = {1, 1},
                                 .bidirectional = bidirectional,
                                 .alpha = 0.5,
                                 .bytes = bytes,
                                 .smallest = 8192,
                                 .window = window,
                                 .warm_us = message_us * (12 + 2 * window),
                                 .us = message_us * 60 * length,
                                 .disturbed_rail = -1};
}

static struct stream_report stream_run_scheme(struct stream_order o, enum scheme scheme, uint64_t *events)
{
    struct stream_report r;
    if (scheme == FOUR_TO_ONE)
        o.weight[0] = 4;
    o.adaptive = scheme == ADAPTIVE;
    stream_simulate(&o, &r);
    *events += r.events;
    return r;
}

/* Searches the best fixed weights; *share is the first rail's part. */
static double stream_search_fixed_weights(struct stream_order o, double *share, uint64_t *events)
{
    double best = 0;
    for (double w = 0.50; w < 0.96; w += 0.01) {
        o.weight[0] = w;
        o.weight[1] = 1 - w;
        double rate = stream_run_scheme(o, EVEN, events).rate;
        if (rate > best) {
            best = rate;
            *share = w;
        }
    }
    return best;
}

/* Plots latency of one message at a time, or bandwidth of a window of messages, over the message size. */
static void stream_plot_over_size(struct chart *c, bool bidirectional, bool latency, double length,
                                  uint64_t *events)
{
    c->x_name = "message";
    c->x_bytes = c->by_factors = true;
    c->y_name = latency ? "latency in us" : "bandwidth in GB/s";
    c->format = latency ? "%.1f" : "%.3f";
    c->points = 0;
    for (uint64_t bytes = 16384; bytes <= 4 << 20; bytes *= 4)
        c->x[c->points++] = (double)bytes;
    for (int scheme = 0; scheme < SCHEMES; scheme++) {
        int line = chart_line(c, scheme_names[scheme]);
        for (int i = 0; i < c->points; i++) {
            struct stream_order o =
                stream_make_order(0.25, bidirectional, latency ? 1 : 16, (uint64_t)c->x[i], length);
            struct stream_report r = stream_run_scheme(o, (enum scheme)scheme, events);
            c->y[line][i] = latency ? r.latency_us : r.rate;
        }
    }
    if (latency)
        return;
    int line = chart_line(c, "best weights");
    for (int i = 0; i < c->points; i++) {
        double share = 0;
        c->y[line][i] = stream_search_fixed_weights(
            stream_make_order(0.25, bidirectional, 16, (uint64_t)c->x[i], length / 2), &share, events);
    }
}

static struct stream_order stream_make_disturbed_order(double length)
{
    struct stream_order o = stream_make_order(1, false, 16, 1 << 20, 1);
    o.us = 640000 * length;
    o.disturbed_rail = 1;
    o.disturbed = 0.5;
    o.disturbed_from_us = o.us * 0.3;
    o.disturbed_to_us = o.us * 0.65;
    return o;
}

bool stream_make_figure(const char *id, double length, struct chart *c, uint64_t *events)
{
    *c = (struct chart){.id = id};
    if (strcmp(id, "8.16") == 0) {
        c->title = "latency over rails of 1 and 0.25 GB/s";
        stream_plot_over_size(c, false, true, length, events);
    } else if (strcmp(id, "8.17") == 0) {
        c->title = "bandwidth over rails of 1 and 0.25 GB/s";
        stream_plot_over_size(c, false, false, length, events);
    } else if (strcmp(id, "8.18") == 0) {
        c->title = "bandwidth in both directions, buses of 1 GB/s for both directions together";
        stream_plot_over_size(c, true, false, length, events);
    } else if (strcmp(id, "8.19") == 0) {
        struct stream_order o = stream_make_disturbed_order(length);
        c->title = "rails of 1 GB/s; half of the second is taken for a while";
        c->x_name = "ms";
        c->y_name = "bandwidth in GB/s";
        c->format = "%.2f";
        c->points = STREAM_SLICES;
        for (int scheme = EVEN; scheme < SCHEMES; scheme += ADAPTIVE) {
            int line = chart_line(c, scheme_names[scheme]);
            struct stream_report r = stream_run_scheme(o, (enum scheme)scheme, events);
            for (int i = 0; i < STREAM_SLICES; i++) {
                c->x[i] = (i + 1) * o.us / STREAM_SLICES / 1000;
                c->y[line][i] = r.curve[i];
            }
        }
    } else {
        return false;
    }
    return true;
}

static double curve_mean(const double *curve, int from, int count)
{
    double sum = 0;
    for (int i = from; i < from + count; i++)
        sum += curve[i];
    return sum / count;
}

/* Time in ms from the end of the disturbance until the rate is back at 95 % of its former value. */
static double stream_recovery_ms(const struct stream_order *o, const struct stream_report *r)
{
    double before = curve_mean(r->curve, 5, 10), slice = o->us / STREAM_SLICES;
    int back = (int)(o->disturbed_to_us / slice);
    for (int i = back; i + 1 < STREAM_SLICES; i++)
        if ((r->curve[i] + r->curve[i + 1]) / 2 > 0.95 * before)
            return (i + 1 - o->disturbed_to_us / slice) * slice / 1000;
    return INFINITY;
}

int stream_check_statements(double length, struct statement *out, int room, uint64_t *events)
{
    int n = 0;
    for (int both = 0; both < 2 && n < room; both++) {
        struct stream_order o = stream_make_order(0.25, both, 16, 1 << 20, length);
        double share = 0, best = stream_search_fixed_weights(o, &share, events),
               even = stream_run_scheme(o, EVEN, events).rate,
               four = stream_run_scheme(o, FOUR_TO_ONE, events).rate,
               adaptive = stream_run_scheme(o, ADAPTIVE, events).rate;
        struct statement *s = &out[n++];
        s->where = both ? "8.3.3, fig 8.18" : "8.3.3, fig 8.17";
        s->claim = both ? "in both directions on shared buses adaptive significantly outperforms 4:1 (2:1 "
                          "would be best)"
                        : "adaptive significantly outperforms even striping and is comparable with 4:1";
        snprintf(s->found, sizeof(s->found),
                 "even %.2f, 4:1 %.2f, adaptive %.2f, best weights %.2f GB/s (%.0f:%.0f)", even, four,
                 adaptive, best, 100 * share, 100 - 100 * share);
        s->agrees = adaptive > 0.95 * best && adaptive > 1.1 * (both ? four : even);
    }
    if (n < room) {
        struct stream_order o = stream_make_disturbed_order(length);
        struct stream_report r = stream_run_scheme(o, ADAPTIVE, events);
        struct statement *s = &out[n++];
        double back = stream_recovery_ms(&o, &r);
        s->where = "8.3.3, fig 8.19";
        s->claim =
            "adaptive follows when another program takes a part of a rail, and comes back when it ends";
        double during = curve_mean(r.curve, 26, 12);
        snprintf(s->found, sizeof(s->found), "%.2f GB/s before, %.2f during, back to 95 %% within %.0f ms",
                 curve_mean(r.curve, 5, 10), during, back);
        s->agrees = during > 1.4 && back < 300;
    }
    return n;
}
