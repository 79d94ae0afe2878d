/* judge.c: compares the claim of a paper about a figure with our result. The rules are few and are printed
 * on the page, and every verdict names the numbers and rows on which it is based, so that a reader can
 * check it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "papers.h"

const char *const verdict_names[VERDICTS] = {"agrees",     "partly",     "differs", "side by side",
                                             "unreliable", "not judged", "fitted"};
const char *const verdict_keys[VERDICTS] = {"agrees",     "partly",   "differs", "beside",
                                            "unreliable", "unjudged", "fitted"};

struct tally {
    struct finding *out;
    const struct entry *entry;
    const struct table *table;
    int good, bad, lacking; /* lacking: the run has no rows to which the claim applies */
    bool rounds_contradict;
};

static void judge_add_remark(struct tally *y, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void judge_add_remark(struct tally *y, const char *format, ...)
{
    size_t used = strlen(y->out->text);
    va_list args;
    va_start(args, format);
    vsnprintf(y->out->text + used, sizeof(y->out->text) - used, format, args);
    va_end(args);
}

static void judge_count(struct tally *y, bool good)
{
    *(good ? &y->good : &y->bad) += 1;
}

/* Length of a column's name without its unit, which the sentence prints separately. */
static int judge_name_length_without_unit(const char *name)
{
    const char *unit = strstr(name, ", us");
    unit = unit ? unit : strstr(name, ", MB/s");
    return unit ? (int)(unit - name) : (int)strlen(name);
}

static void row_copy_name(const struct table *t, int row, char out[64])
{
    table_print_cell(table_cell(t, row, 0), out);
}

/* The number in a row's name: 4 from "4" or "4 KiB"; NAN for other names. */
static double row_number(const struct table *t, int row)
{
    const struct cell *c = table_cell(t, row, 0);
    char *end;
    if (!c->text)
        return c->value;
    double x = strtod(c->text, &end);
    if (end == c->text)
        return NAN;
    while (*end == ' ')
        end++;
    return *end == 'k' || *end == 'K' ? x * 1024 : *end == 'M' ? x * 1048576 : x;
}

/* Whether the claim applies to this row. */
static bool row_is_judged(const struct table *t, const struct check *k, int row)
{
    double x = row_number(t, row);
    return !(k->from > 0 && x < k->from) && !(k->to > 0 && x > k->to);
}

static double cell_value(const struct table *t, int row, int column)
{
    const struct cell *c = table_cell(t, row, column);
    return c->text || !(c->value > 0) ? NAN : c->value;
}

/* Logarithm of the factor by which a is better than b. */
static double judge_effect(const struct entry *e, double a, double b)
{
    return e->better == BETTER_LOWER ? log(b / a) : log(a / b);
}

/* Effect in percent as papers print it: reduction of time, or increase of rate. */
static double effect_percent(const struct entry *e, double effect)
{
    return e->better == BETTER_LOWER ? 100 * (1 - exp(-effect)) : 100 * (exp(effect) - 1);
}

static double effect_from_percent(const struct entry *e, double gain)
{
    return e->better == BETTER_LOWER ? -log(1 - gain / 100) : log(1 + gain / 100);
}

static bool tally_find_columns(struct tally *y, const struct check *k, int *a, int *b)
{
    *a = table_find_column(y->table, k->a);
    *b = k->b ? table_find_column(y->table, k->b) : 0;
    if (*a > 0 && *b >= 0)
        return true;
    judge_add_remark(y, "There is no column \"%s\" here. ", *a > 0 ? k->b : k->a);
    y->bad++;
    return false;
}

static int compare_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double judge_median(double *x, int n)
{
    if (n == 0)
        return NAN;
    qsort(x, (size_t)n, sizeof(*x), compare_by_value);
    return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

/* ---- One column against another ---- */

enum { ROWS_MAX = 64, ROWS_NAMED = 7 };

struct effects {
    int n, rows[ROWS_MAX];
    double of[ROWS_MAX];
    /* median over the rows; lowest and highest median of a single round, NAN if there is one round */
    double median, lowest_round, highest_round;
};

static double effects_round_median(const struct entry *e, const struct table *t, const struct effects *f,
                                   int a, int b, int round)
{
    double list[ROWS_MAX] = {0};
    int n = 0;
    for (int i = 0; i < f->n; i++) {
        const struct cell *x = table_cell(t, f->rows[i], a), *y = table_cell(t, f->rows[i], b);
        if (round < x->samples && round < y->samples && x->sample[round] > 0 && y->sample[round] > 0)
            list[n++] = judge_effect(e, x->sample[round], y->sample[round]);
    }
    return judge_median(list, n);
}

static struct effects tally_collect_effects(const struct tally *y, const struct check *k, int a, int b)
{
    const struct table *t = y->table;
    struct effects f = {.n = 0};
    double sorted[ROWS_MAX] = {0};
    for (int r = 0; r < t->rows && f.n < ROWS_MAX; r++) {
        double x = judge_effect(y->entry, cell_value(t, r, a), cell_value(t, r, b));
        if (isnan(x) || !row_is_judged(t, k, r))
            continue;
        f.rows[f.n] = r;
        f.of[f.n++] = x;
    }
    memcpy(sorted, f.of, sizeof(sorted));
    f.median = judge_median(sorted, f.n);
    f.lowest_round = INFINITY;
    f.highest_round = -INFINITY;
    for (int round = 0; f.n > 0 && round < table_cell(t, f.rows[0], a)->samples; round++) {
        double m = effects_round_median(y->entry, t, &f, a, b, round);
        f.lowest_round = fmin(f.lowest_round, m);
        f.highest_round = fmax(f.highest_round, m);
    }
    return f;
}

static void tally_print_effects(struct tally *y, const struct effects *f)
{
    char row[64];
    int step = (f->n + ROWS_NAMED - 1) / ROWS_NAMED;
    for (int i = 0; i < f->n; i += step) {
        row_copy_name(y->table, f->rows[i], row);
        judge_add_remark(y, "%s%s: %.0f", i ? ", " : "", row, effect_percent(y->entry, f->of[i]));
    }
}

/* Judges the median of the rows to which the claim applies: the logarithm of the ratio must be between
 * half and twice the logarithm that the paper prints, because a much larger effect has another cause.
 * CHECK_BETTER: the paper prints no number; `want` percent is the minimum. */
static void check_gain(struct tally *y, const struct check *k)
{
    int a, b;
    if (!tally_find_columns(y, k, &a, &b))
        return;
    const struct effects f = tally_collect_effects(y, k, a, b);
    if (f.n == 0) {
        judge_add_remark(y, "%.*s and %.*s have no row that the claim speaks of in this run. ",
                         judge_name_length_without_unit(k->a), k->a, judge_name_length_without_unit(k->b),
                         k->b);
        y->lacking++;
        return;
    }
    const double goal = effect_from_percent(y->entry, k->want);
    const bool only_least = k->kind == CHECK_BETTER;
    const double least = only_least ? goal : goal / 2, most = only_least ? INFINITY : 2 * goal;
    const bool lower = y->entry->better == BETTER_LOWER;
    judge_add_remark(y, "%.*s has %.0f %% %s than %.*s in the median of %d row%s (",
                     judge_name_length_without_unit(k->a), k->a, fabs(effect_percent(y->entry, f.median)),
                     lower == (f.median >= 0) ? "less" : "more", judge_name_length_without_unit(k->b), k->b,
                     f.n, f.n == 1 ? "" : "s");
    tally_print_effects(y, &f);
    if (only_least)
        judge_add_remark(y, "; the paper prints no number, at least %.3g expected)", k->want);
    else
        judge_add_remark(y, "; paper %.4g, so %.0f to %.0f agrees)", k->want, effect_percent(y->entry, least),
                         effect_percent(y->entry, most));
    if (f.lowest_round < 0 && f.highest_round > 0) {
        judge_add_remark(y, ", but rounds contradict each other (%.0f to %.0f)",
                         effect_percent(y->entry, f.lowest_round), effect_percent(y->entry, f.highest_round));
        y->rounds_contradict = true;
    } else if (f.median > most)
        judge_add_remark(y, ": more than the paper's effect");
    judge_add_remark(y, ". ");
    judge_count(y, f.median >= least && f.median <= most);
}

static void check_alike(struct tally *y, const struct check *k)
{
    int a, b;
    double sum = 0, widest = 0;
    char row[64] = "-";
    if (!tally_find_columns(y, k, &a, &b))
        return;
    const struct effects f = tally_collect_effects(y, k, a, b);
    for (int i = 0; i < f.n; i++) {
        sum += fabs(f.of[i]);
        if (fabs(f.of[i]) >= widest) {
            widest = fabs(f.of[i]);
            row_copy_name(y->table, f.rows[i], row);
        }
    }
    double apart = f.n ? 100 * (exp(sum / f.n) - 1) : INFINITY;
    judge_count(y, apart <= k->want);
    judge_add_remark(
        y,
        "%.*s and %.*s differ by %.0f %% in the mean of %d rows, most at %s with %.0f %% (limit: %.3g %%). ",
        judge_name_length_without_unit(k->a), k->a, judge_name_length_without_unit(k->b), k->b, apart, f.n,
        row, 100 * (exp(widest) - 1), k->want);
}

/* ---- One column from row to row ---- */

static void check_growth(struct tally *y, const struct check *k)
{
    const struct table *t = y->table;
    int a, b, first = -1, last = -1;
    double low = INFINITY, high = 0;
    char from[64], to[64];
    if (!tally_find_columns(y, k, &a, &b))
        return;
    for (int r = 0; r < t->rows; r++) {
        double x = cell_value(t, r, a);
        if (isnan(x) || !row_is_judged(t, k, r))
            continue;
        first = first < 0 ? r : first;
        last = r;
        low = fmin(low, x);
        high = fmax(high, x);
    }
    if (first == last) {
        judge_add_remark(y, "%s has too few rows in this run. ", k->a);
        y->lacking++;
        return;
    }
    double factor = cell_value(t, last, a) / cell_value(t, first, a);
    row_copy_name(t, first, from);
    row_copy_name(t, last, to);
    if (k->kind == CHECK_STAYS) {
        judge_count(y, high / low <= 1 + k->want / 100);
        judge_add_remark(
            y,
            "%s: the highest of the rows %s to %s is %.2f times the lowest (paper: constant; limit %.2f). ",
            k->a, from, to, high / low, 1 + k->want / 100);
        return;
    }
    const bool grows = k->kind == CHECK_GROWS;
    judge_count(y, grows ? factor >= k->want : factor <= k->want);
    judge_add_remark(y, "%s at %s is %.2f times the value at %s (paper: it %s; %s %.2f expected). ", k->a, to,
                     factor, from, grows ? "grows" : "falls", grows ? "at least" : "at most", k->want);
}

/* ---- One column among others ---- */

/* Finds the strongest rival of column `a` among the columns named in k->b, or among all: the best column
 * for CHECK_BEST, the worst column for CHECK_WORST, by the median of the rows. Returns -1 if there is
 * none. */
static int tally_find_rival(const struct tally *y, const struct check *k, int a, struct effects *of)
{
    int found = -1;
    for (int c = 1; c < y->table->columns; c++) {
        if (c == a || (k->b && !strstr(k->b, y->table->names[c])))
            continue;
        const struct effects f = tally_collect_effects(y, k, a, c);
        const double sign = k->kind == CHECK_BEST ? 1 : -1;
        if (f.n > 0 && (found < 0 || sign * f.median < sign * of->median)) {
            found = c;
            *of = f;
        }
    }
    return found;
}

static void check_extreme(struct tally *y, const struct check *k)
{
    int a, b;
    char from[64], to[64];
    struct effects f = {.n = 0};
    const bool best = k->kind == CHECK_BEST;
    if (!tally_find_columns(y, &(struct check){.a = k->a}, &a, &b))
        return;
    const int rival = tally_find_rival(y, k, a, &f);
    if (rival < 0) {
        judge_add_remark(y, "%s has no row that the claim speaks of in this run. ", k->a);
        y->lacking++;
        return;
    }
    const bool good = best ? f.median > 0 : f.median < 0;
    const char *winner = y->table->names[good ? a : rival], *second = y->table->names[good ? rival : a];
    row_copy_name(y->table, f.rows[0], from);
    row_copy_name(y->table, f.rows[f.n - 1], to);
    judge_add_remark(y, "%s is the %s at %s", winner, best ? "best" : "worst", from);
    if (f.n > 1)
        judge_add_remark(y, " to %s", to);
    judge_add_remark(y, " (%.1f %% %s than %s in the median of rows). ",
                     fabs(effect_percent(y->entry, f.median)), best ? "better" : "worse", second);
    judge_count(y, good);
}

/* Whether the column is best in the row that the paper names. */
static void check_peak(struct tally *y, const struct check *k)
{
    const struct table *t = y->table;
    int a, b, best = -1;
    if (!tally_find_columns(y, k, &a, &b))
        return;
    for (int r = 0; r < t->rows; r++)
        if (!isnan(cell_value(t, r, a)) && row_is_judged(t, k, r) &&
            (best < 0 || judge_effect(y->entry, cell_value(t, r, a), cell_value(t, best, a)) > 0))
            best = r;
    if (best < 0) {
        judge_add_remark(y, "%s has no values in this run. ", k->a);
        y->lacking++;
        return;
    }
    judge_count(y, fabs(row_number(t, best) - k->want) < 0.5);
    judge_add_remark(y, "%s is best at %.0f (paper: %.0f). ", k->a, row_number(t, best), k->want);
}

static void check_statements(struct tally *y)
{
    const struct table *t = y->table;
    int agree = 0;
    for (int r = 0; r < t->rows; r++)
        agree += strcmp(table_cell(t, r, 3)->text, "yes") == 0;
    y->good += agree;
    y->bad += t->rows - agree;
    judge_add_remark(y, "%d of %d statements agree. ", agree, t->rows);
}

static void check_print_best(struct tally *y, const struct check *k)
{
    int a, b;
    double best = NAN;
    struct cell shown = {0};
    char text[64];
    if (!tally_find_columns(y, &(struct check){.a = k->a}, &a, &b))
        return;
    for (int r = 0; r < y->table->rows; r++) {
        double value = cell_value(y->table, r, a);
        if (isnan(best) || (y->entry->better == BETTER_HIGHER ? value > best : value < best))
            best = value;
    }
    if (isnan(best)) {
        judge_add_remark(y, "%s: below the measurement noise here, %.6g %s in the paper. ", k->a, k->want,
                         k->unit);
        return;
    }
    shown.value = best;
    table_print_cell(&shown, text);
    judge_add_remark(y, "%s: %s %s here, %.6g %s in the paper. ", k->a, text, k->unit, k->want, k->unit);
}

/* Checks the cell at row a, column b: equal to `want` within a factor of `from`; `want` 0: at most `to`. */
static void check_number(struct tally *y, const struct check *k)
{
    const struct table *t = y->table;
    const int column = table_find_column(t, k->b);
    int row = -1;
    for (int r = 0; r < t->rows && column > 0; r++) {
        const struct cell *name = table_cell(t, r, 0);
        if (name->text && strncmp(name->text, k->a, strlen(k->a)) == 0)
            row = r;
    }
    if (row < 0 || isnan(table_cell(t, row, column)->value)) {
        judge_add_remark(y, "%s, %s: not in this run. ", k->a, k->b);
        y->lacking++;
        return;
    }
    const double x = table_cell(t, row, column)->value, within = k->from > 1 ? k->from : 1;
    judge_count(y, k->want > 0 ? x >= k->want / within && x <= k->want * within : x <= k->to);
    if (k->want > 0)
        judge_add_remark(y, "%s, %s: %.6g (paper %.6g; within a factor of %.3g). ", k->a, k->b, x, k->want,
                         within);
    else
        judge_add_remark(y, "%s, %s: %.3g (paper: at most %.6g). ", k->a, k->b, x, k->to);
}

static void judge_check(struct tally *y, const struct check *k)
{
    switch (k->kind) {
    case CHECK_NONE:
        break;
    case CHECK_GAIN:
    case CHECK_BETTER:
        check_gain(y, k);
        break;
    case CHECK_ALIKE:
        check_alike(y, k);
        break;
    case CHECK_GROWS:
    case CHECK_FALLS:
    case CHECK_STAYS:
        check_growth(y, k);
        break;
    case CHECK_BEST:
    case CHECK_WORST:
        check_extreme(y, k);
        break;
    case CHECK_PEAK:
        check_peak(y, k);
        break;
    case CHECK_NUMBER:
        check_number(y, k);
        break;
    case CHECK_STATEMENTS:
        check_statements(y);
        break;
    case CHECK_PRINT_ONLY:
        check_print_best(y, k);
        break;
    }
}

static enum verdict tally_verdict(const struct tally *y)
{
    return y->lacking > 0 && y->bad == 0 ? VERDICT_UNJUDGED
           : y->good + y->bad == 0       ? VERDICT_NOT_COMPARABLE
           : y->bad == 0                 ? VERDICT_AGREES
           : y->good == 0                ? VERDICT_DIFFERS
                                         : VERDICT_PARTLY;
}

void judge_entry(const struct entry *e, const struct table *t, const struct conditions *c,
                 struct finding *out)
{
    struct tally y = {.out = out, .entry = e, .table = t};
    const bool is_timed = c->is_timed && strcmp(t->over, "simulated") != 0;
    out->text[0] = 0;
    if (is_timed && c->others > OTHERS_MAX)
        judge_add_remark(
            &y, "Unreliable: other programs used %.0f %% of the processors' time during the measurement. ",
            100 * c->others);
    if (c->is_too_brief)
        judge_add_remark(
            &y, "Not judged: a quick run is too short or its problems are too small; run without --quick. ");
    for (const struct check *k = e->checks; k < e->checks + CHECKS_MAX && k->kind != CHECK_NONE; k++)
        judge_check(&y, k);
    out->verdict = tally_verdict(&y);
    const bool differs = out->verdict == VERDICT_DIFFERS || out->verdict == VERDICT_PARTLY;
    if (out->verdict == VERDICT_NOT_COMPARABLE)
        judge_add_remark(&y, "%s. ",
                         e->take == TAKE_PROFILE ? "Shown side by side, not judged"
                                                 : "Other hardware: shown side by side, not judged");
    if (e->why && (differs || e->take == TAKE_PROFILE))
        judge_add_remark(&y, "%s ", e->why);
    if (e->fitted && y.good > 0)
        judge_add_remark(&y, "No evidence: %s ", e->fitted);
    if (e->fitted && out->verdict == VERDICT_AGREES)
        out->verdict = VERDICT_FITTED;
    if (c->is_too_brief)
        out->verdict = VERDICT_UNJUDGED;
    if (is_timed && (c->others > OTHERS_MAX || y.rounds_contradict))
        out->verdict = VERDICT_UNRELIABLE;
}
