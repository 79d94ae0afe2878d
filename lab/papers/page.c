/* page.c: the report as one HTML page: the page loads nothing from elsewhere, uses light or dark colours as
 * the reader prefers, and is readable without its small script, which only filters.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <string.h>

#include "lab/html.h"
#include "papers.h"

static const char style[] =
#include "page.css.inc"
    ;

static const char script[] =
#include "page.js.inc"
    ;

static void page_print_fact(FILE *out, const char *name, const char *value)
{
    html_put(out, "dt", NULL, "%s", name);
    html_put(out, "dd", NULL, "%s", value);
}

static void page_write_head(const struct papers_run *run, const int count[VERDICTS], FILE *out)
{
    char text[512];
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
          "content=\"width=device-width,initial-scale=1\"><link rel=\"icon\" "
          "href=\"data:,\"><title>Fishplate beside the "
          "papers</title>\n<style>",
          out);
    fputs(style, out);
    fputs("</style></head><body><main>\n<h1>Fishplate beside the papers</h1>\n", out);
    html_put(out, "p", NULL,
             "Every figure and table of five papers that can be measured here, beside what the papers say.");
    fputs("<p>", out);
    for (int v = 0; v < VERDICTS; v++)
        fprintf(out, "%s%d %s", v ? ", " : "", count[v], verdict_names[v]);
    fputs(".</p>", out);
    fputs("<dl>", out);
    snprintf(text, sizeof(text), "%s, %d cores, %s", run->machine, run->cores, run->kernel);
    page_print_fact(out, "machine", text);
    snprintf(text, sizeof(text),
             "%.1f before, %.1f after (load average; the commands themselves are part of the second); "
             "each figure shows how much of the processors' time other programs used",
             run->load_before, run->load_after);
    page_print_fact(out, "load", text);
    snprintf(text, sizeof(text), "Fishplate %s, %s%d round%s, %s, %.0f s", FISHPLATE_VERSION,
             run->quick ? "--quick, " : "", run->rounds, run->rounds == 1 ? "" : "s", run->date,
             run->seconds);
    page_print_fact(out, "run", text);
    page_print_fact(out, "settings",
                    run->settings[0] ? run->settings : "none in the environment; each command names its own");
    fputs("</dl>\n", out);
}

static void page_write_filters(FILE *out)
{
    fputs("<nav>", out);
    for (int p = 0; p < PAPERS; p++) {
        fprintf(out, "<a href=\"#%s\">", papers[p].key);
        html_text(out, papers[p].key);
        fputs("</a>", out);
    }
    fputs("<a href=\"#rules\">How it is judged</a><a href=\"#not-measured\">Not measured</a></nav>\n<form "
          "class=\"filters\">",
          out);
    for (int p = 0; p < PAPERS; p++)
        fprintf(out, "<label><input type=\"checkbox\" checked value=\"%s\"> %s</label>", papers[p].key,
                papers[p].key);
    for (int v = 0; v < VERDICTS; v++)
        fprintf(out, "<label><input type=\"checkbox\" checked value=\"%s\"> %s</label>", verdict_keys[v],
                verdict_names[v]);
    fputs("<span class=\"soft\"><span id=\"shown\">all</span> shown</span></form>\n", out);
}

static void page_write_points(const struct entry *e, FILE *out)
{
    if (!e->points[0].name)
        return;
    fputs("<p class=\"soft\">Printed there: ", out);
    for (const struct point *p = e->points; p < e->points + POINTS_MAX && p->name; p++) {
        fprintf(out, "%s", p == e->points ? "" : "; ");
        html_text(out, p->name);
        fprintf(out, " %.7g ", p->value);
        html_text(out, p->unit);
    }
    fputs(".</p>", out);
}

static void page_write_table(const struct table *t, FILE *out)
{
    char text[64];
    bool words =
        t->columns > 1 && t->rows > 0 && table_cell(t, 0, 1)->text && strlen(table_cell(t, 0, 1)->text) > 20;
    fprintf(out, "<div class=\"wide\" tabindex=\"0\"><table%s><tr>", words ? " class=\"words\"" : "");
    for (int c = 0; c < t->columns; c++)
        html_put(out, "th", NULL, "%s", t->names[c]);
    fputs("</tr>\n", out);
    for (int r = 0; r < t->rows; r++) {
        fputs("<tr>", out);
        for (int c = 0; c < t->columns; c++) {
            const struct cell *cell = table_cell(t, r, c);
            table_print_cell(cell, text);
            html_put(out, "td", NULL, "%s", cell->text ? cell->text : text);
        }
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
}

static void page_write_commands(const struct papers_run *run, const struct source *s, FILE *out)
{
    fputs("<details><summary class=\"soft\">command</summary><pre>", out);
    for (int v = 0; v < VARIANTS_MAX && s->variants[v].quick; v++) {
        char command[1024];
        papers_command(run, &s->variants[v], command, sizeof(command));
        html_put(out, "code", NULL, "%s", command);
        fputc('\n', out);
    }
    fputs("</pre></details>\n", out);
}

static void page_write_change(const struct result *r, FILE *out)
{
    if (r->change == CHANGE_NONE)
        return;
    if (r->change == CHANGE_UNKNOWN)
        html_put(out, "p", NULL,
                 "Against the earlier run: not comparable (too few rounds or other figures).");
    else
        html_put(out, "p", NULL, "Against the earlier run: %s (%+.1f %% in the geometric mean, p = %.3f).",
                 change_names[r->change], 100 * (r->ratio - 1), r->p);
}

static void page_write_entry(const struct papers_run *run, const struct result *r, FILE *out)
{
    const struct entry *e = r->entry;
    const char *verdict = verdict_keys[r->finding.verdict];
    fprintf(out,
            "<article id=\"%s\" class=\"%s\" data-paper=\"%s\" data-verdict=\"%s\"><span class=\"mark "
            "%s\">%s</span>",
            e->id, verdict, papers[e->paper].key, verdict, verdict, verdict_names[r->finding.verdict]);
    html_put(out, "h4", NULL, "%s: %s", e->figure, e->title);
    fputs("<div class=\"both\"><div>", out);
    plot_write(e, r->table, out);
    page_write_table(r->table, out);
    fputs("</div><div><p><b>Paper:</b> ", out);
    html_text(out, e->claim);
    fputs("</p>", out);
    page_write_points(e, out);
    fputs("<p><b>Here:</b> ", out);
    html_text(out, r->finding.text);
    fputs("</p>", out);
    if (r->table->here && r->table->here[0]) {
        fputs("<p class=\"soft\">", out);
        html_text(out, r->table->here);
        fputs("</p>", out);
    }
    page_write_change(r, out);
    html_put(out, "p", "soft", "Over: %s",
             r->table->over[0] ? r->table->over : "the benchmark does not name its network");
    html_put(out, "p", "soft", "Other programs used %.0f %% of the processors' time meanwhile.",
             100 * r->others);
    page_write_commands(run, r->source, out);
    fputs("</div></div></article>\n", out);
}

static void page_write_paper(const struct papers_run *run, int paper, FILE *out)
{
    const char *chapter = NULL;
    fprintf(out, "<h2 id=\"%s\">", papers[paper].key);
    html_text(out, papers[paper].work);
    fputs("</h2>\n", out);
    for (int i = 0; i < run->results_count; i++) {
        const struct result *r = &run->results[i];
        if (r->entry->paper != paper || !r->table)
            continue;
        if (!chapter || strcmp(chapter, r->entry->chapter) != 0) {
            fputs(chapter ? "</section>\n<section class=\"chapter\">" : "<section class=\"chapter\">", out);
            html_put(out, "h3", NULL, "%s", r->entry->chapter);
            chapter = r->entry->chapter;
        }
        page_write_entry(run, r, out);
    }
    fputs(chapter ? "</section>\n" : "<p class=\"soft\">Nothing measured in this run.</p>\n", out);
}

static void page_write_rules(FILE *out)
{
    fputs("<h2 id=\"rules\">How it is judged</h2>\n<article><ul>", out);
    static const char *const rules[] = {
        "Of several rounds the best figure is shown, because other programs on the machine only make figures "
        "worse. "
        "All samples are in "
        "the JSON document.",
        "A gain is judged by the median of the rows that the claim speaks of; the rows are named. It agrees "
        "if the "
        "logarithm of the ratio is between half and twice that of the paper: much more is another effect "
        "than the "
        "paper's, and does not agree either. Where the paper prints no number, the least expected gain is "
        "named.",
        "\"Alike\" and \"constant\" hold in both directions, within the limit that is named with the result. "
        "Growth is "
        "judged by the ratio of the last row to the first. Best and worst are judged by the median of rows, "
        "without "
        "tolerance.",
        "Agrees: all checks of an entry hold; partly: some; differs: none. Side by side: the paper's numbers "
        "belong to its hardware, so they are shown but not judged.",
        "Unreliable: other programs used more than 10 % of the processors' time during the measurement "
        "(/proc/stat without our own commands), or the rounds contradict each other. Simulations and counts "
        "do not depend on it. Not judged: a quick run is too short, or its problems too small, for a "
        "verdict.",
        "Fitted: the checks hold, but parameters were fitted to the same numbers or chosen with them known, "
        "so this proves nothing.",
        "Against an earlier run: the score of a round is the geometric mean of an entry's figures; Welch's "
        "t-test on the "
        "logarithms of the scores, two-sided, Holm's correction over all entries, 5 %. Fewer than two rounds "
        "cannot be "
        "compared.",
        "A simulation gives the same figures every time, so it runs once.",
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        html_put(out, "li", NULL, "%s", rules[i]);
    fputs("</ul></article>\n", out);
}

static void page_write_missing(const struct papers_run *run, FILE *out)
{
    fputs("<h2 id=\"not-measured\">Not measured</h2>\n<article><div class=\"wide\"><table "
          "class=\"words\"><tr><th>paper</th><th>figure</th><th>why</th></tr>\n",
          out);
    for (int i = 0; i < run->results_count; i++) {
        const struct result *r = &run->results[i];
        if (r->table)
            continue;
        fputs("<tr>", out);
        html_put(out, "td", NULL, "%s", papers[r->entry->paper].key);
        html_put(out, "td", NULL, "%s", r->entry->figure);
        html_put(out, "td", NULL, "%s", r->missing);
        fputs("</tr>\n", out);
    }
    for (int i = 0; i < unmeasured_count; i++) {
        fputs("<tr>", out);
        html_put(out, "td", NULL, "%s", papers[unmeasured[i].paper].key);
        html_put(out, "td", NULL, "%s", unmeasured[i].figure);
        html_put(out, "td", NULL, "%s", unmeasured[i].why);
        fputs("</tr>\n", out);
    }
    fputs("</table></div></article>\n", out);
}

bool papers_write_page(const struct papers_run *run, const char *path)
{
    int count[VERDICTS] = {0};
    FILE *out = fopen(path, "w");
    if (!out)
        return false;
    for (int i = 0; i < run->results_count; i++)
        if (run->results[i].table)
            count[run->results[i].finding.verdict]++;
    page_write_head(run, count, out);
    page_write_filters(out);
    for (int p = 0; p < PAPERS; p++)
        page_write_paper(run, p, out);
    page_write_rules(out);
    page_write_missing(run, out);
    fprintf(out, "<script>%s</script>\n</main></body></html>\n", script);
    bool good = ferror(out) == 0;
    return fclose(out) == 0 && good;
}
