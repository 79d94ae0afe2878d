/* page.c: the results as one HTML page that needs no other files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/html.h"
#include "barrier.h"

static void page_print_cell(FILE *out, double value, int digits)
{
    if (isnan(value))
        html_put(out, "td", NULL, "-");
    else
        html_put(out, "td", NULL, "%.*f", digits, value);
}

static void page_print_times(FILE *out, const struct barrier_shape *shape)
{
    static const char *const head[] = {
        "barrier", "us", "operations, all ranks", "in the schedule", "operations, one rank", "bytes", NULL};
    char title[64];
    int best;
    const double regret = barrier_regret(shape, &best);
    snprintf(title, sizeof(title), "%d ranks on %d nodes", shape->ranks, shape->nodes);
    html_section(out, title, "");
    html_put(out, "p", NULL, "The fastest is %s; the library's own choice takes %.3f times as long.",
             barrier_setting_label(best), regret);
    html_head_row(out, head);
    for (int i = 0; i < barrier_nsettings; i++) {
        const struct barrier_figures *f = &shape->figures[i];
        struct barrier_counts c;
        if (isnan(f->us))
            continue;
        fputs("<tr>", out);
        html_put(out, i == best ? "th" : "td", NULL, "%s", barrier_setting_label(i));
        page_print_cell(out, f->us, 2);
        page_print_cell(out, f->messages, 1);
        page_print_cell(
            out, barrier_count_operations(&barrier_settings[i], shape->ranks, &c) ? (double)c.messages : NAN,
            0);
        page_print_cell(out, f->max_messages, 1);
        page_print_cell(out, f->bytes, 0);
        fputs("</tr>\n", out);
    }
    html_table_end(out);
    html_section_end(out);
}

static void page_print_chart(FILE *out, const struct chart *c)
{
    if (c->points == 0)
        return;
    fputs("<section>\n", out);
    chart_svg(c, out);
    html_section_end(out);
}

static void page_print_charts(FILE *out, const struct barrier_study *s, struct chart *c)
{
    barrier_chart_measured(s, true, c);
    page_print_chart(out, c);
    barrier_chart_measured(s, false, c);
    page_print_chart(out, c);
    barrier_chart_kinds(s, c);
    page_print_chart(out, c);
    barrier_chart_lop(2, c);
    page_print_chart(out, c);
    barrier_chart_lop(5000, c);
    page_print_chart(out, c);
    barrier_chart_nway(true, c);
    page_print_chart(out, c);
    barrier_chart_nway(false, c);
    page_print_chart(out, c);
}

bool barrier_write_page(const struct barrier_study *s)
{
    struct chart *c = malloc(sizeof(*c));
    FILE *out = c ? fopen(s->html, "w") : NULL;
    if (!out) {
        fprintf(stderr, "fishplate-lab barrier: cannot write %s: %s\n", s->html, strerror(errno));
        free(c);
        return false;
    }
    fputs("<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head><meta "
          "charset=\"utf-8\"/>"
          "<title>Barriers</title><style>body{font:15px sans-serif;margin:1em auto;max-width:60em;padding:0 "
          "1em}"
          "td,th{padding:2px 8px;text-align:right}td:first-child,th:first-child{text-align:left}"
          ".wide{overflow-x:auto}svg{max-width:100%}"
          "@media(prefers-color-scheme:dark){body{background:#1b1b1b;color:#ddd}}</style></head><body>\n",
          out);
    html_put(out, "h1", NULL, "Barriers");
    html_put(
        out, "p", NULL,
        "%s, %d cores. Time of the library's choice divided by that of the fastest barrier, geometric mean: "
        "%.3f. With more ranks than cores the ranks take turns: compare figures of the same shape only.",
        s->driver.adapter, s->driver.cores, barrier_regret_mean(s));
    page_print_charts(out, s, c);
    for (int k = 0; k < s->nshapes; k++)
        page_print_times(out, &s->shape[k]);
    fputs("</body></html>\n", out);
    free(c);
    if (fclose(out) == 0)
        return true;
    fprintf(stderr, "fishplate-lab barrier: cannot write %s: %s\n", s->html, strerror(errno));
    return false;
}
