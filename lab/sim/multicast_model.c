/* multicast_model.c: see multicast_model.h. Processors are what limits throughput: an acknowledgement is a few bytes on a link, and a
 * processor's time at both ends; only an old bus can be slower.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "multicast_model.h"

/* The levels of switches of the fat tree that connects `nodes` nodes. */
static uint32_t levels_of(const struct machine *m, uint32_t nodes)
{
    double reach = m->radix;
    uint32_t levels = 1;
    for (; reach < nodes && m->radix > 2; levels++)
        reach *= m->radix / 2;
    return levels;
}

/* The number of nodes below one switch of the top of `levels` levels. */
static double reach_of(const struct machine *m, uint32_t levels)
{
    double reach = 1;
    while (levels-- > 0)
        reach *= m->radix / 2;
    return reach;
}

static double multicast_model_larger(double a, double b)
{
    return a > b ? a : b;
}

static double network_us(const struct machine *m, uint32_t levels, double bytes)
{
    const double switches = 2 * levels - 1, busses = m->bus_rate > 0 ? 2 : 0,
                 slowest = m->bus_rate > 0 && m->bus_rate < m->link_rate ? m->bus_rate : m->link_rate;
    return (m->doorbell_ns + busses * m->bus_ns + (switches + 1) * m->link_ns + switches * m->switch_ns +
            multicast_model_larger(m->message_ns, (bytes + m->header_bytes) / slowest)) /
           1000;
}

static double processors_us(const struct machine *m, double bytes)
{
    return (m->send_ns + m->receive_ns + 2 * bytes / m->copy_rate) / 1000;
}

/* Levels of switches that a message between two nodes climbs. */
static uint32_t levels_between(const struct machine *m, uint32_t most, uint32_t a, uint32_t b)
{
    uint32_t levels = 1;
    while (levels < most && (uint32_t)(a / reach_of(m, levels)) != (uint32_t)(b / reach_of(m, levels)))
        levels++;
    return levels;
}

struct tree {
    const struct machine *m;
    uint32_t nodes, levels;
    double bytes;
};

/* Until all below a node have the data; it sends to the farthest first. Which path is the slowest depends on where switches end: a switch
 * with 18 nodes below it cuts through pairs whose distance is a power of two. */
static double below_us(const struct tree *t, uint32_t node, uint32_t distance)
{
    double slowest = 0, sent = 0;
    for (; distance > 0; distance /= 2) {
        const uint32_t child = node + distance;
        if (child >= t->nodes)
            continue;
        const double there = processors_us(t->m, t->bytes) +
                             network_us(t->m, levels_between(t->m, t->levels, node, child), t->bytes);
        slowest = multicast_model_larger(slowest, sent + there + below_us(t, child, distance / 2));
        sent += (t->m->send_ns + t->bytes / t->m->copy_rate) / 1000;
    }
    return slowest;
}

double model_messages_us(const struct machine *m, uint32_t nodes, double bytes)
{
    const struct tree t = {m, nodes, levels_of(m, nodes), bytes};
    uint32_t distance = 1;
    while (2 * distance < nodes)
        distance *= 2;
    return nodes > 1 ? below_us(&t, 0, distance) : 0;
}

double model_multicast_us(const struct machine *m, uint32_t nodes, double bytes)
{
    return processors_us(m, bytes) + network_us(m, levels_of(m, nodes), bytes) +
           machine_multicast_ns(m, bytes) / 1000;
}

static double leaves_of(const struct model_load *l)
{
    const uint32_t leaves = l->nodes - l->collectors;
    return (leaves + l->collectors - 1) / l->collectors;
}

/* A leaf takes a packet and acknowledges it. */
static double leaf_ns(const struct machine *m, const struct model_load *l)
{
    return m->receive_ns + l->bytes / m->copy_rate + m->send_ns / l->aggregate;
}

/* A bus with a delay and few buffers passes on one packet in this time, however short. */
static double bus_gap_ns(const struct machine *m)
{
    return m->bus_rate > 0 ? 2 * m->bus_ns / m->buffers : 0;
}

double model_period_us(const struct machine *m, const struct model_load *l)
{
    const double leaves = leaves_of(l) / l->aggregate, acks = (l->collectors - 1.0) / l->aggregate + leaves;
    const double root = m->send_ns + l->bytes / m->copy_rate + acks * m->ack_ns;
    const double coroot = l->collectors > 1 ? leaf_ns(m, l) + leaves * m->ack_ns : 0;
    return multicast_model_larger(multicast_model_larger(root, acks * bus_gap_ns(m)),
                                  multicast_model_larger(coroot, leaf_ns(m, l))) /
           1000;
}

double model_paper_period_us(const struct machine *m, const struct model_load *l)
{
    const double leaves = leaves_of(l) / l->aggregate;
    double rounds = 0;
    while ((1u << (unsigned)rounds) < l->collectors)
        rounds++;
    const double root = (1 + rounds) * m->send_ns + l->bytes / m->copy_rate + leaves * m->ack_ns;
    const double relays =
        l->collectors > 1 ? m->receive_ns + l->bytes / m->copy_rate + (rounds - 1) * m->send_ns : 0;
    const double coroot = relays + leaves * m->ack_ns;
    return multicast_model_larger(multicast_model_larger(root, leaves * bus_gap_ns(m)),
                                  multicast_model_larger(coroot, leaf_ns(m, l))) /
           1000;
}
