/* forms.c: fits the forms to measured and simulated barriers by least squares, and prints the parameters with
 * their standard errors (forms.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "forms.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/sim/job.h"

/* Groups of [Hoefler05 2.2.5], and the form of their time for a large number P of ranks. */
static const struct group {
    const char *algorithm, *figure, *form;
    int base; /* base of the logarithm; 0: the time is proportional to P */
    bool has_constant;
} groups[LOGP_GROUPS] = {
    {"central", "2.14", "a + b P", 0, true},
    {"combining", "2.16", "a + b ceil(log4 P)", 4, true},
    {"tournament", "2.18", "a + b ceil(log2 P)", 2, true},
    {"dissemination", "2.20", "b ceil(log2 P)", 2, false},
};

static double form_steps(const struct group *g, double ranks)
{
    return g->base ? model_log_up(g->base, (int)ranks) : ranks;
}

static void form_fit(const struct group *g, struct logp_form *f)
{
    double x[LOGP_FORM_POINTS];
    for (int i = 0; i < f->n; i++)
        x[i] = form_steps(g, f->ranks[i]);
    f->fit = fit_line(x, f->us, f->n, g->has_constant);
}

void logp_forms_add_measured(struct logp_forms *f, const char *algorithm, const double *ranks,
                             const double *us, int n)
{
    for (int g = 0; g < LOGP_GROUPS; g++) {
        struct logp_form *form = &f->measured[g];
        if (strcmp(groups[g].algorithm, algorithm) != 0)
            continue;
        form->n = n < LOGP_FORM_POINTS ? n : LOGP_FORM_POINTS;
        memcpy(form->ranks, ranks, sizeof(*ranks) * (size_t)form->n);
        memcpy(form->us, us, sizeof(*us) * (size_t)form->n);
        form_fit(&groups[g], form);
    }
}

void logp_forms_simulate(struct logp_forms *f)
{
    struct machine one_switch = machine_preset; /* one switch for all nodes, as in [Hoefler05] */
    one_switch.radix = 128;
    for (int g = 0; g < LOGP_GROUPS; g++) {
        struct logp_form *form = &f->simulated[g];
        for (int ranks = 4; ranks <= 66; ranks += 2) {
            const struct job_order order = {.machine = &one_switch,
                                            .algorithm = algorithm_find(COLL_BARRIER, groups[g].algorithm),
                                            .ranks = ranks,
                                            .per_node = 1,
                                            .most_steps = 1 << 20};
            struct job_report report;
            job_simulate(&order, &report);
            if (report.failed || form->n == LOGP_FORM_POINTS)
                continue;
            form->ranks[form->n] = ranks;
            form->us[form->n++] = report.us;
        }
        form_fit(&groups[g], form);
    }
}

/* Standard error in percent of the parameter; NAN: unknown. */
static double form_error_percent(double error, double value)
{
    return error < 0 || value == 0 ? NAN : 100 * error / fabs(value);
}

static void form_print_text(const char *what, const struct group *g, const struct logp_form *f)
{
    if (f->fit.slope_error < 0)
        return;
    printf("%-14s %-10s %-20s %4d %9.3f", g->algorithm, what, g->form, f->n, f->fit.slope);
    printf(" %8.1f %%", form_error_percent(f->fit.slope_error, f->fit.slope));
    if (g->has_constant)
        printf(" %9.3f %8.3f", f->fit.constant, f->fit.constant_error);
    putchar('\n');
}

void logp_forms_text(const struct logp_forms *f)
{
    printf("\nThe forms of LogP fitted to barriers, in us [Hoefler05 figures 2.14 to 2.20; the paper reports "
           "errors under "
           "5 %%]\n\n%-14s %-10s %-20s %4s %9s %10s %9s %8s\n",
           "algorithm", "", "form", "n", "b", "error", "a", "error");
    for (int g = 0; g < LOGP_GROUPS; g++) {
        form_print_text("simulated", &groups[g], &f->simulated[g]);
        form_print_text("measured", &groups[g], &f->measured[g]);
    }
    if (f->measured[0].fit.slope_error < 0)
        puts("No measured fit: fewer than three numbers of ranks have a core for every rank here.");
}

static void form_write_json(struct json *j, const char *what, const struct group *g,
                            const struct logp_form *f)
{
    char name[64];
    if (f->fit.slope_error < 0)
        return;
    snprintf(name, sizeof(name), "%s, %s", g->algorithm, what);
    json_array(j, NULL);
    json_string(j, NULL, name);
    json_string(j, NULL, g->form);
    json_int(j, NULL, f->n);
    json_real(j, NULL, f->fit.slope);
    json_real(j, NULL, form_error_percent(f->fit.slope_error, f->fit.slope));
    json_end(j);
}

void logp_forms_json(const struct logp_forms *f, struct json *j)
{
    static const char *const columns[] = {"barrier", "form", "points", "b, us", "error of b, %"};
    json_array(j, "tables");
    json_object(j, NULL);
    json_string(j, "title", "Forms of LogP fitted to barriers [Hoefler05 figs 2.14 to 2.20]");
    json_string(j, "adapter", "simulated");
    json_array(j, "columns");
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        json_string(j, NULL, columns[i]);
    json_end(j);
    json_array(j, "rows");
    for (int g = 0; g < LOGP_GROUPS; g++) {
        form_write_json(j, "simulated", &groups[g], &f->simulated[g]);
        form_write_json(j, "measured", &groups[g], &f->measured[g]);
    }
    json_end(j);
    json_end(j);
    json_end(j);
}
