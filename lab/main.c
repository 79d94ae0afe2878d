/* main.c: `fishplate-lab`: the table of its sub-commands.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/barrier/barrier.h"
#include "lab/bcast/bcast.h"
#include "lab/ib/ib.h"
#include "lab/kernels/kernels.h"
#include "lab/kernels/npb.h"
#include "lab/logp/logp.h"
#include "lab/papers/papers.h"
#include "lab/rails/rails.h"
#include "lab/simulate/simulate.h"

#include "bench/bench.h"
#include "tools/fishplate/bench_library.h"
#include "lab/chart.h"
#include "tools/fishplate/command.h"
#include "cli/options.h"

/* Draws the curves of `rails` and `bcast`. */
static void main_draw_curves(const struct ib_curves *c, FILE *out)
{
    struct chart chart = {
        .id = c->id, .title = c->title, .x_name = c->x_name, .y_name = c->y_name, .format = "%.0f"};
    chart.points = c->points < CHART_POINTS ? c->points : CHART_POINTS;
    for (int i = 0; i < chart.points; i++)
        chart.x[i] = c->x[i];
    for (int l = 0; l < c->lines; l++) {
        int line = chart_line(&chart, c->name[l]);
        for (int i = 0; line >= 0 && i < chart.points; i++)
            chart.y[line][i] = c->y[l][i];
    }
    chart_svg(&chart, out);
}

static int run_rails(int argc, char **argv)
{
    return bench_rails_main(main_draw_curves, argc, argv);
}

static int run_bcast(int argc, char **argv)
{
    return bench_bcast_main(main_draw_curves, argc, argv);
}

static int run_barrier(int argc, char **argv)
{
    return bench_barrier_main(&bench_library, argc, argv);
}

#ifdef FISHPLATE_IB
static int run_logp(int argc, char **argv)
{
    return bench_logp_main(&bench_library, argc, argv);
}
#endif

static int run_kernels(int argc, char **argv)
{
    return npb_is_requested(argc, argv) ? bench_npb_main(argc, argv)
                                        : bench_kernels_main(&bench_library, argc, argv);
}

static int command_help(int argc, char **argv);

static int command_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf("fishplate-lab %s\n", FISHPLATE_VERSION);
    return 0;
}

static const struct command commands[] = {
    {"papers", "every figure of the papers, measured here, on one page", bench_papers_main},
    {"sim", "collectives on a machine of any size: fishplate-lab sim allreduce --nodes 10000", command_sim},
    {"ib", "the gain of each design of MPI over InfiniBand", bench_ib_main},
    {"rails", "the gain of several adapters", run_rails},
    {"bcast", "broadcast by multicast against a tree of messages", run_bcast},
    {"barrier", "all barrier algorithms, with models", run_barrier},
#ifdef FISHPLATE_IB
    {"logp", "parameters of the LogP and LoP models, measured with verbs", run_logp},
#endif
    {"kernels", "kernels of scientific programs, verified: mpiexec -n 4 fishplate-lab kernels", run_kernels},
    {"version", "the version", command_version},
    {"help", "this page", command_help},
    {NULL, NULL, NULL},
};

static int command_help(int argc, char **argv)
{
    (void)argc, (void)argv;
    cli_print_page(
        "Usage: fishplate-lab <command> [options]\n\n"
        "Reproduces the papers that Fishplate is built from, simulates large machines, and compares "
        "protocols.\n\n"
        "Commands:\n",
        stdout);
    command_list(commands);
    cli_print_page(
        "\n`fishplate-lab <command> --help` explains one of them. Examples:\n"
        "  fishplate-lab papers --quick --html report.html    figures of the papers on one page\n"
        "  fishplate-lab ib small polling                     two designs of the InfiniBand transport\n"
        "  mpiexec -n 4 fishplate-lab kernels                 kernels of scientific programs, verified\n"
        "  fishplate-lab sim barrier --nodes 64,4096          barriers on a simulated machine\n",
        stdout);
    return 0;
}

/* Studies that start jobs of their own, whose ranks run `fishplate-lab STUDY rank ...`. */
static const struct {
    const char *name, *instead;
} starts_jobs[] = {
    {"papers", ""},
    {"sim", ""},
    {"ib", ""},
    {"rails", ""},
    {"logp", ""},
    {"barrier", "\nFor the barrier of this job: mpiexec -n 4 fishplate bench barrier"},
    {"bcast", "\nFor the broadcasts of this job: mpiexec -n 4 fishplate bench bcast"},
};

/* Refuses a study that starts jobs of its own if the user runs it under mpiexec. Rank 0 prints the reason
 * and fails; other ranks do not fail, since their failure could end rank 0 before it prints. Returns the
 * exit status, or -1 to continue. */
static int refuse_in_job(int argc, char **argv)
{
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("PMIX_RANK");
    if (!rank || argc < 2 || (argc > 2 && strcmp(argv[2], "rank") == 0))
        return -1;
    for (size_t i = 0; i < sizeof(starts_jobs) / sizeof(starts_jobs[0]); i++)
        if (strcmp(starts_jobs[i].name, argv[1]) == 0) {
            if (strcmp(rank, "0") != 0)
                return 0;
            fprintf(stderr,
                    "fishplate-lab %s starts its own jobs, so mpiexec must not start it. Run it alone: "
                    "fishplate-lab %s%s\n",
                    argv[1], argv[1], starts_jobs[i].instead);
            return 2;
        }
    return -1;
}

int main(int argc, char **argv)
{
    const int status = refuse_in_job(argc, argv);
    return status >= 0 ? status : command_run(commands, "fishplate-lab", argc, argv);
}
