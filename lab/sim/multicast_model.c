/* multicast_model.c: closed forms of a broadcast's latency and throughput. Processors limit the throughput:
 * an acknowledgement is a few bytes on a link but takes processor time at both ends. Only an old bus can be
 * slower than the processors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "multicast_model.h"

/* Levels of switches of the fat tree that connects `nodes` nodes. */
static uint32_t model_tree_levels(const struct machine *m, uint32_t nodes)
{
    double reach = m->radix;
    uint32_t levels = 1;
    for (; reach < nodes && m->radix > 2; levels++)
        reach *= m->radix / 2;
    return levels;
}

/* Number of nodes below one switch at level `levels` of the tree. */
static double model_nodes_of_levels(const struct machine *m, uint32_t levels)
{
    double reach = 1;
    while (levels-- > 0)
        reach *= m->radix / 2;
    return reach;
}

static double multicast_model_max(double a, double b)
{
    return a > b ? a : b;
}

static double model_network_us(const struct machine *m, uint32_t levels, double bytes)
{
    const double switches = 2 * levels - 1, busses = m->bus_rate > 0 ? 2 : 0,
                 slowest = m->bus_rate > 0 && m->bus_rate < m->link_rate ? m->bus_rate : m->link_rate;
    return (m->doorbell_ns + busses * m->bus_ns + (switches + 1) * m->link_ns + switches * m->switch_ns +
            multicast_model_max(m->message_ns, (bytes + m->header_bytes) / slowest)) /
           1000;
}

static double model_processors_us(const struct machine *m, double bytes)
{
    return (m->send_ns + m->receive_ns + 2 * bytes / m->copy_rate) / 1000;
}

/* Levels of switches that a message between two nodes climbs. */
static uint32_t model_levels_between(const struct machine *m, uint32_t most, uint32_t a, uint32_t b)
{
    uint32_t levels = 1;
    while (levels < most && (uint32_t)(a / model_nodes_of_levels(m, levels)) !=
                                (uint32_t)(b / model_nodes_of_levels(m, levels)))
        levels++;
    return levels;
}

struct tree {
    const struct machine *m;
    uint32_t nodes, levels;
    double bytes;
};

/* Time until all nodes below a node have the data; a node sends to the farthest child first. The slowest path
 * depends on the boundaries of switches: a switch with 18 nodes separates pairs whose distance is a power of
 * two. */
static double model_subtree_us(const struct tree *t, uint32_t node, uint32_t distance)
{
    double slowest = 0, sent = 0;
    for (; distance > 0; distance /= 2) {
        const uint32_t child = node + distance;
        if (child >= t->nodes)
            continue;
        const double there =
            model_processors_us(t->m, t->bytes) +
            model_network_us(t->m, model_levels_between(t->m, t->levels, node, child), t->bytes);
        slowest = multicast_model_max(slowest, sent + there + model_subtree_us(t, child, distance / 2));
        sent += (t->m->send_ns + t->bytes / t->m->copy_rate) / 1000;
    }
    return slowest;
}

double model_messages_us(const struct machine *m, uint32_t nodes, double bytes)
{
    const struct tree t = {m, nodes, model_tree_levels(m, nodes), bytes};
    uint32_t distance = 1;
    while (2 * distance < nodes)
        distance *= 2;
    return nodes > 1 ? model_subtree_us(&t, 0, distance) : 0;
}

double model_multicast_us(const struct machine *m, uint32_t nodes, double bytes)
{
    return model_processors_us(m, bytes) + model_network_us(m, model_tree_levels(m, nodes), bytes) +
           machine_multicast_ns(m, bytes) / 1000;
}

static double model_leaves_per_collector(const struct model_load *l)
{
    const uint32_t leaves = l->nodes - l->collectors;
    return (leaves + l->collectors - 1) / l->collectors;
}

/* Processor time in which a leaf receives a packet and sends its share of an acknowledgement. */
static double model_leaf_ns(const struct machine *m, const struct model_load *l)
{
    return m->receive_ns + l->bytes / m->copy_rate + m->send_ns / l->aggregate;
}

/* Smallest time between two packets of any length on a bus with a delay and few buffers. */
static double model_bus_gap_ns(const struct machine *m)
{
    return m->bus_rate > 0 ? 2 * m->bus_ns / m->buffers : 0;
}

double model_period_us(const struct machine *m, const struct model_load *l)
{
    const double leaves = model_leaves_per_collector(l) / l->aggregate,
                 acks = (l->collectors - 1.0) / l->aggregate + leaves;
    const double root = m->send_ns + l->bytes / m->copy_rate + acks * m->ack_ns;
    const double coroot = l->collectors > 1 ? model_leaf_ns(m, l) + leaves * m->ack_ns : 0;
    return multicast_model_max(multicast_model_max(root, acks * model_bus_gap_ns(m)),
                               multicast_model_max(coroot, model_leaf_ns(m, l))) /
           1000;
}

double model_paper_period_us(const struct machine *m, const struct model_load *l)
{
    const double leaves = model_leaves_per_collector(l) / l->aggregate;
    double rounds = 0;
    while ((1u << (unsigned)rounds) < l->collectors)
        rounds++;
    const double root = (1 + rounds) * m->send_ns + l->bytes / m->copy_rate + leaves * m->ack_ns;
    const double relays =
        l->collectors > 1 ? m->receive_ns + l->bytes / m->copy_rate + (rounds - 1) * m->send_ns : 0;
    const double coroot = relays + leaves * m->ack_ns;
    return multicast_model_max(multicast_model_max(root, leaves * model_bus_gap_ns(m)),
                               multicast_model_max(coroot, model_leaf_ns(m, l))) /
           1000;
}
