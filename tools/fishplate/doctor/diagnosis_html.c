/* diagnosis_html.c: the report as a self-contained page: the findings, and a drawing of which rank waits for
 * which. Ranks in the same state at the same place are one node, so that thousands of ranks stay readable.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../html.h"
#include "base/util.h"
#include "meeting.h"
#include "why.h"

enum { ALONE_MAX = 16, NODES_MAX = 40, WIDTH = 1000 };

struct node {
    uint32_t *ranks, n;
    const char *style;
    char text[128];
    double x, y;
};

struct drawing {
    const struct diagnosis *a;
    struct node *nodes;
    uint32_t nnodes;
    uint32_t *node_of; /* [ranks] */
    uint32_t *edges;   /* [nnodes * nnodes] number of ranks of node i that wait for node k */
};

static const char page_style[] =
#include "why.css.inc"
    ;

static bool is_rank_stuck(const struct why_rank *r)
{
    return r->state == WHY_WAITS && r->steady && !r->live;
}

static const char *html_rank_style(const struct why_rank *r)
{
    if (is_rank_stuck(r))
        return "stuck";
    return r->state == WHY_WAITS ? "waits" : r->state == WHY_RUNS ? "runs" : "other";
}

static void node_text(const struct diagnosis *a, uint32_t rank, char *out, size_t size)
{
    const struct why_rank *r = &a->why.rank[rank];
    const struct page_wait *wait = why_get_first_wait(r);
    const char *place = wait ? place_text(a->wording.places, &wait->caller) : "";
    if (wait)
        snprintf(out, size, "%s%s%s", wait->call[0] ? wait->call : "an MPI call", *place ? " at " : "",
                 place);
    else
        snprintf(out, size, "%s", r->state == WHY_RUNS ? "computes" : why_state_word(r->state));
}

static bool add_rank(struct drawing *d, uint32_t rank)
{
    char text[128];
    const char *style = html_rank_style(&d->a->why.rank[rank]);
    uint32_t i = 0;
    node_text(d->a, rank, text, sizeof(text));
    while (i < d->nnodes &&
           (d->a->why.n <= ALONE_MAX || strcmp(d->nodes[i].text, text) != 0 || d->nodes[i].style != style))
        i++;
    if (i == d->nnodes) {
        struct node *grown = realloc(d->nodes, (i + 1) * sizeof(*grown));
        if (!grown)
            return false;
        d->nodes = grown;
        grown[i] = (struct node){.style = style};
        memcpy(grown[i].text, text, sizeof(text));
        d->nnodes++;
    }
    uint32_t *ranks = realloc(d->nodes[i].ranks, (d->nodes[i].n + 1) * sizeof(*ranks));
    if (!ranks)
        return false;
    d->nodes[i].ranks = ranks;
    ranks[d->nodes[i].n++] = rank;
    d->node_of[rank] = i;
    return true;
}

static void add_edge(struct drawing *d, uint32_t from, int64_t to)
{
    if (to >= 0 && to < d->a->why.n)
        d->edges[d->node_of[from] * d->nnodes + d->node_of[to]]++;
}

static void add_edges(struct drawing *d, uint32_t r)
{
    const struct why *w = &d->a->why;
    const struct page_wait *wait = why_get_first_wait(&w->rank[r]);
    if (is_rank_stuck(&w->rank[r])) {
        add_edge(d, r, w->rank[r].next);
        return;
    }
    for (uint32_t k = 0; wait && k < wait->nitems; k++) {
        const struct why_meeting *m = meeting_find_collective(w, wait, &wait->items[k]);
        add_edge(d, r, wait->items[k].peer);
        for (uint32_t i = 0; m && i < m->nmissing && i < NODES_MAX; i++)
            add_edge(d, r, m->missing[i]);
    }
}

static double place_nodes(struct drawing *d)
{
    const double rx = WIDTH / 2.0 - 130, ry = d->nnodes <= 2 ? 0 : MAX(150.0, 14.0 * d->nnodes);
    for (uint32_t i = 0; i < d->nnodes; i++) {
        const double angle =
            2 * 3.14159265358979 * i / d->nnodes - (d->nnodes <= 2 ? 3.14159265358979 : 1.5707963);
        d->nodes[i].x = WIDTH / 2.0 + (d->nnodes == 1 ? 0 : rx * cos(angle) * (d->nnodes <= 2 ? 0.7 : 1));
        d->nodes[i].y = ry + 70 + ry * sin(angle);
    }
    return 2 * ry + 140;
}

/* Draws an edge between the borders of two nodes, bent to the left, so that mutual waits are two lines. */
static void draw_edge(FILE *out, const struct drawing *d, uint32_t from, uint32_t to)
{
    const struct node *a = &d->nodes[from], *b = &d->nodes[to];
    const double dx = b->x - a->x, dy = b->y - a->y, length = sqrt(dx * dx + dy * dy);
    const char *style = strcmp(a->style, "stuck") == 0 ? "edge bad" : "edge";
    if (from == to) {
        fprintf(out,
                "<path class=\"%s\" marker-end=\"url(#tip)\" d=\"M %.0f %.0f c -40 -60 40 -60 12 -4\"/>\n",
                style, a->x - 6, a->y - 24);
        return;
    }
    const double ux = dx / length, uy = dy / length;
    /* distance from the centre to the border of the node */
    const double reach = fmin(114 / fmax(fabs(ux), 1e-6), 28 / fmax(fabs(uy), 1e-6));
    const double cx = (a->x + b->x) / 2 + uy * length * 0.13, cy = (a->y + b->y) / 2 - ux * length * 0.13;
    fprintf(out, "<path class=\"%s\" marker-end=\"url(#tip)\" d=\"M %.0f %.0f Q %.0f %.0f %.0f %.0f\"/>\n",
            style, a->x + ux * reach + uy * 8, a->y + uy * reach - ux * 8, cx, cy,
            b->x - ux * (reach + 4) + uy * 8, b->y - uy * (reach + 4) - ux * 8);
    const uint32_t count = d->edges[from * d->nnodes + to];
    if (count > 1)
        fprintf(out, "<text class=\"what count\" x=\"%.0f\" y=\"%.0f\">%u</text>\n",
                (cx + (a->x + b->x) / 2) / 2, (cy + (a->y + b->y) / 2) / 2, count);
}

static void draw_node(FILE *out, const struct node *n)
{
    char *name = NULL;
    size_t size;
    FILE *text = open_memstream(&name, &size);
    if (!text)
        return;
    if (n->n > 64 && n->ranks[n->n - 1] - n->ranks[0] + 1 != n->n)
        fprintf(text, "%u ranks, %u to %u", n->n, n->ranks[0], n->ranks[n->n - 1]);
    else
        words_print_ranks(text, n->ranks, n->n);
    fclose(text);
    if (strlen(name) > 32)
        snprintf(name, size, "%u ranks, %u to %u", n->n, n->ranks[0], n->ranks[n->n - 1]);
    fprintf(out, "<rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"220\" height=\"48\" rx=\"9\"/>", n->style,
            n->x - 110, n->y - 24);
    fprintf(out, "<text text-anchor=\"middle\" x=\"%.0f\" y=\"%.0f\">", n->x, n->y - 4);
    html_text(out, name);
    fprintf(out, "</text><text class=\"what\" text-anchor=\"middle\" x=\"%.0f\" y=\"%.0f\">", n->x,
            n->y + 13);
    char what[40];
    snprintf(what, sizeof(what), "%.36s%s", n->text, strlen(n->text) > 36 ? "..." : "");
    html_text(out, what);
    fprintf(out, "</text>\n");
    free(name);
}

static void html_draw_rank(FILE *out, struct drawing *d)
{
    const double height = place_nodes(d);
    fprintf(out,
            "<div class=\"draw\" tabindex=\"0\"><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d "
            "%.0f\" role=\"img\" aria-label=\"who "
            "waits for "
            "whom\"><defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" "
            "markerHeight=\"8\" orient=\"auto-start-reverse\"><path d=\"M 0 0 L 8 4 L 0 8 z\" "
            "class=\"tip\"/></marker>"
            "</defs>\n",
            WIDTH, height);
    for (uint32_t i = 0; i < d->nnodes; i++)
        for (uint32_t k = 0; k < d->nnodes; k++)
            if (d->edges[i * d->nnodes + k])
                draw_edge(out, d, i, k);
    for (uint32_t i = 0; i < d->nnodes; i++)
        draw_node(out, &d->nodes[i]);
    fprintf(out, "</svg></div>\n");
}

static void write_graph(FILE *out, const struct diagnosis *a)
{
    struct drawing d = {.a = a, .node_of = calloc(a->why.n, sizeof(uint32_t))};
    bool ok = d.node_of != NULL;
    for (uint32_t r = 0; ok && r < a->why.n; r++)
        ok = add_rank(&d, r);
    d.edges = ok ? calloc((size_t)d.nnodes * d.nnodes + 1, sizeof(uint32_t)) : NULL;
    for (uint32_t r = 0; d.edges && r < a->why.n; r++)
        add_edges(&d, r);
    if (d.edges && d.nnodes <= NODES_MAX)
        html_draw_rank(out, &d);
    else
        html_put(out, "p", NULL, "The ranks do %u different things: too many for a drawing.", d.nnodes);
    for (uint32_t i = 0; i < d.nnodes; i++)
        free(d.nodes[i].ranks);
    free(d.nodes);
    free(d.node_of);
    free(d.edges);
}

void diagnosis_html(FILE *out, const void *diagnosis)
{
    const struct diagnosis *a = diagnosis;
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
            "<meta name=\"viewport\" content=\"width=device-width\"/><title>Who waits for whom</title>\n"
            "<style>\n%s</style></head><body>\n",
            page_style);
    html_put(out, "h1", NULL, "%s", diagnosis_hangs(a) ? "The job hangs" : "Who waits for whom");
    html_put(out, "p", NULL,
             "Job %s, %u ranks, %u of them wait in MPI. Red: cannot go on. Yellow: waits. Green: computes.",
             a->snapshot->job, a->why.n, a->why.waiting);
    write_graph(out, a);
    for (size_t i = 0; i < a->why.nfindings && i < FINDINGS_MAX; i++) {
        char *text = NULL;
        size_t size;
        FILE *words = open_memstream(&text, &size);
        if (!words)
            break;
        words_finding(words, &a->wording, &a->why.findings[i]);
        fclose(words);
        fputs("<pre>", out);
        html_text(out, text);
        fputs("</pre>\n", out);
        free(text);
    }
    if (a->why.nfindings > FINDINGS_MAX)
        html_put(out, "p", NULL, "... and %zu findings more; --json has all.",
                 a->why.nfindings - FINDINGS_MAX);
    fprintf(out, "</body></html>\n");
}
