/* rails.c: the command `fishplate-lab rails`: help, list of topics, and functions that the topics share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rails.h"
#include "cli/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct ib_topic *const topics[] = {&rails_pairs,   &rails_smp,     &rails_coll,   &rails_stages,
                                                &rails_kernels, &rails_unequal, &rails_shared, &rails_loss,
                                                &rails_whole,   &rails_alloc};
enum { NTOPICS = sizeof(topics) / sizeof(topics[0]) };

static void print_usage(void);
static const struct ib_command command = {
    .name = "rails", .topics = topics, .ntopics = NTOPICS, .usage = print_usage, .draws = true};

static void print_usage(void)
{
    cli_print_page(
        "Usage: fishplate-lab rails [options] [topics]\n"
        "\n"
        "Measures what several adapters (rails) gain, and prints it beside the figures of Liu 2004, "
        "chapter 8. It starts its own jobs on virtual nodes whose software adapters have the paper's "
        "rates (mpiexec -vnodes 2 -hcas 2x1GB/s):\n"
        "the links are the bottleneck, so that ratios mean something on any machine. Without names, all "
        "topics run:\n"
        "\n",
        stdout);
    for (int i = 0; i < NTOPICS; i++)
        cli_print_text(topics[i]->doc, printf("  %-8s", topics[i]->name), 12, stdout);
    ib_print_options(&command);
    cli_print_page(
        "\n"
        "Examples:\n"
        "  fishplate-lab rails pairs unequal\n"
        "  fishplate-lab rails --svg . shared loss\n"
        "  fishplate-lab sim rails                   the same policies on a simulated machine of 128 "
        "nodes\n",
        stdout);
}

/* Whether this library divides messages among rails. */
static bool library_has_rails(void)
{
    int provided, index;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    bool there = MPI_T_cvar_get_index("IB_STRIPE", &index) == MPI_SUCCESS;
    MPI_T_finalize();
    return there;
}

double rails_second_share(const struct ib_figures *f)
{
    double first = ib_find_figure(f, "rail.0"), second = ib_find_figure(f, "rail.1");
    return first >= 0 && second > 0 ? 100 * second / (first + second) : 0;
}

void rails_print_second_share(struct ib_table *t, const struct ib_figures *two)
{
    double share = rails_second_share(two);
    if (share > 0)
        ib_table_add_remark(t, "%.0f %% of what was striped went over the second rail.", share);
    else
        ib_table_add_remark(t, "the second rail carried no data: the column for two rails shows one rail.");
}

void rails_report_bytes(struct ib_rank *r)
{
    for (int i = 0; i < 2; i++) {
        double bytes = ib_counter(i ? "ib_rail1_bytes" : "ib_rail0_bytes");
        bytes = ib_sum_over_ranks(r, bytes > 0 ? bytes : 0);
        ib_report_figure(r, IB_COUNT, bytes, "rail.%d", i);
    }
}

int bench_rails_main(void (*draw)(const struct ib_curves *c, FILE *out), int argc, char **argv)
{
    struct ib_driver d = {.draw = draw};
    bool runs_anyhow = argc > 1 && (strcmp(argv[1], "rank") == 0 || strcmp(argv[1], "--help") == 0 ||
                                    strcmp(argv[1], "-h") == 0);
    if (!runs_anyhow && !library_has_rails()) {
        fprintf(stderr, "fishplate-lab rails: this library uses one rail: it has no setting "
                        "FISHPLATE_IB_STRIPE, and there is "
                        "nothing to compare.\n");
        return 3;
    }
    return ib_command_main(&command, &d, argc, argv);
}
