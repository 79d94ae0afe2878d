/* network_make.c: the links of a network, from its topology and the machine's numbers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "network_part.h"

/* Index of the link whose rate a bus link shares. machine.bus_shared: both directions of a bus share one
 * rate; machine.bus_node: all adapters of a node share one rate. */
static uint32_t link_find_bus_medium(const struct network *n, uint32_t link)
{
    uint32_t port = (link - n->bus_first) / 2, direction = (link - n->bus_first) % 2;
    if (n->machine.bus_node != 0)
        port = port / n->rails * n->rails;
    return bus_link_index(n, port, n->machine.bus_shared == 0 && direction);
}

static void link_make(struct network *n, uint32_t index)
{
    struct link *l = &n->links[index];
    l->first = l->last = l->end_node = NONE;
    l->free_count = (uint8_t)n->buffers;
    l->wake_at = NEVER;
    l->medium = index;
    l->used_by = NONE;
    if (link_is_bus(n, index)) {
        l->medium = link_find_bus_medium(n, index);
        l->end_node = (index - n->bus_first) / 2 / n->rails;
        l->rail = (uint8_t)((index - n->bus_first) / 2 % n->rails);
        return;
    }
    l->rail = (uint8_t)(index / (2 * n->topo.cables));
    if (n->rates) {
        double rate = topo_link_rate(&n->topo, index - rail_first_link(n, l->rail));
        n->rates[index] = rate > 0 ? rate : n->machine.link_rate;
    }
    l->end = topo_link_end(&n->topo, index - rail_first_link(n, l->rail));
    if (l->end.level < 0)
        l->end_node = l->end.group;
}

bool network_make(struct network *n, const struct machine *m, uint32_t nodes)
{
    *n = (struct network){
        .machine = *m, .packets_free = NONE, .messages_free = NONE, .copies_free = NONE, .random = 1};
    if (!topo_make(&n->topo, m->topology, nodes, (uint32_t)m->radix, (uint32_t)m->lmc))
        return false;
    nodes = n->topo.nodes;
    n->rails = m->rails > 1 ? (uint32_t)m->rails : 1;
    size_t queues = 2 * (size_t)nodes * n->rails;
    n->bus_first = rail_first_link(n, n->rails);
    n->links_count = n->bus_first + (has_bus(n) ? 2 * nodes * n->rails : 0);
    n->buffers = (uint32_t)m->buffers;
    n->lanes = (uint32_t)m->lanes;
    size_t links = n->links_count + (n->lanes ? n->lanes - 1 : 0) * (size_t)n->bus_first;
    n->links = network_alloc_array(links, sizeof(*n->links));
    n->rates = n->topo.graph ? malloc(n->links_count * sizeof(*n->rates)) : NULL;
    n->free_later_at = malloc(links * n->buffers * sizeof(*n->free_later_at));
    n->rail_scale = calloc(n->rails, sizeof(*n->rail_scale));
    n->scratch = malloc((n->topo.most_copies + 1u) * sizeof(*n->scratch));
    n->gathered = calloc(n->topo.switches, sizeof(*n->gathered));
    n->turn = calloc(nodes, sizeof(*n->turn));
    n->node_first = malloc(queues * sizeof(*n->node_first));
    n->node_last = malloc(queues * sizeof(*n->node_last));
    if (!n->links || (n->topo.graph && !n->rates) || !n->free_later_at || !n->rail_scale || !n->node_first ||
        !n->node_last || !n->scratch || !n->gathered || !n->turn) {
        network_free(n);
        return false;
    }
    for (size_t i = 0; i < queues; i++)
        n->node_first[i] = n->node_last[i] = NONE;
    for (uint32_t r = 0; r < n->rails; r++)
        n->rail_scale[r] = 1;
    memset(n->links, 0, links * sizeof(*n->links));
    for (uint32_t i = 0; i < n->links_count; i++)
        link_make(n, i);
    if (n->lanes && !lanes_make(n)) {
        network_free(n);
        return false;
    }
    return true;
}

void network_rail_rate(struct network *n, uint32_t rail, double scale)
{
    n->rail_scale[rail] = scale;
}

void network_free(struct network *n)
{
    free(n->links);
    free(n->lane_holders);
    free(n->lane_waiting);
    free(n->free_later_at);
    free(n->rates);
    free(n->rail_scale);
    free(n->packets);
    free(n->messages);
    free(n->node_first);
    free(n->node_last);
    free(n->copies);
    free(n->scratch);
    free(n->gathered);
    free(n->turn);
    event_queue_free(&n->events);
    memset(n, 0, sizeof(*n));
}
