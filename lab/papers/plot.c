/* plot.c: a table as a drawing: lines if the rows are numbers, bars if they are names. Numbers that the
 * paper prints in the same unit are dashed lines. The legend is HTML, so that it stays readable in a small
 * drawing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "lab/html.h"
#include "papers.h"
#include "cli/number.h"

enum { WIDTH = 560, HEIGHT = 300, LEFT = 58, RIGHT = 14, TOP = 14, BOTTOM = 46, LINES_MAX = 8 };

struct axis {
    double low, high;
    bool factors; /* logarithmic scale */
    double from, to;
};

static double plot_scale_value(const struct axis *a, double v)
{
    double part = a->high <= a->low ? 0.5
                  : a->factors      ? log(v / a->low) / log(a->high / a->low)
                                    : (v - a->low) / (a->high - a->low);
    return a->from + part * (a->to - a->from);
}

/* Selects the columns to draw: numeric ones except resident memory, connections and ratios ("against"). */
static int plot_select_columns(const struct table *t, int out[LINES_MAX])
{
    int n = 0;
    for (int c = 1; c < t->columns && n < LINES_MAX; c++) {
        bool numbers = false;
        for (int r = 0; r < t->rows; r++)
            numbers = numbers || table_cell(t, r, c)->samples > 0;
        if (numbers && !strstr(t->names[c], "RSS") && !strstr(t->names[c], "connections") &&
            !strstr(t->names[c], " against "))
            out[n++] = c;
    }
    return n;
}

/* Selects the numbers of the paper that have the unit of the drawing. */
static int plot_select_paper_lines(const struct entry *e, const struct point *out[3])
{
    int n = 0;
    for (const struct point *p = e->points; p < e->points + POINTS_MAX && p->name && n < 3; p++)
        if (strcmp(p->unit, e->y) == 0 && p->value > 0)
            out[n++] = p;
    return n;
}

static struct axis plot_make_y_axis(const struct table *t, const int *columns, int n,
                                    const struct point *const *lines, int nlines)
{
    struct axis a = {INFINITY, 0, false, HEIGHT - BOTTOM, TOP};
    for (int i = 0; i < n; i++)
        for (int r = 0; r < t->rows; r++) {
            double v = table_cell(t, r, columns[i])->value;
            if (!table_cell(t, r, columns[i])->text && v > 0) {
                a.low = fmin(a.low, v);
                a.high = fmax(a.high, v);
            }
        }
    for (int i = 0; i < nlines; i++) {
        a.low = fmin(a.low, lines[i]->value);
        a.high = fmax(a.high, lines[i]->value);
    }
    a.factors = a.high > 50 * a.low;
    if (a.factors) {
        a.low = pow(10, floor(log10(a.low)));
        a.high = pow(10, ceil(log10(a.high) - 1e-9));
    } else {
        double power = pow(10, floor(log10(a.high > 0 ? a.high : 1))), step = power / 2;
        a.low = 0;
        a.high = a.high > 0 ? ceil(a.high / step - 1e-9) * step : 1;
    }
    return a;
}

static void plot_write_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    html_text(out, text);
    fputs("</text>", out);
}

static void plot_draw_grid(const struct axis *a, const char *unit, FILE *out)
{
    char text[64];
    int steps = a->factors ? (int)lround(log10(a->high / a->low)) : 4;
    int every = steps > 6 ? (steps + 5) / 6 : 1;
    for (int i = 0; i <= steps; i += every) {
        double v = a->factors ? a->low * pow(10, i) : a->high * i / steps, y = plot_scale_value(a, v);
        fprintf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                WIDTH - RIGHT, y, y);
        snprintf(text, sizeof(text), "%.4g", v);
        plot_write_text(out, LEFT - 6, y + 5, "end", text);
    }
    plot_write_text(out, LEFT + 4, TOP + 10, "start", unit);
    fputc('\n', out);
}

static bool column_name_means_bytes(const char *name)
{
    return strcmp(name, "bytes") == 0 || strcmp(name, "message") == 0 || strcmp(name, "mean size") == 0;
}

static void plot_name_row(const struct table *t, int row, char out[64])
{
    char size[32];
    const struct cell *c = table_cell(t, row, 0);
    if (c->text || !column_name_means_bytes(t->names[0])) {
        table_print_cell(c, out);
        return;
    }
    number_print_size((size_t)c->value, size);
    snprintf(out, 64, "%s", size);
}

static void plot_write_row_names(const struct table *t, const double *x, FILE *out)
{
    char text[64];
    int every = t->rows > 7 ? (t->rows + 6) / 7 : 1;
    for (int r = 0; r < t->rows; r += every) {
        plot_name_row(t, r, text);
        plot_write_text(out, x[r], HEIGHT - BOTTOM + 18, "middle", text);
    }
    plot_write_text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8, "middle", t->names[0]);
    fputc('\n', out);
}

static void plot_print_tooltip(const struct table *t, int row, int column, const struct entry *e, FILE *out)
{
    char x[64], y[64];
    plot_name_row(t, row, x);
    table_print_cell(table_cell(t, row, column), y);
    html_put(out, "title", NULL, "%s, %s: %s %s", t->names[column], x, y, e->y);
}

static void plot_draw_lines(const struct entry *e, const struct table *t, const int *columns, int n,
                            const struct axis *a, const double *x, FILE *out)
{
    for (int i = 0; i < n; i++) {
        fprintf(out, "<g class=\"s%d\"><polyline points=\"", i);
        for (int r = 0; r < t->rows; r++) {
            const struct cell *c = table_cell(t, r, columns[i]);
            if (c->samples > 0 && c->value > 0)
                fprintf(out, "%.1f,%.1f ", x[r], plot_scale_value(a, c->value));
        }
        fputs("\"/>", out);
        for (int r = 0; r < t->rows; r++) {
            const struct cell *c = table_cell(t, r, columns[i]);
            if (c->samples == 0 || !(c->value > 0))
                continue;
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\">", x[r], plot_scale_value(a, c->value));
            plot_print_tooltip(t, r, columns[i], e, out);
            fputs("</circle>", out);
        }
        fputs("</g>\n", out);
    }
}

static void plot_draw_bars(const struct entry *e, const struct table *t, const int *columns, int n,
                           const struct axis *a, const double *x, FILE *out)
{
    double room = (WIDTH - LEFT - RIGHT) / (double)t->rows * 0.8, width = room / n;
    for (int i = 0; i < n; i++) {
        fprintf(out, "<g class=\"s%d\">", i);
        for (int r = 0; r < t->rows; r++) {
            const struct cell *c = table_cell(t, r, columns[i]);
            if (c->samples == 0 || !(c->value > 0))
                continue;
            double y = plot_scale_value(a, c->value);
            fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">",
                    x[r] - room / 2 + i * width, y, width * 0.9, HEIGHT - BOTTOM - y);
            plot_print_tooltip(t, r, columns[i], e, out);
            fputs("</rect>", out);
        }
        fputs("</g>\n", out);
    }
}

/* Horizontal positions of the rows; true: the rows are numbers, so lines may connect them. */
static bool plot_place_rows(const struct table *t, double *x)
{
    bool numbers = t->rows > 1;
    struct axis a = {.from = LEFT + 16, .to = WIDTH - RIGHT - 16};
    for (int r = 0; r < t->rows; r++)
        numbers = numbers && !table_cell(t, r, 0)->text;
    if (numbers) {
        a.low = table_cell(t, 0, 0)->value;
        a.high = table_cell(t, t->rows - 1, 0)->value;
        a.factors = a.low > 0 && a.high >= 8 * a.low;
    }
    for (int r = 0; r < t->rows; r++)
        x[r] = numbers ? plot_scale_value(&a, table_cell(t, r, 0)->value)
                       : LEFT + (r + 0.5) * (WIDTH - LEFT - RIGHT) / (double)t->rows;
    return numbers;
}

void plot_write(const struct entry *e, const struct table *t, FILE *out)
{
    int columns[LINES_MAX], n = plot_select_columns(t, columns);
    const struct point *lines[3] = {NULL};
    double *x = calloc((size_t)t->rows, sizeof(*x));
    if (!e->y || n == 0 || !x) {
        free(x);
        return;
    }
    int nlines = plot_select_paper_lines(e, lines);
    struct axis a = plot_make_y_axis(t, columns, n, lines, nlines);
    bool joined = plot_place_rows(t, x);
    fputs("<div class=\"legend\">", out);
    for (int i = 0; i < n; i++) {
        fprintf(out, "<span><i class=\"f%d\"></i>", i);
        html_text(out, t->names[columns[i]]);
        fputs("</span>", out);
    }
    for (int i = 0; i < nlines; i++)
        html_put(out, "span", "dash", "- - paper: %s, %g %s", lines[i]->name, lines[i]->value,
                 lines[i]->unit);
    fprintf(out, "</div>\n<svg viewBox=\"0 0 %d %d\" role=\"img\">", WIDTH, HEIGHT);
    html_put(out, "title", NULL, "%s: %s", e->figure, e->title);
    plot_draw_grid(&a, e->y, out);
    plot_write_row_names(t, x, out);
    (joined ? plot_draw_lines : plot_draw_bars)(e, t, columns, n, &a, x, out);
    for (int i = 0; i < nlines; i++)
        fprintf(out, "<line class=\"paper\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
                WIDTH - RIGHT, plot_scale_value(&a, lines[i]->value), plot_scale_value(&a, lines[i]->value));
    fputs("</svg>\n", out);
    free(x);
}
