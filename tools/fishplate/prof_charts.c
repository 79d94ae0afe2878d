/* prof_charts.c: implements prof_charts.h. The classes f0, f1 ... are the colours of function kinds, defined
 * in prof.css. Texts under <title> are tooltips.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "prof_charts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "html.h"

enum { BARS_MAX = 64, CELLS_MAX = 64 };

static void open_svg(FILE *out, int width, int height, const char *label)
{
    fprintf(out,
            "<svg class=\"chart\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-label=\"%s\">\n",
            width, height, width, height, label);
}

static void chart_rect(FILE *out, const char *style, double x, double y, double width, double height,
                       const char *title)
{
    fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\">", style,
            x, y, width, height);
    html_put(out, "title", NULL, "%s", title);
    fputs("</rect>\n", out);
}

static void chart_label(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    html_text(out, text);
    fputs("</text>\n", out);
}

static void chart_legend(FILE *out, const struct prof_job *job)
{
    fputs("<div class=\"legend\">", out);
    for (int k = 0; k < PROF_KINDS; k++)
        if (job->kinds[k] > 0)
            fprintf(out, "<span><i class=\"b%d\"></i>%s</span>", k, prof_kind_names[k]);
    fputs("<span><i class=\"ba\"></i>the program itself</span></div>\n", out);
}

static void rank_bar(FILE *out, const struct prof_job *job, int r)
{
    const struct prof_rank *rank = &job->ranks[r];
    const double scale = fmax(rank->on, rank->mpi);
    char text[128], seconds[PROF_TEXT];
    html_put(out, "span", NULL, "rank %d", r);
    fputs("<span class=\"line\">", out);
    for (int k = 0; k <= PROF_KINDS && scale > 0; k++) {
        const double part = k < PROF_KINDS ? rank->kinds[k] : fmax(0, rank->on - rank->mpi);
        if (part <= 0)
            continue;
        snprintf(text, sizeof(text), "rank %d on %.40s, %s: %s, %.1f %%", r, rank->host,
                 k < PROF_KINDS ? prof_kind_names[k] : "the program itself",
                 prof_format_seconds(part, seconds), prof_compute_percent(part, scale));
        fprintf(out, "<i class=\"b%c\" style=\"width:%.2f%%\" title=\"", k < PROF_KINDS ? '0' + k : 'a',
                prof_compute_percent(part, scale));
        html_text(out, text);
        fputs("\"></i>", out);
    }
    fputs("</span>", out);
    html_put(out, "span", NULL, "%.0f %%", prof_compute_percent(rank->mpi, rank->on));
    fputc('\n', out);
}

void prof_chart_ranks(const struct prof_job *job, FILE *out)
{
    const int shown = job->nrecords < BARS_MAX ? job->nrecords : BARS_MAX;
    int seen = 0, drawn = 0;
    chart_legend(out, job);
    fputs("<div class=\"chart rows\">\n", out);
    for (int r = 0; r < job->size; r++) {
        if (!job->ranks[r].has_record)
            continue;
        /* With many ranks, draw bars of ranks at equal distances. */
        if (seen++ * shown / job->nrecords == drawn && drawn < shown) {
            rank_bar(out, job, r);
            drawn++;
        }
    }
    fputs("</div>\n", out);
    html_put(out, "p", NULL, "On the right: the share of its time that a rank spends in MPI.");
    if (shown < job->nrecords)
        html_put(out, "p", NULL, "%d of %d ranks are shown.", shown, job->nrecords);
}

static void short_count(uint64_t n, char out[PROF_TEXT])
{
    if (n < 10000)
        snprintf(out, PROF_TEXT, "%" PRIu64, n);
    else if (n < 10000000)
        snprintf(out, PROF_TEXT, "%.0fk", (double)n / 1e3);
    else
        snprintf(out, PROF_TEXT, "%.0fM", (double)n / 1e6);
}

static void size_bar(FILE *out, const struct prof_bin *bin, const char *style, const char *what, double share)
{
    char text[160], bytes[PROF_TEXT];
    if (!bin->count)
        return;
    snprintf(text, sizeof(text), "%s: %" PRIu64 ", %s in all", what, bin->count,
             prof_format_bytes((double)bin->bytes, bytes));
    fprintf(out, "<i class=\"%s\" style=\"width:%.2f%%\" title=\"", style, share);
    html_text(out, text);
    fputs("\"></i>", out);
}

static void size_row(FILE *out, const struct prof_job *job, int b, uint64_t most)
{
    char text[PROF_TEXT], p2p[PROF_TEXT], coll[PROF_TEXT];
    html_put(out, "span", NULL, "%s", b == 0 ? "empty" : prof_format_bytes(ldexp(1, b - 1), text));
    fputs("<span class=\"pair\">", out);
    size_bar(out, &job->p2p[b], "b0", "messages",
             prof_compute_percent((double)job->p2p[b].count, (double)most));
    size_bar(out, &job->coll[b], "b2", "collective calls",
             prof_compute_percent((double)job->coll[b].count, (double)most));
    fputs("</span>", out);
    short_count(job->p2p[b].count, p2p);
    short_count(job->coll[b].count, coll);
    html_put(out, "span", NULL, "%s + %s", p2p, coll);
    fputc('\n', out);
}

void prof_chart_sizes(const struct prof_job *job, FILE *out)
{
    int first = PROF_BINS, last = -1;
    uint64_t most = 1;
    for (int b = 0; b < PROF_BINS; b++) {
        if (!job->p2p[b].count && !job->coll[b].count)
            continue;
        first = b < first ? b : first;
        last = b;
        most = job->p2p[b].count > most ? job->p2p[b].count : most;
        most = job->coll[b].count > most ? job->coll[b].count : most;
    }
    if (last < 0)
        return;
    fputs("<p></p><div class=\"legend\"><span><i class=\"b0\"></i>messages</span><span><i "
          "class=\"b2\"></i>collective calls</span></div>\n<div class=\"chart rows\">\n",
          out);
    for (int b = first; b <= last; b++)
        size_row(out, job, b, most);
    fputs("</div>\n", out);
    html_put(out, "p", NULL, "A row holds the sizes from its label up to twice that.");
}

/* The matrix of traffic. If there are many ranks, consecutive ranks share a cell. */
struct cells {
    int n, ranks; /* cells in a row, ranks in a cell */
    struct prof_traffic *sum;
    double least, most; /* smallest and largest bytes of a cell that is not empty */
};

static bool gather_cells(const struct prof_job *job, struct cells *c)
{
    c->ranks = (job->size + CELLS_MAX - 1) / CELLS_MAX;
    c->n = (job->size + c->ranks - 1) / c->ranks;
    c->sum = calloc((size_t)c->n * (size_t)c->n, sizeof(*c->sum));
    const struct prof_pair *pairs = job->ncarried ? job->carried : job->pairs;
    const size_t n = job->ncarried ? job->ncarried : job->npairs;
    for (size_t i = 0; c->sum && i < n; i++) {
        const struct prof_pair *p = &pairs[i];
        struct prof_traffic *cell = &c->sum[p->from / c->ranks * c->n + p->to / c->ranks];
        cell->messages += p->messages;
        cell->bytes += p->bytes;
    }
    c->least = c->most = 0;
    for (int i = 0; c->sum && i < c->n * c->n; i++) {
        const double bytes = (double)c->sum[i].bytes;
        c->most = fmax(c->most, bytes);
        if (bytes > 0 && (c->least == 0 || bytes < c->least))
            c->least = bytes;
    }
    return c->sum != NULL;
}

static void ranks_text(const struct prof_job *job, const struct cells *c, int i, char out[PROF_TEXT])
{
    const int low = i * c->ranks, high = low + c->ranks < job->size ? low + c->ranks - 1 : job->size - 1;
    snprintf(out, PROF_TEXT, low == high ? "%d" : "%d-%d", low, high);
}

/* Returns the opacity of a cell, by the logarithm of its bytes; cells with only empty messages are faint. */
static double chart_cell_strength(const struct cells *c, double bytes)
{
    if (bytes <= 0)
        return 0.15;
    return c->most > c->least ? 0.2 + 0.8 * log(bytes / c->least) / log(c->most / c->least) : 1;
}

static void peer_cell(FILE *out, const struct prof_job *job, const struct cells *c, int from, int to,
                      double side)
{
    const struct prof_traffic *t = &c->sum[from * c->n + to];
    char a[PROF_TEXT], b[PROF_TEXT], bytes[PROF_TEXT], text[192];
    if (!t->messages)
        return;
    ranks_text(job, c, from, a);
    ranks_text(job, c, to, b);
    snprintf(text, sizeof(text), "rank %s to rank %s: %" PRIu64 " messages, %s", a, b, t->messages,
             prof_format_bytes((double)t->bytes, bytes));
    fprintf(out, "<g fill-opacity=\"%.2f\">", chart_cell_strength(c, (double)t->bytes));
    chart_rect(out, "heat", 80 + to * side, 40 + from * side, side - 1, side - 1, text);
    fputs("</g>\n", out);
}

/* The legend of colour strengths. */
static void chart_colour_scale(FILE *out, const struct cells *c)
{
    enum { STEPS = 5 };
    char text[PROF_TEXT];
    fputs("<div class=\"legend\">", out);
    for (int i = 0; i < STEPS && c->most > 0; i++) {
        const double bytes = c->least * pow(c->most / c->least, (double)i / (STEPS - 1));
        if (i > 0 && c->most <= c->least)
            break;
        fprintf(out, "<span><i class=\"bh\" style=\"opacity:%.2f\"></i>%s%s</span>",
                chart_cell_strength(c, bytes), i > 0 && i < STEPS - 1 ? "about " : "",
                prof_format_bytes(floor(bytes), text));
    }
    fputs("</div>\n", out);
}

void prof_chart_peers(const struct prof_job *job, FILE *out)
{
    struct cells c;
    char text[PROF_TEXT];
    if (!gather_cells(job, &c))
        return;
    chart_colour_scale(out, &c);
    const double side = fmin(40, 560.0 / c.n);
    const int every = side < 9 ? 8 : side < 22 ? 4 : 1, height = (int)(c.n * side) + 50;
    open_svg(out, (int)(c.n * side) + 100, height, "bytes from rank to rank");
    chart_label(out, 80, 14, "start", "to");
    chart_label(out, 6, 34, "start", "from");
    for (int i = 0; i < c.n; i += every) {
        ranks_text(job, &c, i, text);
        chart_label(out, 80 + (i + 0.5) * side, 34, "middle", text);
        chart_label(out, 72, 44 + (i + 0.5) * side, "end", text);
    }
    for (int from = 0; from < c.n; from++)
        for (int to = 0; to < c.n; to++)
            peer_cell(out, job, &c, from, to, side);
    fprintf(out, "<rect class=\"frame\" x=\"79\" y=\"39\" width=\"%.1f\" height=\"%.1f\"/>\n</svg>\n",
            c.n * side + 1, c.n * side + 1);
    free(c.sum);
}
