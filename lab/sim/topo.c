/* topo.c: passes each question about the topology to the fat tree (tree.h) or to the file's graph (graph.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "topo.h"

bool topo_make(struct topo *t, const struct graph *graph, uint32_t nodes, uint32_t radix, uint32_t lmc)
{
    *t = (struct topo){.graph = graph, .nodes = nodes, .paths = 1u << lmc};
    if (graph) {
        t->nodes = graph->nodes; /* the file determines the number of nodes, even if only some of them send */
        t->cables = graph->cables;
        t->switches = graph->switches;
        t->most_copies = graph->most_links;
        return nodes <= graph->nodes;
    }
    if (!tree_make(&t->tree, nodes, radix))
        return false;
    t->cables = t->tree.cables;
    t->most_copies = radix;
    for (uint32_t l = 0; l < t->tree.levels; l++) {
        t->switches += t->tree.subtrees[l];
        if (t->tree.subtrees[l] > t->most_copies)
            t->most_copies = t->tree.subtrees[l];
    }
    return true;
}

struct tree_place topo_link_end(const struct topo *t, uint32_t link)
{
    if (!t->graph)
        return tree_link_end(&t->tree, link);
    const struct graph_cable *c = &t->graph->cable[link / 2];
    if (link % 2 == 0)
        return (struct tree_place){0, c->b, 0};
    return (struct tree_place){link / 2 < t->nodes ? -1 : 0, c->a, 0};
}

uint32_t topo_next_link(const struct topo *t, struct tree_place at, uint32_t destination, uint32_t path)
{
    if (!t->graph)
        return tree_next_link(&t->tree, at, destination, path, t->paths);
    return at.level < 0 ? 2 * at.group : graph_next_link(t->graph, at.group, destination, path);
}

double topo_link_rate(const struct topo *t, uint32_t link)
{
    return t->graph ? t->graph->cable[link / 2].rate : 0;
}

uint32_t topo_switch_number(const struct topo *t, struct tree_place at)
{
    uint32_t number = at.group;
    for (int l = 0; !t->graph && l < at.level; l++)
        number += t->tree.subtrees[l];
    return number;
}

uint32_t topo_up_link(const struct topo *t, struct tree_place at)
{
    return t->graph ? t->graph->up[at.group] : tree_up_link(&t->tree, at);
}

uint32_t topo_down_links(const struct topo *t, struct tree_place at, uint32_t *links)
{
    if (!t->graph)
        return tree_down_links(&t->tree, at, links);
    const uint32_t *first = &t->graph->down_first[at.group];
    for (uint32_t i = first[0]; i < first[1]; i++)
        links[i - first[0]] = t->graph->down[i];
    return first[1] - first[0];
}
