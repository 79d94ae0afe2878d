/* models.c: predictions of both models for every barrier algorithm, with the times of measured barriers
 * (predicted from measured parameters) and simulated ones (predicted from the parameters of the simulated
 * machine). If LogP differs by more than a quarter from a simulation, the simulation is repeated without one
 * property of the machine after another, to identify the property that the model lacks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sim/job.h"
#include "lab/barrier/barrier.h"
#include "forms.h"
#include "logp.h"

enum { ALGORITHMS = 16, SIZES_MEASURED = 6, SIZES_SIMULATED = 6, OFF_PERCENT = 25 };
static const int ranks_measured[SIZES_MEASURED] = {2, 4, 8, 16, 32, 64};
static const int ranks_simulated[SIZES_SIMULATED] = {128, 256, 512, 1024, 2048, 4096};

struct prediction {
    int ranks;
    const char *verb;     /* verb of the path that the messages used; the model uses this verb's parameters */
    double us, logp, lop; /* us: measured or simulated; NAN: none */
    const char *why;      /* property that the model lacks if LogP differs; NULL: LogP does not differ */
};

struct logp_models {
    int count;
    const struct coll_algorithm *algorithm[ALGORITHMS];
    struct prediction measured[ALGORITHMS][SIZES_MEASURED], simulated[ALGORITHMS][SIZES_SIMULATED];
    struct model_logp machine; /* parameters of the simulated machine */
    struct model_lop machine_lop;
    struct logp_forms forms;
};

static double models_simulate(const struct machine *m, const struct coll_algorithm *a, int ranks)
{
    const struct job_order order = {
        .machine = m, .algorithm = a, .ranks = ranks, .per_node = 1, .most_steps = 40 << 20};
    struct job_report report;
    job_simulate(&order, &report);
    return report.failed ? NAN : report.us;
}

static bool models_differ(double predicted, double us)
{
    return fabs(predicted - us) > us * OFF_PERCENT / 100.0;
}

/* The parameters that the LogP benchmark would measure on that machine; LoP's from 1:p and p:1 messages of
 * the central barrier. */
static void models_simulate_parameters(struct logp_models *m, const struct machine *sim)
{
    const struct coll_algorithm *central = algorithm_find(COLL_BARRIER, "central");
    double p[LOGP_COUNTS], us[LOGP_COUNTS];
    m->machine = (struct model_logp){
        .send = sim->send_ns * 1e-3, .receive = sim->receive_ns * 1e-3, .gap = sim->message_ns * 1e-3};
    m->machine.latency = models_simulate(sim, central, 2) / 2 - m->machine.send - m->machine.receive;
    for (int i = 0; i < LOGP_COUNTS; i++) {
        p[i] = logp_counts[i];
        us[i] = models_simulate(sim, central, logp_counts[i] + 1) / p[i];
    }
    m->machine_lop = (struct model_lop){.send = {.a = m->machine.send},
                                        .trip = fit_trip(p, us, LOGP_COUNTS).curve,
                                        .max_in_flight = p[LOGP_COUNTS - 1]};
}

/* Name of the property of the simulated machine that LogP lacks. */
static const char *models_explain_simulated(const struct logp_models *m, const struct coll_algorithm *a,
                                            int ranks, double us)
{
    struct machine other = machine_preset;
    other.radix = ranks;
    const double flat = models_simulate(&other, a, ranks),
                 predicted = model_barrier_logp(&m->machine, a, NULL, ranks);
    if (!models_differ(predicted, flat))
        return "routes: L is that of two nodes at one switch; in a larger tree messages pass more switches";
    other.message_ns = 0;
    other.buffers = 4096;
    if (!models_differ(predicted, models_simulate(&other, a, ranks)))
        return "contention: messages of several ranks meet in one adapter";
    return predicted > us
               ? "rounds overlap: in the equation a round begins when the previous one has ended at all ranks"
               : "waiting: a rank that is late in one round delays others in the next";
}

static void models_predict_simulated(struct logp_models *m, int a, int i)
{
    struct prediction *p = &m->simulated[a][i];
    const struct coll_algorithm *algorithm = m->algorithm[a];
    p->ranks = ranks_simulated[i];
    p->us = models_simulate(&machine_preset, algorithm, p->ranks);
    p->logp = model_barrier_logp(&m->machine, algorithm, NULL, p->ranks);
    p->lop = model_barrier_lop(&m->machine_lop, algorithm, NULL, p->ranks, 1);
    if (!isnan(p->us) && models_differ(p->logp, p->us))
        p->why = models_explain_simulated(m, algorithm, p->ranks, p->us);
}

/* Name of the verb: inline RDMA writes into the rings of the polling set, or inline sends to receive
 * queues. */
static const char *models_find_verb(const struct ib_figures *f)
{
    return ib_find_figure(f, "ring_frames") > 0.5 * ib_find_figure(f, "frames") ? "write_inline"
                                                                                : "send_inline";
}

static const char *models_explain_measured(const struct prediction *p, int cores)
{
    if (p->ranks > cores)
        return "turns: there are more ranks than cores, and a rank that waits lets another run";
    return p->logp < p->us
               ? "MPI: the model covers verbs only; a barrier also matches messages and counts credits"
               : "overlap: in the equation a round begins when the previous one has ended, and a message "
                 "costs its full overhead at both ends";
}

static void models_predict_measured(struct logp_models *m, struct logp_study *s, int i)
{
    struct ib_driver driver = s->driver;
    const struct ib_job job = {.topic = "barrier",
                               .ranks = ranks_measured[i],
                               .nodes = ranks_measured[i],
                               .settings = "",
                               .repeat = 1};
    driver.command = "barrier";
    snprintf(driver.doing, sizeof(driver.doing), "%s", job.topic); /* suppresses run_print_progress */
    fprintf(stderr, "fishplate-lab logp: barriers of %d ranks (%.0f s)\n", ranks_measured[i],
            ib_now_seconds() - s->driver.started);
    struct ib_figures *f =
        ib_run_job(&driver, &job, "nodes=%d ms=%d", ranks_measured[i], s->driver.quick ? 10 : 800);
    s->driver.jobs = driver.jobs;
    s->driver.failures = driver.failures;
    const char *verb = models_find_verb(f);
    const struct logp_verb_result *of = &s->of[logp_find_verb(verb)];
    const struct model_lop lop = logp_fitted_lop(of);
    for (int a = 0; a < m->count; a++) {
        struct prediction *p = &m->measured[a][i];
        p->verb = verb;
        const char *name = m->algorithm[a]->name;
        p->ranks = ranks_measured[i];
        p->us = NAN;
        for (int k = 1; k < barrier_nsettings; k++) {
            const struct barrier_setting *set = &barrier_settings[k];
            const struct coll_parameter *own = m->algorithm[a]->parameter;
            bool preset = !set->by_node && strcmp(set->algorithm, name) == 0;
            for (int q = 0; q < COLL_PARAMETERS; q++)
                preset = preset && (set->parameter[q] == 0 || set->parameter[q] == own[q].preset);
            if (preset)
                p->us = ib_find_figure(f, "us/%s", set->text);
        }
        p->logp = model_barrier_logp(&of->at[0], m->algorithm[a], NULL, p->ranks);
        p->lop = model_barrier_lop(&lop, m->algorithm[a], NULL, p->ranks, 1);
        if (!isnan(p->us) && models_differ(p->logp, p->us))
            p->why = models_explain_measured(p, s->driver.cores);
    }
    ib_figures_free(f);
}

/* Uses only measurements in which every rank had a core of its own. */
static void models_fit_measured(struct logp_models *m, int a, int cores)
{
    double ranks[SIZES_MEASURED], us[SIZES_MEASURED];
    int n = 0;
    for (int i = 0; i < SIZES_MEASURED; i++) {
        const struct prediction *p = &m->measured[a][i];
        if (p->ranks < 2 || p->ranks > cores || isnan(p->us))
            continue;
        ranks[n] = p->ranks;
        us[n++] = p->us;
    }
    logp_forms_add_measured(&m->forms, m->algorithm[a]->name, ranks, us, n);
}

struct logp_models *logp_models_compute(struct logp_study *s)
{
    struct logp_models *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    for (size_t i = 0; i < algorithms_count() && m->count < ALGORITHMS; i++) {
        const struct coll_algorithm *a = algorithms_get(i);
        if (a->kind == COLL_BARRIER && a->generate && !(a->needs & NEED_INTER))
            m->algorithm[m->count++] = a;
    }
    models_simulate_parameters(m, &machine_preset);
    for (int i = 0; i < SIZES_MEASURED; i++)
        if (!s->driver.quick || ranks_measured[i] <= 2)
            models_predict_measured(m, s, i);
    fprintf(stderr, "fishplate-lab logp: barriers of up to %d simulated nodes (%.0f s)\n",
            ranks_simulated[SIZES_SIMULATED - 1], ib_now_seconds() - s->driver.started);
    for (int a = 0; a < m->count; a++)
        for (int i = 0; i < (s->driver.quick ? 2 : SIZES_SIMULATED); i++)
            models_predict_simulated(m, a, i);
    for (int a = 0; a < m->count; a++)
        models_fit_measured(m, a, s->driver.cores);
    logp_forms_simulate(&m->forms);
    return m;
}

void logp_models_free(struct logp_models *m)
{
    free(m);
}

static void models_print_row(const struct logp_models *m, const char *what, int a, const struct prediction *p)
{
    if (p->ranks == 0)
        return;
    printf("%-14s %6d %-9s %10.2f %10.2f %7.2f %10.2f %7.2f  %.*s\n", m->algorithm[a]->name, p->ranks, what,
           p->us, p->logp, p->logp / p->us, p->lop, p->lop / p->us, p->why ? (int)strcspn(p->why, ":") : 0,
           p->why ? p->why : "");
}

void logp_models_text(const struct logp_models *m)
{
    const char *known[8];
    int nknown = 0;
    printf("\nPredicted barriers: times in us, and each prediction divided by the time. The last column "
           "names the cause where\nLogP is more than %d %% off.\n\n"
           "%-14s %6s %-9s %10s %10s %7s %10s %7s\n",
           OFF_PERCENT, "algorithm", "ranks", "", "time", "LogP", "ratio", "LoP", "ratio");
    for (int a = 0; a < m->count; a++) {
        for (int i = 0; i < SIZES_MEASURED; i++)
            models_print_row(m, "measured", a, &m->measured[a][i]);
        for (int i = 0; i < SIZES_SIMULATED; i++)
            models_print_row(m, "simulated", a, &m->simulated[a][i]);
    }
    logp_forms_text(&m->forms);
    for (int i = 0; i < SIZES_MEASURED; i++)
        if (m->measured[0][i].verb)
            printf("%s%s for %d ranks",
                   i ? ", "
                     : "\nMeasured barriers are predicted with the parameters of the path that "
                       "their messages took: ",
                   m->measured[0][i].verb, m->measured[0][i].ranks);
    puts(".");
    puts("\nLoP is a lower bound: it assumes that messages of all rounds fill the pipeline and no rank waits "
         "for another.");
    for (int a = 0; a < m->count; a++)
        for (int i = 0; i < SIZES_MEASURED + SIZES_SIMULATED; i++) {
            const char *why =
                i < SIZES_MEASURED ? m->measured[a][i].why : m->simulated[a][i - SIZES_MEASURED].why;
            int k = 0;
            while (k < nknown && known[k] != why)
                k++;
            if (why && k == nknown && nknown < 8)
                printf("%s.\n", known[nknown++] = why);
        }
}

static void models_write_row(struct json *j, const char *what, const char *algorithm,
                             const struct prediction *p)
{
    if (p->ranks == 0)
        return;
    json_object(j, NULL);
    json_string(j, "algorithm", algorithm);
    json_int(j, "ranks", p->ranks);
    json_string(j, "time_is", what);
    if (p->verb)
        json_string(j, "verb", p->verb);
    if (!isnan(p->us))
        json_real(j, "us", p->us);
    json_real(j, "logp", p->logp);
    json_real(j, "lop", p->lop);
    if (p->why)
        json_string(j, "why", p->why);
    json_end(j);
}

void logp_models_json(const struct logp_models *m, struct json *j)
{
    json_array(j, "predictions");
    for (int a = 0; a < m->count; a++) {
        for (int i = 0; i < SIZES_MEASURED; i++)
            models_write_row(j, "measured", m->algorithm[a]->name, &m->measured[a][i]);
        for (int i = 0; i < SIZES_SIMULATED; i++)
            models_write_row(j, "simulated", m->algorithm[a]->name, &m->simulated[a][i]);
    }
    json_end(j);
    logp_forms_json(&m->forms, j);
}

static void models_chart_ratio(const struct logp_models *m, struct chart *c)
{
    *c = (struct chart){.id = "models",
                        .title = "LogP's prediction over the simulated time",
                        .x_name = "nodes",
                        .y_name = "ratio",
                        .format = "%.2f",
                        .by_factors = true};
    for (int i = 0; i < SIZES_SIMULATED && m->simulated[0][i].ranks; i++)
        c->x[c->points++] = m->simulated[0][i].ranks;
    for (int a = 0; a < m->count; a++) {
        const int l = chart_line(c, m->algorithm[a]->name);
        for (int i = 0; l >= 0 && i < c->points; i++)
            c->y[l][i] = m->simulated[a][i].logp / m->simulated[a][i].us;
    }
}

static void models_chart_times(const struct logp_models *m, struct chart *c)
{
    static const char *const names[][2] = {{"dissemination", "dissemination, LogP"},
                                           {"nway", "nway, LogP"},
                                           {"combining", "combining, LogP"},
                                           {"mcs", "mcs, LogP"},
                                           {"tournament", "tournament, LogP"}};
    models_chart_ratio(m, c);
    c->title = "barriers simulated (points) and predicted (curves)";
    c->y_name = "us";
    c->lines = 0;
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
        for (int a = 0; a < m->count; a++) {
            if (strcmp(names[k][0], m->algorithm[a]->name) != 0)
                continue;
            const int dots = chart_line(c, names[k][0]), curve = chart_line(c, names[k][1]);
            c->dots[dots] = c->smooth[curve] = true;
            for (int i = 0; i < c->points; i++) {
                c->y[dots][i] = m->simulated[a][i].us;
                c->y[curve][i] = m->simulated[a][i].logp;
            }
        }
}

bool logp_models_svg(const struct logp_models *m, const char *folder)
{
    struct chart *c = malloc(sizeof(*c));
    if (!c)
        return false;
    models_chart_ratio(m, c);
    bool good = logp_write_chart(c, folder, "models-ratio");
    models_chart_times(m, c);
    good = good && logp_write_chart(c, folder, "models");
    free(c);
    return good;
}
