/* judge.c: compares what a paper says of a figure with our result. The rules are few and are printed on the page, and
 * every verdict names the numbers it is based on, so that a reader can check it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "papers.h"

const char *const verdict_names[VERDICTS] = {"agrees", "partly", "differs", "beside"};

struct tally {
    struct finding *out;
    int good, bad;
};

static void say(struct tally *y, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct tally *y, const char *format, ...)
{
    size_t used = strlen(y->out->text);
    va_list args;
    va_start(args, format);
    vsnprintf(y->out->text + used, sizeof(y->out->text) - used, format, args);
    va_end(args);
}

/* A column's name without its unit: the sentence has one already. */
static int plain(const char *name)
{
    const char *unit = strstr(name, ", us");
    unit = unit ? unit : strstr(name, ", MB/s");
    return unit ? (int)(unit - name) : (int)strlen(name);
}

/* By how many per cent a is better than b: less time, or more of a rate. */
static double gain(const struct entry *e, double a, double b)
{
    return e->better == BETTER_LOWER ? 100 * (1 - a / b) : 100 * (a / b - 1);
}

static void name_row(const struct table *t, int row, char out[64])
{
    table_print_cell(table_cell(t, row, 0), out);
}

static double at(const struct table *t, int row, int column)
{
    const struct cell *c = table_cell(t, row, column);
    return c->text || !(c->value > 0) ? NAN : c->value;
}

static bool columns_of(struct tally *y, const struct table *t, const struct check *k, int *a, int *b)
{
    *a = table_find(t, k->a);
    *b = k->b ? table_find(t, k->b) : 0;
    if (*a > 0 && *b >= 0)
        return true;
    say(y, "There is no column \"%s\" here. ", *a > 0 ? k->b : k->a);
    y->bad++;
    return false;
}

/* A gain agrees when ours is at least half of the paper's. */
static void check_gain(struct tally *y, const struct entry *e, const struct table *t, const struct check *k)
{
    int a, b, best_row = -1;
    double best = -INFINITY;
    char row[64];
    if (!columns_of(y, t, k, &a, &b))
        return;
    for (int r = 0; r < t->rows; r++) {
        double g = gain(e, at(t, r, a), at(t, r, b));
        if (g > best) {
            best = g;
            best_row = r;
        }
    }
    if (best_row < 0)
        return;
    bool good = best >= k->want / 2 && best > 0;
    name_row(t, best_row, row);
    if (best < 0)
        say(y, "%.*s is nowhere better than %.*s (nearest at %s, %.0f %% worse; goal: %.4g %% better). ",
            plain(k->a), k->a, plain(k->b), k->b, row, -best, k->want);
    else
        say(y, "%.*s is up to %.0f %% better than %.*s, at %s (goal: %.4g %%). ", plain(k->a), k->a, best,
            plain(k->b), k->b, row, k->want);
    *(good ? &y->good : &y->bad) += 1;
}

static void check_alike(struct tally *y, const struct table *t, const struct check *k)
{
    int a, b, n = 0;
    double sum = 0;
    if (!columns_of(y, t, k, &a, &b))
        return;
    for (int r = 0; r < t->rows; r++) {
        double ratio = at(t, r, a) / at(t, r, b);
        if (!isnan(ratio)) {
            sum += fabs(log(ratio));
            n++;
        }
    }
    double apart = n ? 100 * (exp(sum / n) - 1) : INFINITY;
    *(apart <= k->want ? &y->good : &y->bad) += 1;
    say(y, "%.*s and %.*s differ by %.0f %% in the mean (limit: %.3g %%). ", plain(k->a), k->a, plain(k->b),
        k->b, apart, k->want);
}

static void check_growth(struct tally *y, const struct table *t, const struct check *k)
{
    int a, b, first = -1, last = -1;
    if (!columns_of(y, t, k, &a, &b))
        return;
    for (int r = 0; r < t->rows; r++)
        if (!isnan(at(t, r, a))) {
            first = first < 0 ? r : first;
            last = r;
        }
    if (first == last) {
        say(y, "%s has too few values. ", k->a);
        y->bad++;
        return;
    }
    double factor = at(t, last, a) / at(t, first, a);
    bool good = k->kind == CHECK_GROWS ? factor >= k->want : factor <= 1 + k->want / 100;
    *(good ? &y->good : &y->bad) += 1;
    say(y, "%s in the last row is %.2f times the value in the first row (paper: %s). ", k->a, factor,
        k->kind == CHECK_GROWS ? "it grows"
        : k->want < 0          ? "it falls"
                               : "it stays");
}

static void check_extreme(struct tally *y, const struct entry *e, const struct table *t,
                          const struct check *k)
{
    int a, b, row = t->rows - 1;
    char name[64];
    if (!columns_of(y, t, &(struct check){.a = k->a}, &a, &b))
        return;
    bool good = true;
    for (int c = 1; c < t->columns; c++) {
        if (k->b && !strstr(k->b, t->names[c]))
            continue;
        double g = gain(e, at(t, row, a), at(t, row, c));
        /* Three per cent is within what a run differs from the next. */
        good = good && (isnan(g) || (k->kind == CHECK_BEST ? g > -3 : g < 3));
    }
    name_row(t, row, name);
    *(good ? &y->good : &y->bad) += 1;
    say(y, "%s is %sthe %s at %s. ", k->a, good ? "" : "not ", k->kind == CHECK_BEST ? "best" : "worst",
        name);
}

static void check_says(struct tally *y, const struct table *t)
{
    int agree = 0;
    for (int r = 0; r < t->rows; r++)
        agree += strcmp(table_cell(t, r, 3)->text, "yes") == 0;
    y->good += agree;
    y->bad += t->rows - agree;
    say(y, "%d of %d statements agree. ", agree, t->rows);
}

static void check_beside(struct tally *y, const struct entry *e, const struct table *t, const struct check *k)
{
    int a, b;
    double best = NAN;
    struct cell shown = {0};
    char text[64];
    if (!columns_of(y, t, &(struct check){.a = k->a}, &a, &b))
        return;
    for (int r = 0; r < t->rows; r++) {
        double value = at(t, r, a);
        if (isnan(best) || (e->better == BETTER_HIGHER ? value > best : value < best))
            best = value;
    }
    if (isnan(best)) {
        say(y, "%s: below the measurement noise here, %.6g %s in the paper. ", k->a, k->want, k->unit);
        return;
    }
    shown.value = best;
    table_print_cell(&shown, text);
    say(y, "%s: %s %s here, %.6g %s in the paper. ", k->a, text, k->unit, k->want, k->unit);
}

void judge(const struct entry *e, const struct table *t, bool busy, struct finding *out)
{
    struct tally y = {.out = out};
    out->text[0] = 0;
    for (const struct check *k = e->checks; k < e->checks + CHECKS_MAX && k->kind != CHECK_NONE; k++) {
        if (k->kind == CHECK_GAIN)
            check_gain(&y, e, t, k);
        else if (k->kind == CHECK_ALIKE)
            check_alike(&y, t, k);
        else if (k->kind == CHECK_GROWS || k->kind == CHECK_FLAT)
            check_growth(&y, t, k);
        else if (k->kind == CHECK_BEST || k->kind == CHECK_WORST)
            check_extreme(&y, e, t, k);
        else if (k->kind == CHECK_SAYS)
            check_says(&y, t);
        else
            check_beside(&y, e, t, k);
    }
    out->verdict = y.good + y.bad == 0 ? VERDICT_BESIDE
                   : y.bad == 0        ? VERDICT_AGREES
                   : y.good == 0       ? VERDICT_DIFFERS
                                       : VERDICT_PARTLY;
    bool differs = out->verdict == VERDICT_DIFFERS || out->verdict == VERDICT_PARTLY;
    if (differs && busy && strcmp(t->over, "simulated") != 0)
        say(&y, "Other programs were running, so this result is unreliable. ");
    if (out->verdict == VERDICT_BESIDE && e->take == TAKE_PROFILE)
        say(&y, "Shown side by side, not judged. ");
    else if (out->verdict == VERDICT_BESIDE)
        say(&y, "Other hardware: shown side by side, not judged.");
    if (e->why && (differs || e->take == TAKE_PROFILE))
        say(&y, "%s", e->why);
}
