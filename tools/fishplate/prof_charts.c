/* prof_charts.c: see prof_charts.h. Classes f0, f1 ... are the colours of the kinds of functions; prof_html.c
 * says what they are. Texts under <title> show when the mouse rests on a shape.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "prof_charts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "html.h"

enum { WIDTH = 1000, BARS_MAX = 64, CELLS_MAX = 64 };

static void open_svg(FILE *out, int width, int height, const char *label)
{
    fprintf(out, "<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n",
            width, height, width, height, label);
}

static void rect(FILE *out, const char *style, double x, double y, double width, double height,
                 const char *title)
{
    fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\">", style,
            x, y, width, height);
    html_put(out, "title", NULL, "%s", title);
    fputs("</rect>\n", out);
}

static void label(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    html_text(out, text);
    fputs("</text>\n", out);
}

static void legend(FILE *out, const struct prof_job *job)
{
    fputs("<div class=\"legend\">", out);
    for (int k = 0; k < PROF_KINDS; k++)
        if (job->kinds[k] > 0)
            fprintf(out, "<span><i class=\"b%d\"></i>%s</span>", k, prof_kind_names[k]);
    fputs("<span><i class=\"ba\"></i>the program itself</span></div>\n", out);
}

static void rank_bar(FILE *out, const struct prof_job *job, int r, double y, double height)
{
    const struct prof_rank *rank = &job->ranks[r];
    const double left = 70, room = WIDTH - left - 60, scale = fmax(rank->on, rank->mpi);
    char text[128], style[16], seconds[PROF_TEXT];
    double x = left;
    snprintf(text, sizeof(text), "rank %d", r);
    label(out, left - 10, y + height - 4, "end", text);
    if (scale <= 0)
        return;
    for (int k = 0; k <= PROF_KINDS; k++) {
        const double part = k < PROF_KINDS ? rank->kinds[k] : fmax(0, rank->on - rank->mpi);
        const double width = fmin(part / scale * room, left + room - x);
        if (width <= 0)
            continue;
        snprintf(style, sizeof(style), k < PROF_KINDS ? "f%d" : "fa", k);
        snprintf(text, sizeof(text), "rank %d on %.40s, %s: %s, %.1f %%", r, rank->host,
                 k < PROF_KINDS ? prof_kind_names[k] : "the program itself", prof_seconds(part, seconds),
                 prof_share(part, scale));
        rect(out, style, x, y, width, height, text);
        x += width;
    }
    snprintf(text, sizeof(text), "%.0f %%", prof_share(rank->mpi, rank->on));
    label(out, WIDTH - 4, y + height - 4, "end", text);
}

void prof_chart_ranks(const struct prof_job *job, FILE *out)
{
    const int shown = job->there < BARS_MAX ? job->there : BARS_MAX, step = shown > 24 ? 14 : 22;
    int seen = 0, drawn = 0;
    legend(out, job);
    open_svg(out, WIDTH, shown * step + 8, "time of each rank");
    for (int r = 0; r < job->size; r++) {
        if (!job->ranks[r].there)
            continue;
        /* Of many ranks, some at equal distances. */
        if (seen++ * shown / job->there == drawn && drawn < shown)
            rank_bar(out, job, r, 6 + drawn++ * step, step - 5);
    }
    fputs("</svg>\n", out);
    if (shown < job->there)
        html_put(out, "p", NULL, "%d of %d ranks are shown.", shown, job->there);
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

static void size_bar(FILE *out, const struct prof_bin *bin, const char *style, const char *what, double x,
                     double width, double bottom, double height)
{
    char text[160], bytes[PROF_TEXT], number[PROF_TEXT];
    if (!bin->count)
        return;
    const double tall = fmax(height, 1.5);
    snprintf(text, sizeof(text), "%s: %" PRIu64 ", %s in all", what, bin->count,
             prof_bytes((double)bin->bytes, bytes));
    rect(out, style, x, bottom - tall, width, tall, text);
    short_count(bin->count, number);
    label(out, x + width / 2, bottom - tall - 4, "middle", number);
}

void prof_chart_sizes(const struct prof_job *job, FILE *out)
{
    const double bottom = 190, room = 150;
    int first = PROF_BINS, last = -1;
    uint64_t most = 1;
    char text[PROF_TEXT];
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
    const double slot = fmin(120, (double)WIDTH / (last - first + 1));
    fputs("<p></p><div class=\"legend\"><span><i class=\"b0\"></i>messages</span><span><i "
          "class=\"b2\"></i>collective calls"
          "</span></div>\n",
          out);
    open_svg(out, WIDTH, 215, "number of messages by size");
    for (int b = first; b <= last; b++) {
        const double x = (b - first) * slot;
        size_bar(out, &job->p2p[b], "f0", "messages", x + slot * 0.08, slot * 0.4, bottom,
                 room * (double)job->p2p[b].count / (double)most);
        size_bar(out, &job->coll[b], "f2", "collective calls", x + slot * 0.52, slot * 0.4, bottom,
                 room * (double)job->coll[b].count / (double)most);
        if (b == 0)
            label(out, x + slot / 2, bottom + 18, "middle", "empty");
        else if (slot >= 60 || b % 2 == 0)
            label(out, x + slot / 2, bottom + 18, "middle", prof_bytes(ldexp(1, b - 1), text));
    }
    fprintf(out, "<rect class=\"frame\" x=\"0.5\" y=\"%.1f\" width=\"%.1f\" height=\"0.5\"/>\n</svg>\n",
            bottom, slot * (last - first + 1));
    html_put(out, "p", NULL, "A bar holds the sizes from its label up to twice that.");
}

/* Of many ranks, neighbours share a cell. */
struct cells {
    int n, ranks; /* cells in a row, ranks in a cell */
    struct prof_traffic *sum;
    double least, most; /* bytes of a cell that has any */
};

static bool gather_cells(const struct prof_job *job, struct cells *c)
{
    c->ranks = (job->size + CELLS_MAX - 1) / CELLS_MAX;
    c->n = (job->size + c->ranks - 1) / c->ranks;
    c->sum = calloc((size_t)c->n * (size_t)c->n, sizeof(*c->sum));
    for (size_t i = 0; c->sum && i < job->npairs; i++) {
        const struct prof_pair *p = &job->pairs[i];
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

/* From faint to full, by the logarithm of the bytes; empty messages are faint too. */
static double strength_of(const struct cells *c, double bytes)
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
             prof_bytes((double)t->bytes, bytes));
    fprintf(out, "<g fill-opacity=\"%.2f\">", strength_of(c, (double)t->bytes));
    rect(out, "heat", 80 + to * side, 40 + from * side, side - 1, side - 1, text);
    fputs("</g>\n", out);
}

void prof_chart_peers(const struct prof_job *job, FILE *out)
{
    struct cells c;
    char text[PROF_TEXT];
    if (!gather_cells(job, &c))
        return;
    const double side = fmin(48, 560.0 / c.n);
    const int every = side < 9 ? 8 : side < 22 ? 4 : 1, height = (int)(c.n * side) + 50;
    open_svg(out, (int)(c.n * side) + 100, height, "bytes from rank to rank");
    label(out, 80, 14, "start", "to");
    label(out, 6, 34, "start", "from");
    for (int i = 0; i < c.n; i += every) {
        ranks_text(job, &c, i, text);
        label(out, 80 + (i + 0.5) * side, 34, "middle", text);
        label(out, 72, 44 + (i + 0.5) * side, "end", text);
    }
    for (int from = 0; from < c.n; from++)
        for (int to = 0; to < c.n; to++)
            peer_cell(out, job, &c, from, to, side);
    fprintf(out, "<rect class=\"frame\" x=\"79\" y=\"39\" width=\"%.1f\" height=\"%.1f\"/>\n</svg>\n",
            c.n * side + 1, c.n * side + 1);
    free(c.sum);
}
