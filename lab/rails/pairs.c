/* pairs.c: one and two rails of 1 GB/s between two nodes: one process on each node [Liu04 figs. 8.4-8.7], and
 * two processes on each node, striping compared with binding [Liu04 figs. 8.8-8.9].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rails.h"

#include <math.h>
#include <stdlib.h>

static const char *pairs_format_size(long bytes, char *out, size_t room)
{
    if (bytes >= 1 << 20)
        snprintf(out, room, "%ldM", bytes >> 20);
    else if (bytes >= 1 << 10)
        snprintf(out, room, "%ldK", bytes >> 10);
    else
        snprintf(out, room, "%ld", bytes);
    return out;
}

struct kind {
    const char *title, *paper, *figure, *unit;
    long from, to;
    int digits;
    double wanted; /* the paper's gain of two rails over one at the largest size */
};

/* Prints one row for each size and one column for each job, and compares the last column with the first. */
static void pairs_compare(struct ib_driver *d, const struct kind *k, struct ib_figures *const *f,
                          const char *const *names, int n)
{
    struct ib_table *t = ib_table_open(d, k->title, k->paper);
    char name[32];
    double last = NAN;
    ib_table_add_column(t, "bytes");
    for (int i = 0; i < n; i++)
        ib_table_add_column(t, "%s, %s", names[i], k->unit);
    ib_table_add_column(t, "%s against %s", names[1], names[0]);
    for (long bytes = k->from; bytes <= k->to; bytes *= d->quick ? 16 : 4) {
        ib_table_add_cell(t, "%s", pairs_format_size(bytes, name, sizeof(name)));
        for (int i = 0; i < n; i++)
            ib_table_add_number(t, ib_find_figure(f[i], "%s.%ld", k->figure, bytes), k->digits);
        last = ib_find_figure(f[1], "%s.%ld", k->figure, bytes) /
               ib_find_figure(f[0], "%s.%ld", k->figure, bytes);
        ib_table_add_cell(t, "%.2f", last);
    }
    if (k->wanted > 0)
        ib_table_add_remark(t, "%.2f times at the largest size (the aim: at %s %.2f).", last,
                            k->wanted < 1 ? "most" : "least", k->wanted);
    else
        ib_table_add_remark(t, "%.2f times at the largest size.", last);
    rails_print_second_share(t, f[1]);
    ib_table_close(t);
}

static void pairs_print_tables(struct ib_driver *d)
{
    long small = d->quick ? 64 : 4096, large = d->quick ? 1 << 18 : 4 << 20;
    int factor = d->quick ? 16 : 4;
    const struct kind kinds[] = {
        {"Latency, one process a node, rails of 1 GB/s [Liu04 fig. 8.4]",
         "small messages as with one rail; large ones about half the time.", "latency", "us", 4, large, 1,
         0.55},
        {"Bandwidth of small messages [Liu04 fig. 8.5]", "round robin improves it slightly.", "bw", "MB/s", 4,
         small, 1, 0},
        {"Bandwidth [Liu04 fig. 8.6]", "884 MB/s with one rail, 1723 MB/s with two: 1.95 times.", "bw",
         "MB/s", 1 << 14, large, 0, 1.9},
        {"Bidirectional bandwidth [Liu04 fig. 8.7]",
         "943 MB/s with one rail (the PCI-X bus is the limit), 1877 MB/s with two: 1.99 times.", "bibw",
         "MB/s", 1 << 14, large, 0, 1.9},
    };
    static const char *const names[] = {"one rail", "two rails"};
    struct ib_job one = {.topic = "pairs", .ranks = 2, .nodes = 2, .settings = "", .hcas = RAILS_ONE};
    struct ib_job two = one;
    two.hcas = RAILS_TWO;
    two.settings = STRIPE_EVEN;
    struct ib_figures *f[] = {ib_run_job(d, &one, "from=4 to=%ld factor=%d", large, factor),
                              ib_run_job(d, &two, "from=4 to=%ld factor=%d", large, factor)};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        pairs_compare(d, &kinds[i], f, names, 2);
    ib_figures_free(f[0]);
    ib_figures_free(f[1]);
}

const struct ib_topic rails_pairs = {
    .name = "pairs",
    .doc = "one process a node: latency, bandwidth in one and both directions (figs. 8.4-8.7)",
    .rank = rails_run_traffic,
    .tables = pairs_print_tables,
};

static void smp_print_tables(struct ib_driver *d)
{
    long large = d->quick ? 1 << 18 : 1 << 20;
    const struct kind kinds[] = {
        {"Bandwidth, two processes a node, the senders on different nodes [Liu04 fig. 8.8]",
         "striping is better than binding, which uses each adapter in one direction only; both are far "
         "better "
         "than one rail.",
         "bw", "MB/s", 1 << 14, large, 0, 0},
        {"Bidirectional bandwidth, two processes a node [Liu04 fig. 8.9]",
         "striping and binding are comparable, since both use both adapters in both directions.", "bibw",
         "MB/s", 1 << 14, large, 0, 0},
    };
    static const char *const names[] = {"one rail", "two rails, striped", "two rails, bound"};
    static const char *const settings[] = {"", STRIPE_EVEN, STRIPE_OFF};
    struct ib_figures *f[3];
    for (int i = 0; i < 3; i++) {
        struct ib_job job = {.topic = "smp", .ranks = 4, .nodes = 2, .settings = settings[i]};
        job.hcas = i ? RAILS_TWO : RAILS_ONE;
        f[i] = ib_run_job(d, &job, "from=16384 to=%ld factor=%d latency=0 bind=%d", large, d->quick ? 16 : 4,
                          i == 2);
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        pairs_compare(d, &kinds[i], f, names, 3);
    for (int i = 0; i < 3; i++)
        ib_figures_free(f[i]);
}

/* Binding: each process uses the adapter with the number of its local rank. */
static void smp_bind_process(struct ib_rank *r)
{
    const char *local = getenv("FISHPLATE_LOCAL_RANK");
    if (ib_read_argument(r, "bind", 0) && local)
        setenv("FISHPLATE_IB_DEVICES", local[0] == '0' ? "softib0" : "softib1", 1);
}

const struct ib_topic rails_smp = {
    .name = "smp",
    .doc = "two processes a node: striping against binding (figs. 8.8-8.9)",
    .before = smp_bind_process,
    .rank = rails_run_traffic,
    .tables = smp_print_tables,
};
