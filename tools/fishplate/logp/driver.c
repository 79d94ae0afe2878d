/* driver.c: `fishplate bench logp`: options, the job, the fits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "logp.h"

static const char *const usage_text =
    "Usage: fishplate bench logp [options]\n\n"
    "Measures the parameters of two network models directly with verbs, without MPI: LogP (overhead "
    "o,\n"
    "gap g, latency L, by kind of message and size) and LoP, in which overhead and round trip depend on how\n"
    "many messages are in flight (o_s(p), o_r(p), RTT(p), L(p); requests posted one by one and as a list).\n"
    "Fits the curves of Hoefler's thesis by least squares, and predicts every barrier algorithm with both\n"
    "models, beside measured barriers and, for 128 to 4096 nodes, simulated ones.\n\n"
    "Options:\n"
    "  --quick        few repetitions, to check in some seconds that everything runs\n"
    "  --peers 32     number of connections of the hub (rank 0), at most 32\n"
    "  --ranks 2      number of processes: the hub, and others that share its peers. With more\n"
    "                 processes than cores, scheduling dominates the figures.\n"
    "  --repeat 300   round trips for each figure\n"
    "  --no-models    do not predict barriers\n"
    "  --json         one JSON document; progress is on standard error either way\n"
    "  --svg FOLDER   write plots of measured points, fitted curves and predictions\n"
    "  --help\n\n"
    "Examples:\n"
    "  fishplate bench logp --svg plots\n"
    "  SOFTIB_FABRIC=\"latency=2us\" fishplate bench logp --no-models\n";

struct options {
    int peers, ranks, repeat;
};

static bool number(const char *text, int least, int most, int *out)
{
    char *end;
    long value = strtol(text, &end, 10);
    *out = (int)value;
    return end != text && !*end && value >= least && value <= most;
}

/* 0, or the exit status; -1: help. */
static int parse(struct logp_study *s, struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--quick") == 0)
            s->driver.quick = true;
        else if (strcmp(argv[i], "--json") == 0)
            s->json = true;
        else if (strcmp(argv[i], "--no-models") == 0)
            s->models = false;
        else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return -1;
        else if (strcmp(argv[i], "--svg") == 0 && *value)
            s->svg = argv[++i];
        else if ((strcmp(argv[i], "--peers") == 0 && number(value, 1, LOGP_PEERS, &o->peers)) ||
                 (strcmp(argv[i], "--ranks") == 0 && number(value, 2, LOGP_PEERS + 1, &o->ranks)) ||
                 (strcmp(argv[i], "--repeat") == 0 && number(value, 20, 2000, &o->repeat)))
            i++;
        else {
            fprintf(stderr, "bench logp: '%s' is not an option, or its value is invalid; see --help.\n",
                    argv[i]);
            return 2;
        }
    }
    return 0;
}

static void read_curve(const struct ib_figures *f, const char *what, const char *verb, struct logp_curve *c)
{
    c->n = 0;
    for (int i = 0; i < LOGP_COUNTS; i++) {
        const double us = ib_figure(f, "%s/%s/%d", what, verb, logp_counts[i]);
        if (isnan(us))
            continue;
        c->p[c->n] = logp_counts[i];
        c->us[c->n++] = us;
    }
}

static void read_verb(const struct ib_figures *f, const char *name, struct logp_of_verb *v)
{
    read_curve(f, "single", name, &v->single);
    read_curve(f, "list", name, &v->list);
    read_curve(f, "trip", name, &v->trip);
    read_curve(f, "trip_median", name, &v->trip_median);
    v->fit_single = fit_overhead(v->single.p, v->single.us, v->single.n);
    v->fit_list = fit_overhead(v->list.p, v->list.us, v->list.n);
    v->fit_trip = fit_trip(v->trip.p, v->trip.us, v->trip.n);
    for (int i = 0; i < LOGP_SIZES; i++) {
        const int bytes = (int)logp_sizes[i];
        struct model_logp *m = &v->at[i];
        m->send = ib_figure(f, "size_send/%s/%d", name, bytes);
        m->receive = ib_figure(f, "size_receive/%s/%d", name, bytes);
        m->gap = ib_figure(f, "size_gap/%s/%d", name, bytes);
        m->latency = fmax(0, ib_figure(f, "size_trip/%s/%d", name, bytes) / 2 - m->send - m->receive);
        if (isnan(m->send))
            m->latency = NAN;
    }
}

static void measure(struct logp_study *s, const struct options *o)
{
    const struct ib_job job = {.topic = "logp",
                               .ranks = o->ranks,
                               .nodes = o->ranks,
                               .settings = "FISHPLATE_COLL=barrier=rdma",
                               .repeat = 1};
    struct ib_figures *f = ib_run(&s->driver, &job, "peers=%d repeat=%d", o->peers, o->repeat);
    for (int v = 0; v < logp_nverbs; v++)
        read_verb(f, logp_verbs[v].name, &s->of[v]);
    s->beside = (struct logp_beside){.write = ib_figure(f, "beside/write"),
                                     .barrier = ib_figure(f, "beside/barrier"),
                                     .ratio = ib_figure(f, "beside/ratio"),
                                     .write_best = ib_figure(f, "beside/write_best"),
                                     .barrier_best = ib_figure(f, "beside/barrier_best")};
    read_curve(f, "receive", "single", &s->receive_single);
    read_curve(f, "receive", "list", &s->receive_list);
    s->fit_receive_single = fit_overhead(s->receive_single.p, s->receive_single.us, s->receive_single.n);
    s->fit_receive_list = fit_overhead(s->receive_list.p, s->receive_list.us, s->receive_list.n);
    ib_figures_free(f);
}

struct model_lop logp_lop(const struct logp_of_verb *v)
{
    return (struct model_lop){.send = v->fit_single.curve,
                              .trip = v->fit_trip.curve,
                              .most = v->trip.n ? v->trip.p[v->trip.n - 1] : 1};
}

int logp_verb_of(const char *name)
{
    for (int i = 0; i < logp_nverbs; i++)
        if (strcmp(logp_verbs[i].name, name) == 0)
            return i;
    return 0;
}

static int run(struct logp_study *s, const struct options *o)
{
    if (!ib_find_programs(&s->driver))
        return 2;
    measure(s, o);
    s->made = s->models ? logp_models_make(s) : NULL;
    if (s->json)
        logp_json(s);
    else
        logp_text(s);
    const bool good = !s->svg || logp_svg(s);
    logp_models_free(s->made);
    return s->driver.failures > 0 || !good;
}

int bench_logp_main(const struct bench_host *host, int argc, char **argv)
{
    struct options o = {.peers = 32, .ranks = 2, .repeat = 300};
    if (argc > 2 && strcmp(argv[1], "rank") == 0)
        return ib_rank_run(host, &logp_topic, argc - 3, argv + 3);
    struct logp_study *s = calloc(1, sizeof(*s));
    if (!s)
        return 2;
    s->models = true;
    s->driver = (struct ib_driver){
        .command = "logp", .cores = (int)sysconf(_SC_NPROCESSORS_ONLN), .started = ib_now(), .repeat = 1};
    int status = parse(s, &o, argc, argv);
    if (status == -1) {
        fputs(usage_text, stdout);
        status = 0;
    } else if (status == 0) {
        status = run(s, &o);
    }
    free(s);
    return status;
}
