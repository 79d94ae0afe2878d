/* graph_routes.c: shortest routes between switches, and the tree of multicast packets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "graph_part.h"

enum { FAR = UINT16_MAX };

/* Links from switches to other switches: switch s has link[first[s]] to link[first[s + 1] - 1]. */
struct leaving {
    uint32_t *first, *link;
};

static uint32_t link_end_switch(const struct graph *g, uint32_t link)
{
    return link % 2 ? g->cable[link / 2].a : g->cable[link / 2].b;
}

static bool graph_list_leaving_links(struct graph *g, struct leaving *l)
{
    uint32_t links = 2 * (g->cables - g->nodes), *at = calloc(g->switches, sizeof(*at));
    l->first = calloc(g->switches + 1u, sizeof(*l->first));
    l->link = malloc((links ? links : 1) * sizeof(*l->link));
    if (!at || !l->first || !l->link) {
        free(at);
        return false;
    }
    for (uint32_t c = g->nodes; c < g->cables; c++) {
        l->first[g->cable[c].a + 1]++;
        l->first[g->cable[c].b + 1]++;
    }
    for (uint32_t s = 0; s < g->switches; s++)
        l->first[s + 1] += l->first[s];
    for (uint32_t c = g->nodes; c < g->cables; c++) {
        uint32_t a = g->cable[c].a, b = g->cable[c].b;
        l->link[l->first[a] + at[a]++] = 2 * c;
        l->link[l->first[b] + at[b]++] = 2 * c + 1;
    }
    free(at);
    return true;
}

/* Distances in cables from one switch to all others; returns the largest among switches with nodes, FAR if
 * some cannot be reached. */
static uint16_t graph_routes_distances(const struct graph *g, const struct leaving *l, uint32_t from,
                                       uint16_t *far, uint32_t *queue)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t s = 0; s < g->switches; s++)
        far[s] = FAR;
    far[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        uint32_t s = queue[head++];
        for (uint32_t i = l->first[s]; i < l->first[s + 1]; i++) {
            uint32_t next = link_end_switch(g, l->link[i]);
            if (far[next] == FAR) {
                far[next] = (uint16_t)(far[s] + 1);
                queue[tail++] = next;
            }
        }
    }
    uint16_t most = 0;
    for (uint32_t n = 0; n < g->nodes; n++)
        most = far[g->node_switch[n]] > most ? far[g->node_switch[n]] : most;
    return tail == g->switches ? most : FAR;
}

/* Selects the links of each switch s that lead one step nearer to t. far[t * switches + s] is the distance
 * from s to t. */
static bool graph_find_routes(struct graph *g, const struct leaving *l, const uint16_t *far)
{
    size_t pairs = (size_t)g->switches * g->switches, count = 0;
    g->first = malloc((pairs + 1) * sizeof(*g->first));
    if (!g->first)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (uint32_t s = 0; s < g->switches; s++)
            for (uint32_t t = 0; t < g->switches; t++) {
                g->first[(size_t)s * g->switches + t] = (uint32_t)count;
                const uint16_t *to = far + (size_t)t * g->switches;
                for (uint32_t i = l->first[s]; i < l->first[s + 1]; i++)
                    if (to[link_end_switch(g, l->link[i])] + 1 == to[s]) {
                        if (pass)
                            g->next_links[count] = l->link[i];
                        count++;
                    }
            }
        if (!pass && (count > UINT32_MAX / 8 ||
                      !(g->next_links = malloc((count ? count : 1) * sizeof(*g->next_links)))))
            return false;
    }
    g->first[pairs] = (uint32_t)count;
    return true;
}

/* Finds the parent of each switch, the first link of a shortest route to the root; omits switches without
 * nodes below them. */
static void graph_find_parents(struct graph *g, uint32_t root, bool *needed)
{
    for (uint32_t s = 0; s < g->switches; s++)
        g->up[s] = s == root ? UINT32_MAX : g->next_links[g->first[(size_t)s * g->switches + root]];
    for (uint32_t n = 0; n < g->nodes; n++)
        for (uint32_t s = g->node_switch[n]; !needed[s]; s = link_end_switch(g, g->up[s])) {
            needed[s] = true;
            if (s == root)
                break;
        }
}

static bool graph_make_multicast_tree(struct graph *g, uint32_t root)
{
    bool *needed = calloc(g->switches, sizeof(*needed));
    g->up = malloc(g->switches * sizeof(*g->up));
    g->down_first = calloc(g->switches + 2u, sizeof(*g->down_first));
    g->down = malloc((g->switches + (size_t)g->nodes) * sizeof(*g->down));
    if (!g->up || !g->down_first || !g->down || !needed) {
        free(needed);
        return false;
    }
    graph_find_parents(g, root, needed);
    for (uint32_t s = 0; s < g->switches; s++)
        if (s != root && needed[s])
            g->down_first[link_end_switch(g, g->up[s]) + 2]++;
    for (uint32_t n = 0; n < g->nodes; n++)
        g->down_first[g->node_switch[n] + 2]++;
    for (uint32_t s = 0; s < g->switches; s++)
        g->down_first[s + 2] += g->down_first[s + 1];
    for (uint32_t n = 0; n < g->nodes; n++)
        g->down[g->down_first[g->node_switch[n] + 1]++] = 2 * n + 1;
    for (uint32_t s = 0; s < g->switches; s++)
        if (s != root && needed[s])
            g->down[g->down_first[link_end_switch(g, g->up[s]) + 1]++] = g->up[s] ^ 1;
    for (uint32_t s = 0; s < g->switches; s++) {
        uint32_t links = g->down_first[s + 1] - g->down_first[s] + 1;
        g->most_links = links > g->most_links ? links : g->most_links;
    }
    free(needed);
    return true;
}

const char *graph_make_routes(struct graph *g)
{
    static const char *const memory = "out of memory";
    struct leaving l = {0};
    uint16_t *far = malloc((size_t)g->switches * g->switches * sizeof(*far)), best = FAR;
    uint32_t *queue = malloc(g->switches * sizeof(*queue)), root = 0;
    const char *why = !far || !queue || !graph_list_leaving_links(g, &l) ? memory : NULL;
    for (uint32_t s = 0; !why && s < g->switches; s++) {
        uint16_t most = graph_routes_distances(g, &l, s, far + (size_t)s * g->switches, queue);
        if (most == FAR)
            why = "some switches cannot reach each other";
        if (most < best) {
            best = most;
            root = s;
        }
    }
    if (!why && (!graph_find_routes(g, &l, far) || !graph_make_multicast_tree(g, root)))
        why = memory;
    free(far);
    free(queue);
    free(l.first);
    free(l.link);
    return why;
}

uint32_t graph_next_link(const struct graph *g, uint32_t at, uint32_t node, uint32_t path)
{
    uint32_t to = g->node_switch[node];
    if (at == to)
        return 2 * node + 1;
    size_t pair = (size_t)at * g->switches + to;
    uint32_t count = g->first[pair + 1] - g->first[pair];
    return g->next_links[g->first[pair] + (node + path) % count];
}
