/* driver.c: `fishplate-lab barrier`: options, shapes, jobs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "barrier.h"
#include "cli/options.h"

static bool study_add_shape(struct barrier_study *s, int ranks, int nodes)
{
    if (s->nshapes == BARRIER_SHAPES_MAX || nodes < 1 || ranks < nodes || ranks < 2 || ranks > 1024)
        return false;
    s->shape[s->nshapes++] = (struct barrier_shape){.ranks = ranks, .nodes = nodes};
    return true;
}

static bool driver_read_shapes(void *study, const char *text)
{
    struct barrier_study *s = study;
    int ranks, nodes, used;
    for (s->nshapes = 0; *text; text += used + (text[used] == ','))
        if (sscanf(text, "%dx%d%n", &ranks, &nodes, &used) != 2 || (text[used] && text[used] != ',') ||
            !study_add_shape(s, ranks, nodes))
            return false;
    return s->nshapes > 0;
}

static bool driver_select_full(void *study, const char *value)
{
    struct barrier_study *s = study;
    (void)value;
    s->nshapes = 0;
    study_add_shape(s, 8, 1);
    for (int nodes = 2; nodes <= 16; nodes *= 2) {
        study_add_shape(s, nodes, nodes);
        for (int ranks = 8; ranks <= 64; ranks *= 2)
            if (ranks > nodes)
                study_add_shape(s, ranks, nodes);
    }
    return true;
}

static bool driver_select_quick(void *study, const char *value)
{
    struct barrier_study *s = study;
    (void)value;
    s->driver.quick = true;
    return driver_read_shapes(s, "2x2,4x2");
}

static const struct cli_option options[] = {
    CLI_CALL_LINE("--quick", NULL, driver_select_quick,
                  "two small shapes, to check in some seconds that everything runs"),
    CLI_CALL_LINE("--full", NULL, driver_select_full,
                  "2, 4, 8, 16 nodes, each with 1 rank per node and with 8, 16, 32, 64 ranks"),
    CLI_CALL_LINE("--shapes", "8x2,4x4", driver_read_shapes, "the jobs to measure, as ranks x nodes"),
    CLI_REAL_LINE("--budget", "120", struct barrier_study, budget, 1e-3, 1e7,
                  "seconds for all jobs together; shapes that do not fit are left out"),
    CLI_FLAG_LINE("--json", struct barrier_study, json,
                  "one JSON document; progress is on standard error either way"),
    CLI_TEXT_LINE("--html", "FILE", struct barrier_study, html,
                  "also write an HTML page with tables and charts"),
    CLI_END};

static void print_usage(void)
{
    cli_print_page(
        "Usage: fishplate-lab barrier [options]\n"
        "\n"
        "Compares all barrier algorithms and their parameters. It starts its own jobs on virtual nodes with "
        "software adapters (mpiexec -vnodes) and prints time, network operations and memory; the "
        "predictions of Hoefler's models; how much slower the library's own choice is than the fastest "
        "barrier; and barriers by messages, by RDMA, by multicast, in the switch and by the barrier "
        "network. The jobs have a barrier network (hub=1), unless you set SOFTIB_FABRIC. `mpiexec -n 4 "
        "fishplate bench barrier` measures the barrier of one job.\n"
        "\n"
        "Options:\n",
        stdout);
    cli_print_options(options, stdout);
    cli_print_page(
        "\n"
        "With more ranks than cores the ranks take turns, and a barrier costs as many turns as it has "
        "rounds:\n"
        "compare figures of the same shape only.\n\n"
        "Examples:\n"
        "  fishplate-lab barrier --html barriers.html\n"
        "  fishplate-lab barrier --shapes 16x16 --budget 30\n",
        stdout);
}

static void shape_read_figures(struct barrier_shape *s, const struct ib_figures *f)
{
    for (int i = 0; i < barrier_nsettings; i++) {
        const char *label = barrier_setting_label(i);
        s->figures[i] = (struct barrier_figures){.us = ib_find_figure(f, "us/%s", label),
                                                 .choose = ib_find_figure(f, "choose/%s", label),
                                                 .judge = ib_find_figure(f, "judge/%s", label),
                                                 .messages = ib_find_figure(f, "messages/%s", label),
                                                 .max_messages = ib_find_figure(f, "most/%s", label),
                                                 .bytes = ib_find_figure(f, "bytes/%s", label)};
    }
}

/* Runs the jobs in turn until the time limit. A job that has begun ends by itself because its ranks check the
 * clock. */
static void study_run_jobs(struct barrier_study *s)
{
    int kept = 0;
    const char *const settings = getenv("SOFTIB_FABRIC") ? "" : "SOFTIB_FABRIC=hub=1";
    for (int i = 0; i < s->nshapes; i++) {
        const double used = ib_now_seconds() - s->driver.started;
        struct barrier_shape shape = s->shape[i];
        if (used > s->budget) {
            s->skipped++;
            continue;
        }
        char name[64];
        snprintf(name, sizeof(name), "%d ranks on %d nodes", shape.ranks, shape.nodes);
        fprintf(stderr, "fishplate-lab barrier: %s, %d of %d shapes, %.0f of at most %.0f s\n", name, i + 1,
                s->nshapes, used, s->budget);
        const struct ib_job job = {.topic = "barrier",
                                   .ranks = shape.ranks,
                                   .nodes = shape.nodes,
                                   .settings = settings,
                                   .repeat = 1};
        struct ib_figures *f = ib_run_job(&s->driver, &job, "nodes=%d ms=%d", shape.nodes,
                                          (int)(1e3 * fmax(0.1, (s->budget - used) / (s->nshapes - i) / 2)));
        shape_read_figures(&shape, f);
        ib_figures_free(f);
        s->shape[kept++] = shape;
    }
    s->nshapes = kept;
}

int bench_barrier_main(const struct bench_host *host, int argc, char **argv)
{
    struct barrier_study *s = calloc(1, sizeof(*s));
    if (!s)
        return 2;
    if (argc > 2 && strcmp(argv[1], "rank") == 0) {
        free(s);
        return ib_run_rank(host, &barrier_topic, argc - 3, argv + 3);
    }
    s->budget = 240;
    s->driver = (struct ib_driver){.command = "barrier",
                                   .cores = (int)sysconf(_SC_NPROCESSORS_ONLN),
                                   .started = ib_now_seconds(),
                                   .repeat = 1};
    /* run_print_progress prints no line for a topic equal to `doing`; study_run_jobs prints the progress. */
    snprintf(s->driver.doing, sizeof(s->driver.doing), "barrier");
    const struct cli c = {.program = "fishplate-lab barrier", .options = options};
    driver_read_shapes(s, "2x2,4x4,8x8,16x16,8x1,8x2,16x4,32x8,64x16");
    const int next = cli_parse(&c, argc, argv, s);
    int status = 0;
    if (next == CLI_HELP)
        print_usage();
    if (next < 0) {
        free(s);
        return next == CLI_HELP ? 0 : 2;
    }
    if (status == 0 && !ib_find_programs(&s->driver))
        status = 2;
    if (status == 0) {
        study_run_jobs(s);
        if (s->json)
            barrier_write_json(s);
        else
            barrier_print_text(s);
        status = s->driver.failures > 0 || (s->html && !barrier_write_page(s));
    }
    free(s);
    return status;
}
