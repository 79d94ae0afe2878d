/* tree.c: numbering of switches and links of a fat tree, and routes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <string.h>

/* Largest number of nodes of a tree with this number of levels. */
static uint64_t tree_nodes_max(uint32_t half, uint32_t levels)
{
    uint64_t nodes = 2;
    for (uint32_t l = 0; l < levels; l++)
        nodes *= half;
    return nodes;
}

bool tree_make(struct tree *t, uint32_t nodes, uint32_t radix)
{
    memset(t, 0, sizeof(*t));
    if (radix % 2 || radix < 2 || nodes == 0 || nodes > 1u << 24)
        return false;
    t->nodes = nodes;
    t->half = radix / 2;
    t->levels = 1;
    while (tree_nodes_max(t->half, t->levels) < nodes)
        if (++t->levels == TREE_LEVELS_MAX || t->half == 1)
            return false;
    t->power[0] = 1;
    for (uint32_t l = 0; l < t->levels; l++) {
        t->power[l + 1] = t->power[l] * t->half;
        t->subtrees[l] = l + 1 == t->levels ? 1 : (nodes + t->power[l + 1] - 1) / t->power[l + 1];
    }
    t->first_cable[0] = nodes;
    for (uint32_t l = 0; l + 1 < t->levels; l++)
        t->first_cable[l + 1] = t->first_cable[l] + t->subtrees[l] * t->power[l + 1];
    t->cables = t->first_cable[t->levels - 1];
    return true;
}

uint32_t tree_switches(const struct tree *t)
{
    uint32_t count = 0;
    for (uint32_t l = 0; l < t->levels; l++)
        count += t->subtrees[l] * t->power[l];
    return count;
}

/* Index of the cable that leads from switch (level, group, way) up through a port. */
static uint32_t tree_cable_index(const struct tree *t, uint32_t level, uint32_t group, uint32_t way,
                                 uint32_t port)
{
    return t->first_cable[level] + (group * t->power[level] + way) * t->half + port;
}

/* The group of switches at this level from which links lead down to the node. */
static uint32_t tree_group_of_node(const struct tree *t, uint32_t level, uint32_t node)
{
    return level + 1 == t->levels ? 0 : node / t->power[level + 1];
}

struct tree_place tree_link_end(const struct tree *t, uint32_t link)
{
    uint32_t cable = link / 2, level = 0;
    bool up = link % 2 == 0;
    if (cable < t->nodes)
        return up ? (struct tree_place){0, tree_group_of_node(t, 0, cable), 0}
                  : (struct tree_place){-1, cable, 0};
    while (cable >= t->first_cable[level + 1])
        level++;
    uint32_t port = (cable - t->first_cable[level]) % t->half;
    uint32_t lower = (cable - t->first_cable[level]) / t->half;
    uint32_t group = lower / t->power[level], way = lower % t->power[level];
    if (!up)
        return (struct tree_place){(int)level, group, way};
    uint32_t above = level + 2 == t->levels ? 0 : group / t->half;
    return (struct tree_place){(int)level + 1, above, way + port * t->power[level]};
}

uint32_t tree_next_link(const struct tree *t, struct tree_place at, uint32_t destination, uint32_t path,
                        uint32_t paths)
{
    if (at.level < 0)
        return 2 * at.group;
    uint32_t level = (uint32_t)at.level;
    if (at.group != tree_group_of_node(t, level, destination)) {
        uint32_t turn = t->half >= paths ? path * (t->half / paths) : path;
        return 2 *
               tree_cable_index(t, level, at.group, at.way, (destination / t->power[level] + turn) % t->half);
    }
    if (level == 0)
        return 2 * destination + 1;
    uint32_t lower = level - 1;
    return 2 * tree_cable_index(t, lower, tree_group_of_node(t, lower, destination), at.way % t->power[lower],
                                at.way / t->power[lower]) +
           1;
}

uint32_t tree_up_link(const struct tree *t, struct tree_place at)
{
    uint32_t level = (uint32_t)at.level;
    return level + 1 == t->levels ? UINT32_MAX : 2 * tree_cable_index(t, level, at.group, at.way, 0);
}

uint32_t tree_down_links(const struct tree *t, struct tree_place at, uint32_t *links)
{
    uint32_t level = (uint32_t)at.level, count = 0;
    bool top = level + 1 == t->levels;
    uint32_t there = level ? t->subtrees[level - 1] : t->nodes, each = top ? there : t->half;
    for (uint32_t i = at.group * each; i < (at.group + 1) * each && i < there; i++) {
        uint32_t cable = i;
        if (level)
            cable =
                tree_cable_index(t, level - 1, i, at.way % t->power[level - 1], at.way / t->power[level - 1]);
        links[count++] = 2 * cable + 1;
    }
    return count;
}
