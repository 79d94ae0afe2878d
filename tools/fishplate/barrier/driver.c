/* driver.c: `fishplate bench barrier`: options, shapes, jobs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "barrier.h"

static void usage(void)
{
    puts("Usage: fishplate bench barrier [options]\n\n"
         "Compares all barrier algorithms and their parameters. It starts its own jobs on virtual nodes "
         "with\nsoftware adapters (mpiexec -vnodes) and prints time, network operations and memory; the "
         "predictions of\nHoefler's models; how much slower the library's own choice is than the fastest "
         "barrier; and barriers by\nmessages, by RDMA, by multicast, in the switch and by the barrier "
         "network. The library chooses by trying "
         "several barriers\n(FISHPLATE_COLL_TRY=100, unless you set it). The jobs have a barrier network "
         "(hub=1), unless you set\nSOFTIB_FABRIC.\n"
         "Started by mpiexec, `fishplate bench barrier` measures the barrier of that job only.\n\n"
         "Options:\n"
         "  --quick           two small shapes, to check in some seconds that everything runs\n"
         "  --full            2, 4, 8, 16 nodes, each with 1 rank per node and with 8, 16, 32, 64 ranks\n"
         "  --shapes 8x2,4x4  the jobs to measure, as ranks x nodes\n"
         "  --budget 120      seconds for all jobs together; shapes that do not fit are left out\n"
         "  --json            one JSON document; progress is on standard error either way\n"
         "  --html FILE       also write an HTML page with tables and charts\n"
         "  --help\n\n"
         "With more ranks than cores the ranks take turns, and a barrier costs as many turns as it has "
         "rounds:\n"
         "compare figures of the same shape only.\n\n"
         "Examples:\n"
         "  fishplate bench barrier --html barriers.html\n"
         "  fishplate bench barrier --shapes 16x16 --budget 30");
}

static bool add_shape(struct barrier_study *s, int ranks, int nodes)
{
    if (s->nshapes == BARRIER_SHAPES_MAX || nodes < 1 || ranks < nodes || ranks < 2 || ranks > 1024)
        return false;
    s->shape[s->nshapes++] = (struct barrier_shape){.ranks = ranks, .nodes = nodes};
    return true;
}

static bool parse_shapes(struct barrier_study *s, const char *text)
{
    int ranks, nodes, used;
    for (s->nshapes = 0; *text; text += used + (text[used] == ','))
        if (sscanf(text, "%dx%d%n", &ranks, &nodes, &used) != 2 || (text[used] && text[used] != ',') ||
            !add_shape(s, ranks, nodes))
            return false;
    return s->nshapes > 0;
}

static void full(struct barrier_study *s)
{
    s->nshapes = 0;
    add_shape(s, 8, 1);
    for (int nodes = 2; nodes <= 16; nodes *= 2) {
        add_shape(s, nodes, nodes);
        for (int ranks = 8; ranks <= 64; ranks *= 2)
            if (ranks > nodes)
                add_shape(s, ranks, nodes);
    }
}

/* 0, or the exit status; -1: help. */
static int parse(struct barrier_study *s, int argc, char **argv)
{
    char *end;
    parse_shapes(s, "2x2,4x4,8x8,16x16,8x1,8x2,16x4,32x8,64x16");
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--quick") == 0) {
            s->driver.quick = parse_shapes(s, "2x2,4x2");
        } else if (strcmp(argv[i], "--full") == 0) {
            full(s);
        } else if (strcmp(argv[i], "--json") == 0) {
            s->json = true;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return -1;
        } else if (strcmp(argv[i], "--shapes") == 0 && parse_shapes(s, value)) {
            i++;
        } else if (strcmp(argv[i], "--html") == 0 && *value) {
            s->html = argv[++i];
        } else if (strcmp(argv[i], "--budget") == 0 && (s->budget = strtod(value, &end)) > 0 && !*end) {
            i++;
        } else {
            fprintf(stderr, "bench barrier: '%s' is not an option, or its value is invalid; see --help.\n",
                    argv[i]);
            return 2;
        }
    }
    return 0;
}

static void read_figures(struct barrier_shape *s, const struct ib_figures *f)
{
    for (int i = 0; i < barrier_nsettings; i++) {
        const char *label = barrier_label(i);
        s->of[i] = (struct barrier_figures){.us = ib_figure(f, "us/%s", label),
                                            .choose = ib_figure(f, "choose/%s", label),
                                            .judge = ib_figure(f, "judge/%s", label),
                                            .messages = ib_figure(f, "messages/%s", label),
                                            .most = ib_figure(f, "most/%s", label),
                                            .bytes = ib_figure(f, "bytes/%s", label)};
    }
}

/* The jobs in turn, while there is time: one that was begun ends by itself, since its ranks watch the clock. */
static void run_jobs(struct barrier_study *s)
{
    char settings[64];
    int kept = 0;
    snprintf(settings, sizeof(settings), "%s%s", getenv("FISHPLATE_COLL_TRY") ? "" : "FISHPLATE_COLL_TRY=100",
             getenv("SOFTIB_FABRIC") ? "" : " SOFTIB_FABRIC=hub=1");
    for (int i = 0; i < s->nshapes; i++) {
        const double used = ib_now() - s->driver.started;
        struct barrier_shape shape = s->shape[i];
        if (used > s->budget) {
            s->skipped++;
            continue;
        }
        char name[64];
        snprintf(name, sizeof(name), "%d ranks on %d nodes", shape.ranks, shape.nodes);
        fprintf(stderr, "bench barrier: %s, %d of %d shapes, %.0f of at most %.0f s\n", name, i + 1,
                s->nshapes, used, s->budget);
        const struct ib_job job = {.topic = "barrier",
                                   .ranks = shape.ranks,
                                   .nodes = shape.nodes,
                                   .settings = settings,
                                   .repeat = 1};
        struct ib_figures *f = ib_run(&s->driver, &job, "nodes=%d ms=%d", shape.nodes,
                                      (int)(1e3 * fmax(0.1, (s->budget - used) / (s->nshapes - i) / 2)));
        read_figures(&shape, f);
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
        return ib_rank_run(host, &barrier_topic, argc - 3, argv + 3);
    }
    s->budget = 240;
    s->driver = (struct ib_driver){
        .command = "barrier", .cores = (int)sysconf(_SC_NPROCESSORS_ONLN), .started = ib_now(), .repeat = 1};
    /* Told once already, a shape a line. */
    snprintf(s->driver.doing, sizeof(s->driver.doing), "barrier");
    int status = parse(s, argc, argv);
    if (status == -1) {
        usage();
        free(s);
        return 0;
    }
    if (status == 0 && !ib_find_programs(&s->driver))
        status = 2;
    if (status == 0) {
        run_jobs(s);
        if (s->json)
            barrier_json(s);
        else
            barrier_text(s);
        status = s->driver.failures > 0 || (s->html && !barrier_page(s));
    }
    free(s);
    return status;
}
