/* driver.c: `fishplate-lab logp`: options, the job, the fits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "logp.h"
#include "cli/options.h"

static const char *const usage_text =
    "Usage: fishplate-lab logp [options]\n"
    "\n"
    "Measures the parameters of two network models directly with verbs, without MPI: LogP (overhead o, gap "
    "g, latency L, by kind of message and size) and LoP, in which overhead and round trip depend on how many "
    "messages are in flight (o_s(p), o_r(p), RTT(p), L(p); requests posted one by one and as a list). Fits "
    "the curves of Hoefler's thesis by least squares, and predicts every barrier algorithm with both models, "
    "beside measured barriers and, for 128 to 4096 nodes, simulated ones.\n"
    "\n"
    "Options:\n";

static const char *const examples_text = "\n"
                                         "Examples:\n"
                                         "  fishplate-lab logp --svg plots\n"
                                         "  SOFTIB_FABRIC=\"latency=2us\" fishplate-lab logp --no-models\n";

static const struct cli_option options[] = {
    CLI_FLAG_LINE("--quick", struct logp_study, driver.quick,
                  "few repetitions, to check in some seconds that everything runs"),
    CLI_INT_LINE("--peers", "32", struct logp_study, peers, 1, LOGP_PEERS,
                 "number of connections of the hub (rank 0), at most 32"),
    CLI_INT_LINE(
        "--ranks", "2", struct logp_study, ranks, 2, LOGP_PEERS + 1,
        "number of processes: the hub, and others that share its peers. With more processes than cores, "
        "scheduling dominates the figures"),
    CLI_INT_LINE("--repeat", "300", struct logp_study, repeat, 20, 2000, "round trips for each figure"),
    CLI_FLAG_LINE("--no-models", struct logp_study, no_models, "do not predict barriers"),
    CLI_FLAG_LINE("--json", struct logp_study, json,
                  "one JSON document; progress is on standard error either way"),
    CLI_TEXT_LINE("--svg", "FOLDER", struct logp_study, svg,
                  "write plots of measured points, fitted curves and predictions"),
    CLI_END};

static void driver_read_curve(const struct ib_figures *f, const char *what, const char *verb,
                              struct logp_curve *c)
{
    c->n = 0;
    for (int i = 0; i < LOGP_COUNTS; i++) {
        const double us = ib_find_figure(f, "%s/%s/%d", what, verb, logp_counts[i]);
        if (isnan(us))
            continue;
        c->p[c->n] = logp_counts[i];
        c->us[c->n++] = us;
    }
}

static void driver_read_verb(const struct ib_figures *f, const char *name, struct logp_verb_result *v)
{
    driver_read_curve(f, "single", name, &v->single);
    driver_read_curve(f, "list", name, &v->list);
    driver_read_curve(f, "trip", name, &v->trip);
    driver_read_curve(f, "trip_median", name, &v->trip_median);
    v->fit_single = fit_overhead(v->single.p, v->single.us, v->single.n);
    v->fit_list = fit_overhead(v->list.p, v->list.us, v->list.n);
    v->fit_trip = fit_trip(v->trip.p, v->trip.us, v->trip.n);
    for (int i = 0; i < LOGP_SIZES; i++) {
        const int bytes = (int)logp_sizes[i];
        struct model_logp *m = &v->at[i];
        m->send = ib_find_figure(f, "size_send/%s/%d", name, bytes);
        m->receive = ib_find_figure(f, "size_receive/%s/%d", name, bytes);
        m->gap = ib_find_figure(f, "size_gap/%s/%d", name, bytes);
        m->latency = fmax(0, ib_find_figure(f, "size_trip/%s/%d", name, bytes) / 2 - m->send - m->receive);
        if (isnan(m->send))
            m->latency = NAN;
    }
}

static void driver_measure(struct logp_study *s)
{
    const struct ib_job job = {.topic = "logp",
                               .ranks = s->ranks,
                               .nodes = s->ranks,
                               .settings = "FISHPLATE_COLL=barrier=rdma",
                               .repeat = 1};
    struct ib_figures *f = ib_run_job(&s->driver, &job, "peers=%d repeat=%d", s->peers, s->repeat);
    for (int v = 0; v < logp_nverbs; v++)
        driver_read_verb(f, logp_verbs[v].name, &s->of[v]);
    s->beside = (struct logp_barrier_write){.write = ib_find_figure(f, "beside/write"),
                                            .barrier = ib_find_figure(f, "beside/barrier"),
                                            .ratio = ib_find_figure(f, "beside/ratio"),
                                            .write_best = ib_find_figure(f, "beside/write_best"),
                                            .barrier_best = ib_find_figure(f, "beside/barrier_best")};
    driver_read_curve(f, "receive", "single", &s->receive_single);
    driver_read_curve(f, "receive", "list", &s->receive_list);
    s->fit_receive_single = fit_overhead(s->receive_single.p, s->receive_single.us, s->receive_single.n);
    s->fit_receive_list = fit_overhead(s->receive_list.p, s->receive_list.us, s->receive_list.n);
    ib_figures_free(f);
}

struct model_lop logp_fitted_lop(const struct logp_verb_result *v)
{
    return (struct model_lop){.send = v->fit_single.curve,
                              .trip = v->fit_trip.curve,
                              .max_in_flight = v->trip.n ? v->trip.p[v->trip.n - 1] : 1};
}

int logp_find_verb(const char *name)
{
    for (int i = 0; i < logp_nverbs; i++)
        if (strcmp(logp_verbs[i].name, name) == 0)
            return i;
    return 0;
}

static int driver_run(struct logp_study *s)
{
    if (!ib_find_programs(&s->driver))
        return 2;
    driver_measure(s);
    s->made = s->no_models ? NULL : logp_models_compute(s);
    if (s->json)
        logp_write_json(s);
    else
        logp_print_text(s);
    const bool good = !s->svg || logp_write_svg(s);
    logp_models_free(s->made);
    return s->driver.failures > 0 || !good;
}

int bench_logp_main(const struct bench_host *host, int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "rank") == 0)
        return ib_run_rank(host, &logp_topic, argc - 3, argv + 3);
    struct logp_study *s = calloc(1, sizeof(*s));
    if (!s)
        return 2;
    s->peers = 32;
    s->ranks = 2;
    s->repeat = 300;
    s->driver = (struct ib_driver){.command = "logp",
                                   .cores = (int)sysconf(_SC_NPROCESSORS_ONLN),
                                   .started = ib_now_seconds(),
                                   .repeat = 1};
    const struct cli c = {.program = "fishplate-lab logp", .options = options};
    const int next = cli_parse(&c, argc, argv, s);
    int status = 2;
    if (next == CLI_HELP) {
        cli_print_page(usage_text, stdout);
        cli_print_options(options, stdout);
        fputs(examples_text, stdout);
        status = 0;
    } else if (next != CLI_INVALID) {
        status = driver_run(s);
    }
    free(s);
    return status;
}
