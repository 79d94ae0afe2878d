/* unequal.c: rails of 1 GB/s and 250 MB/s: even stripes, weights of 4:1, adaptive stripes, and the best fixed
 * weights found by search [Liu04 figs. 8.16-8.17]; both directions at the same time, with a bus of 1 GB/s at
 * each adapter [Liu04 fig. 8.18].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rails.h"

#include <math.h>

enum { EVEN, WEIGHTED, ADAPTIVE, POLICIES };
static const char *const policies[POLICIES] = {STRIPE_EVEN, STRIPE_WEIGHTED "4,1", STRIPE_ADAPTIVE};
static const char *const names[POLICIES] = {"even", "weights 4:1", "adaptive"};

/* Fixed weights that the search tries. */
static const char *const fixed[] = {"1,1", "3,2", "2,1", "3,1", "7,2", "4,1", "9,2", "6,1", "9,1"};
enum { NFIXED = sizeof(fixed) / sizeof(fixed[0]) };

static struct ib_job unequal_make_job(const char *hcas, const char *settings)
{
    return (struct ib_job){.topic = "unequal", .ranks = 2, .nodes = 2, .settings = settings, .hcas = hcas};
}

/* Finds the fixed weights with the highest value of a figure at one message size. */
static double unequal_search_weights(struct ib_driver *d, const char *hcas, const char *figure, long bytes,
                                     const char **best)
{
    const char *others = figure[1] == 'i' ? "bw=0" : "bibw=0";
    double most = NAN;
    for (int i = 0; i < NFIXED; i += d->quick ? 2 : 1) {
        char settings[128];
        snprintf(settings, sizeof(settings), STRIPE_WEIGHTED "%s", fixed[i]);
        struct ib_job job = unequal_make_job(hcas, settings);
        struct ib_figures *f = ib_run_job(d, &job, "from=%ld to=%ld latency=0 %s", bytes, bytes, others);
        double value = ib_find_figure(f, "%s.%ld", figure, bytes);
        if (!(value <= most)) {
            most = value;
            *best = fixed[i];
        }
        ib_figures_free(f);
    }
    return most;
}

static void unequal_print_table(struct ib_driver *d, const char *title, const char *paper,
                                struct ib_figures *const *f, const char *figure, const char *unit,
                                double best, const char *weights)
{
    long from = 1 << 16, to = d->quick ? 1 << 20 : 4 << 20;
    bool time = figure[0] == 'l';
    struct ib_table *t = ib_table_open(d, title, paper);
    ib_table_add_column(t, "bytes");
    for (int w = 0; w < POLICIES; w++)
        ib_table_add_column(t, "%s, %s", names[w], unit);
    ib_table_add_column(t, "adaptive against even");
    for (long bytes = from; bytes <= to; bytes *= 4) {
        double v[POLICIES];
        ib_table_add_cell(t, bytes < 1 << 20 ? "%ldK" : "%ldM", bytes < 1 << 20 ? bytes >> 10 : bytes >> 20);
        for (int w = 0; w < POLICIES; w++) {
            v[w] = ib_find_figure(f[w], "%s.%ld", figure, bytes);
            ib_table_add_number(t, v[w], 0);
        }
        ib_table_add_cell(t, "%.2f", v[ADAPTIVE] / v[EVEN]);
    }
    if (!time) {
        double a = ib_find_figure(f[ADAPTIVE], "%s.%ld", figure, to);
        ib_table_add_remark(
            t,
            "the best fixed weights are %s: %.0f MB/s; adaptive reaches %.0f %% of it (the aim: 95) at the "
            "largest size.",
            weights, best, 100 * a / best);
        ib_table_add_remark(t, "adaptive against weights of 4:1: %.2f times.",
                            a / ib_find_figure(f[WEIGHTED], "%s.%ld", figure, to));
    }
    rails_print_second_share(t, f[ADAPTIVE]);
    ib_table_close(t);
}

static void unequal_print_tables(struct ib_driver *d)
{
    static const char *const with_bus = RAILS_ODD ",bus=1GB/s";
    long to = d->quick ? 1 << 20 : 4 << 20;
    const char *weights = "", *weights_bus = "";
    struct ib_figures *f[POLICIES], *b[POLICIES];
    for (int w = 0; w < POLICIES; w++) {
        struct ib_job plain = unequal_make_job(RAILS_ODD, policies[w]),
                      bus = unequal_make_job(with_bus, policies[w]);
        f[w] = ib_run_job(d, &plain, "from=65536 to=%ld bibw=0", to);
        b[w] = ib_run_job(d, &bus, "from=65536 to=%ld latency=0 bw=0", to);
    }
    double best = unequal_search_weights(d, RAILS_ODD, "bw", to, &weights),
           best_bus = unequal_search_weights(d, with_bus, "bibw", to, &weights_bus);
    unequal_print_table(d, "Latency, rails of 1 GB/s and 250 MB/s [Liu04 fig. 8.16]",
                        "adaptive is far better than even, and comparable with weights of 4:1.", f, "latency",
                        "us", 0, "");
    unequal_print_table(d, "Bandwidth, rails of 1 GB/s and 250 MB/s [Liu04 fig. 8.17]",
                        "adaptive is far better than even, and comparable with weights of 4:1.", f, "bw",
                        "MB/s", best, weights);
    unequal_print_table(
        d, "Bidirectional bandwidth, the same rails, each adapter behind a bus of 1 GB/s [Liu04 fig. 8.18]",
        "adaptive is significantly better than 4:1, since with the bus the best weights are 2:1.", b, "bibw",
        "MB/s", best_bus, weights_bus);
    for (int w = 0; w < POLICIES; w++) {
        ib_figures_free(f[w]);
        ib_figures_free(b[w]);
    }
}

const struct ib_topic rails_unequal = {
    .name = "unequal",
    .doc = "rails of 1 GB/s and 250 MB/s: even, weighted, adaptive (figs. 8.16-8.18)",
    .rank = rails_run_traffic,
    .tables = unequal_print_tables,
};
