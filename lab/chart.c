/* chart.c: implements chart.h. The colours are distinct for readers with red-green colour blindness, and
 * every line has its name at its end as well as in the legend.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "chart.h"

#include <math.h>
#include <string.h>

#include "../../bench/bench.h"
#include "html.h"
#include "cli/number.h"

enum { WIDTH = 760, HEIGHT = 420, LEFT = 70, RIGHT = 200, TOP = 44, BOTTOM = 54, TICKS = 5 };

int chart_line(struct chart *c, const char *name)
{
    if (c->lines == CHART_LINES)
        return -1;
    c->name[c->lines] = name;
    for (int i = 0; i < CHART_POINTS; i++)
        c->y[c->lines][i] = NAN;
    return c->lines++;
}

static void format_x(const struct chart *c, double x, char out[32])
{
    if (c->x_bytes)
        number_print_size((size_t)x, out);
    else
        snprintf(out, 32, "%g", x);
}

void chart_table(const struct chart *c, FILE *out)
{
    char text[32];
    fprintf(out, "\nFigure %s: %s (%s)\n\n%12s", c->id, c->title, c->y_name, c->x_name);
    for (int l = 0; l < c->lines; l++)
        fprintf(out, " %16s", c->name[l]);
    for (int i = 0; i < c->points; i++) {
        format_x(c, c->x[i], text);
        fprintf(out, "\n%12s", text);
        for (int l = 0; l < c->lines; l++) {
            if (isnan(c->y[l][i]))
                snprintf(text, sizeof(text), "-");
            else
                snprintf(text, sizeof(text), c->format, c->y[l][i]);
            fprintf(out, " %16s", text);
        }
    }
    fputc('\n', out);
    fflush(out);
}

void chart_json(const struct chart *c, struct json *j)
{
    json_object(j, NULL);
    json_members(j, "figure=%s title=%s x=%s y=%s", c->id, c->title, c->x_name, c->y_name);
    json_array(j, "lines");
    for (int l = 0; l < c->lines; l++) {
        json_object(j, NULL);
        json_string(j, "name", c->name[l]);
        json_array(j, "points");
        for (int i = 0; i < c->points; i++) {
            if (isnan(c->y[l][i]))
                continue;
            json_record(j, NULL, "x=%g y=%g", c->x[i], c->y[l][i]);
        }
        json_end(j);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

/* ---- SVG ---- */

struct scale {
    double x0, x1, y1; /* y begins at 0 */
    bool by_factors;
};

static double chart_pixel_x(const struct scale *s, double x)
{
    double part = s->by_factors ? log(x / s->x0) / log(s->x1 / s->x0) : (x - s->x0) / (s->x1 - s->x0);
    return LEFT + (s->x1 > s->x0 ? part : 0.5) * (WIDTH - LEFT - RIGHT);
}

static double chart_pixel_y(const struct scale *s, double y)
{
    return HEIGHT - BOTTOM - y / s->y1 * (HEIGHT - TOP - BOTTOM);
}

/* Returns a round step for an axis: the smallest of 1, 2, 2.5, 5 times a power of ten from `least` on. */
static double round_axis_step(double least)
{
    static const double steps[] = {1, 2, 2.5, 5, 10};
    double power = pow(10, floor(log10(least)));
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (steps[i] * power >= least * 0.999)
            return steps[i] * power;
    return 10 * power;
}

static struct scale chart_compute_scale(const struct chart *c, double *step)
{
    struct scale s = {.x0 = c->x[0], .x1 = c->x[c->points - 1], .y1 = 0, .by_factors = c->by_factors};
    for (int l = 0; l < c->lines; l++)
        for (int i = 0; i < c->points; i++)
            if (!isnan(c->y[l][i]) && c->y[l][i] > s.y1)
                s.y1 = c->y[l][i];
    *step = s.y1 > 0 ? round_axis_step(s.y1 / TICKS) : 1;
    s.y1 = ceil(s.y1 / *step - 1e-9) * *step;
    if (s.y1 <= 0)
        s.y1 = 1;
    return s;
}

static void chart_print_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    html_text(out, text);
    fputs("</text>\n", out);
}

static void chart_print_axes(const struct chart *c, const struct scale *s, double step, FILE *out)
{
    char text[32];
    for (double y = 0; y <= s->y1 * 1.0001; y += step) {
        fprintf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
                WIDTH - RIGHT, chart_pixel_y(s, y), chart_pixel_y(s, y));
        snprintf(text, sizeof(text), "%g", y);
        chart_print_text(out, LEFT - 8, chart_pixel_y(s, y) + 4, "end", text);
    }
    int every = c->points > 10 ? (c->points + 7) / 8 : 1;
    for (int i = 0; i < c->points; i += every) {
        format_x(c, c->x[i], text);
        chart_print_text(out, chart_pixel_x(s, c->x[i]), HEIGHT - BOTTOM + 18, "middle", text);
    }
    chart_print_text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 12, "middle", c->x_name);
    chart_print_text(out, LEFT, TOP - 10, "start", c->y_name);
}

static void chart_print_line(const struct chart *c, const struct scale *s, int l, FILE *out)
{
    fprintf(out, "<g class=\"l%d\"><polyline points=\"", l);
    for (int i = 0; i < c->points && !c->dots[l]; i++)
        if (!isnan(c->y[l][i]))
            fprintf(out, "%.1f,%.1f ", chart_pixel_x(s, c->x[i]), chart_pixel_y(s, c->y[l][i]));
    fputs("\"/>", out);
    for (int i = 0; i < c->points && !c->smooth[l]; i++)
        if (!isnan(c->y[l][i])) {
            char x[32];
            format_x(c, c->x[i], x);
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\">", chart_pixel_x(s, c->x[i]),
                    chart_pixel_y(s, c->y[l][i]));
            html_put(out, "title", NULL, "%s, %s: %g", c->name[l], x, c->y[l][i]);
            fputs("</circle>", out);
        }
    double y = TOP + 20.0 * l;
    if (c->dots[l])
        fprintf(out, "<circle cx=\"%d\" cy=\"%.0f\" r=\"3\"/></g>\n", WIDTH - RIGHT + 26, y);
    else
        fprintf(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.0f\" y2=\"%.0f\"/></g>\n", WIDTH - RIGHT + 14,
                WIDTH - RIGHT + 38, y, y);
    chart_print_text(out, WIDTH - RIGHT + 44, y + 4, "start", c->name[l]);
}

void chart_svg(const struct chart *c, FILE *out)
{
    static const char *const colours[CHART_LINES] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                     "#e69f00", "#56b4e9", "#8c6d31", "#7b4fa3",
                                                     "#888888", "#b03060", "#222288", "#228822"};
    double step;
    struct scale s = chart_compute_scale(c, &step);
    char title[256];
    snprintf(title, sizeof(title), "Figure %s: %s", c->id, c->title);
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
            WIDTH, HEIGHT);
    html_text(out, title);
    fputs("</title>\n<style>svg{background:#fff;color:#222;font:13px sans-serif}text{fill:currentColor}"
          ".grid{stroke:#8884;stroke-width:1}polyline{fill:none}g line,polyline{stroke-width:2}\n"
          "@media(prefers-color-scheme:dark){svg{background:#1b1b1b;color:#ddd}}\n",
          out);
    for (int l = 0; l < c->lines; l++)
        fprintf(out, ".l%d{stroke:%s;fill:%s}%s", l, colours[l], colours[l], l % 2 ? "" : "\n");
    for (int l = 5; l < c->lines; l++)
        fprintf(out, ".l%d polyline,.l%d line{stroke-dasharray:6 4}", l, l);
    fputs("</style>\n", out);
    chart_print_text(out, LEFT, 20, "start", title);
    chart_print_axes(c, &s, step, out);
    for (int l = 0; l < c->lines; l++)
        chart_print_line(c, &s, l, out);
    fputs("</svg>\n", out);
}
