/* compare.c: compares a run with an earlier one. The score of a round is the geometric mean of an entry's
 * figures; Welch's t-test compares the scores of the rounds of both runs, on logarithms. Figures of one
 * round are not independent (a busy machine slows all of them), so a round counts as one sample regardless
 * of its number of figures. Holm's correction keeps the probability of any false alarm among all entries
 * below 5 %.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "papers.h"

const char *const change_names[] = {"", "better", "worse", "within noise", "not comparable"};
static const double alarm = 0.05;

/* Continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_continued_fraction(double a, double b, double x)
{
    double c = 1, d = 1 - (a + b) * x / (a + 1), h;
    d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
    h = d;
    for (int m = 1; m <= 500; m++) {
        for (int odd = 0; odd < 2; odd++) {
            double k = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                           : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
            d = 1 + k * d;
            d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
            c = 1 + k / (fabs(c) < 1e-300 ? 1e-300 : c);
            h *= c * d;
        }
        if (fabs(c * d - 1) < 1e-14)
            break;
    }
    return h;
}

static double beta_incomplete(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x));
    return x < (a + 1) / (a + b + 2) ? front * beta_continued_fraction(a, b, x) / a
                                     : 1 - front * beta_continued_fraction(b, a, 1 - x) / b;
}

double student_two_sided_p(double t, double freedom)
{
    return beta_incomplete(freedom / 2, 0.5, freedom / (freedom + t * t));
}

static void welch_compute_mean_and_variance(const double *x, int n, double *mean, double *variance)
{
    *mean = *variance = 0;
    for (int i = 0; i < n; i++)
        *mean += x[i] / n;
    for (int i = 0; i < n; i++)
        *variance += (x[i] - *mean) * (x[i] - *mean) / (n - 1);
}

bool welch_test(const double *a, int na, const double *b, int nb, double *ratio, double *p)
{
    double ma, mb, va, vb;
    if (na < 2 || nb < 2)
        return false;
    welch_compute_mean_and_variance(a, na, &ma, &va);
    welch_compute_mean_and_variance(b, nb, &mb, &vb);
    *ratio = exp(mb - ma);
    va /= na;
    vb /= nb;
    if (va + vb < 1e-24) { /* both runs give constant values: any difference is significant */
        *p = fabs(mb - ma) < 1e-9 ? 1 : 0;
        return true;
    }
    double freedom = (va + vb) * (va + vb) / (va * va / (na - 1) + vb * vb / (nb - 1));
    *p = student_two_sided_p((mb - ma) / sqrt(va + vb), freedom);
    return true;
}

/* sum[w][i] is the sum of the logarithms of sample i of all cells that both runs have; rounds[w] is the
 * number of samples that each of these cells has. Run 0 is the earlier run, run 1 the present run. */
struct scores {
    double sum[2][ROUNDS_MAX];
    int rounds[2], cells;
};

static int report_read_samples(const struct value *v, double out[ROUNDS_MAX])
{
    int n = 0;
    for (v = v ? v->first : NULL; v && n < ROUNDS_MAX; v = v->next)
        if (v->kind == VALUE_NUMBER)
            out[n++] = v->number;
    return n;
}

static void scores_add_cell(struct scores *s, const double *old, int nold, const double *new, int nnew)
{
    const double *samples[2] = {old, new};
    int n[2] = {nold, nnew};
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < n[w]; i++)
            if (!(samples[w][i] > 0))
                return; /* zero and negative values have no logarithm */
    if (nold == 0 || nnew == 0)
        return;
    for (int w = 0; w < 2; w++) {
        for (int i = 0; i < n[w]; i++)
            s->sum[w][i] += log(samples[w][i]);
        if (s->cells == 0 || n[w] < s->rounds[w])
            s->rounds[w] = n[w];
    }
    s->cells++;
}

static const struct value *report_find_row(const struct value *entry, const struct cell *name)
{
    for (const struct value *r = value_first_element(entry, "rows"); r; r = r->next) {
        const struct value *x = value_get(r, "row");
        if (x && (name->text
                      ? x->kind == VALUE_STRING && strcmp(x->text, name->text) == 0
                      : x->kind == VALUE_NUMBER && fabs(x->number - name->value) <= 1e-6 * fabs(name->value)))
            return r;
    }
    return NULL;
}

static void compare_result(struct result *r, const struct value *entry)
{
    struct scores s = {.cells = 0};
    double old[ROUNDS_MAX];
    const struct table *t = r->table;
    r->change = CHANGE_UNKNOWN;
    for (int row = 0; row < t->rows; row++) {
        const struct value *had = value_get(report_find_row(entry, table_cell(t, row, 0)), "samples");
        for (int c = 1; had && c < t->columns; c++) {
            const struct cell *cell = table_cell(t, row, c);
            scores_add_cell(&s, old, report_read_samples(value_get(had, t->names[c]), old), cell->sample,
                            cell->samples);
        }
    }
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < s.rounds[w]; i++)
            s.sum[w][i] /= s.cells;
    if (s.cells > 0 && r->source->same_always && s.rounds[0] == 1 && s.rounds[1] == 1) {
        /* Simulated figures are reproducible, so any difference is significant. */
        double apart = s.sum[1][0] - s.sum[0][0];
        r->ratio = exp(apart);
        r->p = fabs(apart) < 1e-6 ? 1 : 0;
        r->change = CHANGE_NOISE;
    } else if (s.cells > 0 && welch_test(s.sum[0], s.rounds[0], s.sum[1], s.rounds[1], &r->ratio, &r->p))
        r->change = CHANGE_NOISE;
}

static int compare_by_p(const void *a, const void *b)
{
    double x = (*(struct result *const *)a)->p, y = (*(struct result *const *)b)->p;
    return (x > y) - (x < y);
}

/* Holm: compares the smallest p with alarm/n, the next with alarm/(n-1) ..., until one is not below. */
static void compare_apply_holm(struct papers_run *run)
{
    struct result **list = calloc((size_t)run->results_count + 1, sizeof(*list));
    int n = 0;
    for (int i = 0; list && i < run->results_count; i++)
        if (run->results[i].change == CHANGE_NOISE && run->results[i].entry->better != BETTER_NEITHER)
            list[n++] = &run->results[i];
    if (list)
        qsort(list, (size_t)n, sizeof(*list), compare_by_p);
    for (int i = 0; i < n && list[i]->p < alarm / (n - i); i++) {
        bool more = list[i]->ratio > 1;
        list[i]->change = more == (list[i]->entry->better == BETTER_HIGHER) ? CHANGE_BETTER : CHANGE_WORSE;
    }
    free(list);
}

/* Earlier versions wrote "fishplate bench papers" into their reports. */
static bool program_wrote_reports(const char *program)
{
    return strcmp(program, "fishplate-lab papers") == 0 || strcmp(program, "fishplate bench papers") == 0;
}

bool papers_compare(struct papers_run *run, const char *path)
{
    struct value *old = value_read(path);
    if (!old || !program_wrote_reports(value_text(old, "program"))) {
        fprintf(stderr, "fishplate-lab papers: %s is not a report of `fishplate-lab papers --json`.\n", path);
        value_free(old);
        return false;
    }
    for (int i = 0; i < run->results_count; i++) {
        struct result *r = &run->results[i];
        for (const struct value *e = value_first_element(old, "entries"); e && r->table; e = e->next)
            if (strcmp(value_text(e, "id"), r->entry->id) == 0)
                compare_result(r, e);
    }
    compare_apply_holm(run);
    value_free(old);
    return true;
}
