/* show.c: the parameters and their curves as text, JSON and plots.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "logp.h"

static void show_print_number(double value, int digits)
{
    if (isnan(value))
        printf(" %9s", "-");
    else
        printf(" %9.*f", digits, value);
}

static void show_print_sizes(const struct logp_study *s)
{
    printf("LogP parameters in us\n\n%-16s %8s %9s %9s %9s %9s\n", "verb", "bytes", "o_s", "o_r", "g", "L");
    for (int v = 0; v < logp_nverbs; v++)
        for (int i = 0; i < LOGP_SIZES; i++) {
            const struct model_logp *m = &s->of[v].at[i];
            if (isnan(m->send))
                continue;
            printf("%-16s %8zu", logp_verbs[v].name, logp_sizes[i]);
            show_print_number(m->send, 3);
            show_print_number(m->receive, 3);
            show_print_number(m->gap, 3);
            show_print_number(m->latency, 3);
            putchar('\n');
        }
}

static void show_print_overhead(const char *what, const char *verb, const struct logp_curve *c,
                                const struct fit_overhead *f)
{
    if (c->n == 0)
        return;
    printf("%-16s %-9s", verb, what);
    for (int i = 0; i < c->n; i++)
        printf(" %7.3f", c->us[i]);
    printf("\n%26s%.4f + %.4f / (%.4f + p), residual %.4f\n", "", f->curve.a, f->curve.b, f->curve.c,
           f->residual);
}

static void show_print_counts(const struct logp_study *s)
{
    printf("\nLoP parameters in us by the number p of messages; the fitted curve is below each row\n\n%-26s",
           "p");
    for (int i = 0; i < s->receive_single.n; i++)
        printf(" %7.0f", s->receive_single.p[i]);
    putchar('\n');
    show_print_overhead("o_r", "receive", &s->receive_single, &s->fit_receive_single);
    show_print_overhead("o_r list", "receive", &s->receive_list, &s->fit_receive_list);
    for (int v = 0; v < logp_nverbs; v++) {
        const struct logp_verb_result *of = &s->of[v];
        const struct model_trip *t = &of->fit_trip.curve;
        if (of->trip.n == 0)
            continue;
        show_print_overhead("o_s", logp_verbs[v].name, &of->single, &of->fit_single);
        show_print_overhead("o_s list", logp_verbs[v].name, &of->list, &of->fit_list);
        printf("%-16s %-9s", logp_verbs[v].name, "RTT");
        for (int i = 0; i < of->trip.n; i++)
            printf(" %7.3f", of->trip.us[i]);
        printf("\n%26s%.4f / (%.4f + p) + %.4f + %.4f (1 - exp(%.4f p)), residual %.4f\n", "", t->l1, t->l2,
               t->l3, t->l4, t->l5, of->fit_trip.residual);
        const struct model_lop m = logp_fitted_lop(of);
        printf("%-16s %-9s", logp_verbs[v].name, "L");
        for (int i = 0; i < of->trip.n; i++)
            printf(" %7.3f", model_latency_at(&m, of->trip.p[i]));
        putchar('\n');
    }
}

static void show_print_barrier_write(const struct logp_barrier_write *b)
{
    if (!isfinite(b->ratio))
        return;
    printf("\nMPI_Barrier of two nodes by RDMA writes takes %.3f us, one write %.3f us each way: %.2f x "
           "(medians of "
           "turns;\nbest turns %.3f us and %.3f us: %.2f x).\n",
           b->barrier, b->write, b->ratio, b->barrier_best, b->write_best, b->barrier_best / b->write_best);
}

void logp_print_text(const struct logp_study *s)
{
    printf("fishplate-lab logp: %s, %d cores\n\n", s->driver.adapter, s->driver.cores);
    show_print_sizes(s);
    show_print_counts(s);
    if (strstr(s->driver.adapter, "(software)"))
        puts("\nThis adapter is software: it carries out a request while the program posts it or polls for "
             "it. The work of a\nhardware adapter is therefore part of the overhead o here, and the latency "
             "L is small.");
    show_print_barrier_write(&s->beside);
    if (s->made)
        logp_models_text(s->made);
    printf("\n%d jobs, %d failed; %.0f s.\n", s->driver.jobs, s->driver.failures,
           ib_now_seconds() - s->driver.started);
}

static void show_print_real(struct json *j, const char *key, double value)
{
    if (isfinite(value))
        json_real(j, key, value);
}

static void show_write_curve(struct json *j, const char *key, const struct logp_curve *c)
{
    json_array(j, key);
    for (int i = 0; i < c->n; i++) {
        json_object(j, NULL);
        json_real(j, "p", c->p[i]);
        show_print_real(j, "us", c->us[i]);
        json_end(j);
    }
    json_end(j);
}

static void show_write_overhead(struct json *j, const char *key, const struct fit_overhead *f)
{
    json_object(j, key);
    show_print_real(j, "a", f->curve.a);
    show_print_real(j, "b", f->curve.b);
    show_print_real(j, "c", f->curve.c);
    show_print_real(j, "residual", f->residual);
    json_end(j);
}

static void show_write_verb(struct json *j, const struct logp_verb *verb, const struct logp_verb_result *of)
{
    const struct model_trip *t = &of->fit_trip.curve;
    json_object(j, NULL);
    json_string(j, "verb", verb->name);
    json_array(j, "logp");
    for (int i = 0; i < LOGP_SIZES; i++) {
        if (isnan(of->at[i].send))
            continue;
        json_object(j, NULL);
        json_int(j, "bytes", (long long)logp_sizes[i]);
        show_print_real(j, "o_s", of->at[i].send);
        show_print_real(j, "o_r", of->at[i].receive);
        show_print_real(j, "g", of->at[i].gap);
        show_print_real(j, "L", of->at[i].latency);
        json_end(j);
    }
    json_end(j);
    show_write_curve(j, "o_s", &of->single);
    show_write_overhead(j, "o_s_fit", &of->fit_single);
    show_write_curve(j, "o_s_list", &of->list);
    show_write_overhead(j, "o_s_list_fit", &of->fit_list);
    show_write_curve(j, "rtt", &of->trip);
    show_write_curve(j, "rtt_median", &of->trip_median);
    json_object(j, "rtt_fit");
    show_print_real(j, "l1", t->l1);
    show_print_real(j, "l2", t->l2);
    show_print_real(j, "l3", t->l3);
    show_print_real(j, "l4", t->l4);
    show_print_real(j, "l5", t->l5);
    show_print_real(j, "l6", t->l6);
    show_print_real(j, "residual", of->fit_trip.residual);
    json_end(j);
    json_end(j);
}

/* ---- plots ---- */

bool logp_write_chart(const struct chart *c, const char *folder, const char *name)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/%s.svg", folder, name);
    FILE *out = fopen(path, "w");
    if (out)
        chart_svg(c, out);
    if (out && fclose(out) == 0)
        return true;
    fprintf(stderr, "fishplate-lab logp: cannot write %s: %s\n", path, strerror(errno));
    return false;
}

/* Adds the measured points and the fitted curve at every p from 1 on. */
static void chart_add_curve(struct chart *c, const char *dots, const char *line, const struct logp_curve *m,
                            double (*at)(const void *, double), const void *fit)
{
    const int points = chart_line(c, dots), curve = chart_line(c, line);
    if (points < 0 || curve < 0)
        return;
    c->dots[points] = c->smooth[curve] = true;
    for (int i = 0; i < m->n; i++)
        c->y[points][(int)m->p[i] - 1] = m->us[i];
    for (int p = 1; p <= c->points && m->n > 0; p++)
        c->y[curve][p - 1] = at(fit, p);
}

static double fitted_overhead(const void *fit, double p)
{
    return model_overhead_at(&((const struct fit_overhead *)fit)->curve, p);
}

static double fitted_trip(const void *fit, double p)
{
    return model_trip_at(&((const struct fit_trip *)fit)->curve, p);
}

static struct chart chart_over_messages(const char *id, const char *title)
{
    struct chart c = {
        .id = id, .title = title, .x_name = "p", .y_name = "us", .format = "%.3f", .points = LOGP_PEERS};
    for (int p = 1; p <= LOGP_PEERS; p++)
        c.x[p - 1] = p;
    return c;
}

static void chart_trips(const struct logp_study *s, struct chart *c)
{
    *c = chart_over_messages("2.31, 2.33", "round trip of one of p messages, measured and fitted");
    chart_add_curve(c, "send", "send, fit", &s->of[0].trip, fitted_trip, &s->of[0].fit_trip);
    for (int v = 1; v < 4; v++) {
        static const char *const dots[] = {"", "send inline", "write", "write inline"},
                                 *const lines[] = {"", "send inline, fit", "write, fit", "write inline, fit"};
        chart_add_curve(c, dots[v], lines[v], &s->of[v].trip, fitted_trip, &s->of[v].fit_trip);
    }
}

/* [Hoefler05 figure 2.36]: L(p) as fitted, for normal and inline requests. */
static void chart_latencies(const struct logp_study *s, struct chart *c)
{
    static const char *const names[] = {"send", "send inline", "write", "write inline"};
    *c = chart_over_messages("2.36", "L(p) of send and RDMA write, from the fitted curves");
    for (int v = 0; v < 4; v++) {
        const struct model_lop m = logp_fitted_lop(&s->of[v]);
        const int line = chart_line(c, names[v]);
        for (int p = 1; p <= c->points && s->of[v].trip.n > 0; p++)
            c->y[line][p - 1] = model_latency_at(&m, p);
    }
}

static bool svg_write_other_trips(const struct logp_study *s, struct chart *c)
{
    static const char *const names[] = {"read", "atomic", "uc_send", "uc_write_inline", "ud_send"};
    static const char *const fits[] = {"read, fit", "atomic, fit", "uc_send, fit", "uc_write_inline, fit",
                                       "ud_send, fit"};
    *c = chart_over_messages("rtt of others", "round trip of one of p messages, measured and fitted");
    for (int i = 0; i < 5; i++) {
        const struct logp_verb_result *of = &s->of[logp_find_verb(names[i])];
        chart_add_curve(c, names[i], fits[i], &of->trip, fitted_trip, &of->fit_trip);
    }
    return logp_write_chart(c, s->svg, "rtt-others");
}

static void chart_overheads(const struct logp_study *s, struct chart *c)
{
    const struct logp_verb_result *send = &s->of[0], *write = &s->of[logp_find_verb("write_inline")];
    *c = chart_over_messages("2.32, 2.34", "overhead of posting one of p requests, measured and fitted");
    chart_add_curve(c, "send", "send, fit", &send->single, fitted_overhead, &send->fit_single);
    chart_add_curve(c, "send list", "send list, fit", &send->list, fitted_overhead, &send->fit_list);
    chart_add_curve(c, "write inline", "write inline, fit", &write->single, fitted_overhead,
                    &write->fit_single);
    chart_add_curve(c, "write inline list", "write inline list, fit", &write->list, fitted_overhead,
                    &write->fit_list);
    chart_add_curve(c, "receive", "receive, fit", &s->receive_single, fitted_overhead,
                    &s->fit_receive_single);
}

bool logp_write_svg(const struct logp_study *s)
{
    struct chart *c = malloc(sizeof(*c));
    mkdir(s->svg, 0777); /* if this fails, writing the file reports the reason */
    bool good = c != NULL;
    if (good) {
        chart_trips(s, c);
        good = logp_write_chart(c, s->svg, "rtt") && svg_write_other_trips(s, c);
        chart_overheads(s, c);
        good = good && logp_write_chart(c, s->svg, "overhead");
        chart_latencies(s, c);
        good = good && logp_write_chart(c, s->svg, "latency");
    }
    free(c);
    return good && (!s->made || logp_models_svg(s->made, s->svg));
}

/* ---- JSON ---- */

static void show_write_figures(const struct logp_study *s, struct json *j)
{
    struct chart *c = malloc(sizeof(*c));
    if (!c)
        return;
    json_array(j, "figures");
    chart_trips(s, c);
    chart_json(c, j);
    chart_overheads(s, c);
    chart_json(c, j);
    chart_latencies(s, c);
    chart_json(c, j);
    json_end(j);
    free(c);
}

void logp_write_json(const struct logp_study *s)
{
    struct json j = {.out = stdout};
    json_object(&j, NULL);
    json_string(&j, "program", "fishplate-lab logp");
    json_string(&j, "adapter", s->driver.adapter);
    json_int(&j, "cores", s->driver.cores);
    json_array(&j, "verbs");
    for (int v = 0; v < logp_nverbs; v++)
        if (s->of[v].trip.n > 0)
            show_write_verb(&j, &logp_verbs[v], &s->of[v]);
    json_end(&j);
    show_write_curve(&j, "o_r", &s->receive_single);
    show_write_overhead(&j, "o_r_fit", &s->fit_receive_single);
    show_write_curve(&j, "o_r_list", &s->receive_list);
    show_write_overhead(&j, "o_r_list_fit", &s->fit_receive_list);
    if (isfinite(s->beside.ratio)) {
        json_object(&j, "barrier_beside_write");
        json_real(&j, "barrier_us", s->beside.barrier);
        json_real(&j, "write_us", s->beside.write);
        json_real(&j, "ratio", s->beside.ratio);
        json_real(&j, "barrier_best_us", s->beside.barrier_best);
        json_real(&j, "write_best_us", s->beside.write_best);
        json_end(&j);
    }
    show_write_figures(s, &j);
    if (s->made)
        logp_models_json(s->made, &j);
    json_int(&j, "failures", s->driver.failures);
    json_real(&j, "seconds", ib_now_seconds() - s->driver.started);
    json_end(&j);
    putchar('\n');
}
