/* barrier.c: the barrier that switches count [Hoefler05 3.4]: every node reports its arrival to its switch,
 * and the top switch releases all nodes. The processor of a node spends the time of one send and one receive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "barrier.h"

#include <stdlib.h>

enum { EVENT_ARRIVES = EVENT_OTHER };

struct gathering {
    struct network net;
    double receive_ns;
    uint32_t left;
    sim_time first, last;
};

static void on_arrived(void *ctx, uint32_t message)
{
    (void)ctx, (void)message; /* unused: all packets of the barrier call on_delivered */
}

static void on_delivered(void *ctx, uint32_t message, uint32_t node)
{
    struct gathering *g = ctx;
    (void)message, (void)node;
    g->last = g->net.now + (sim_time)(g->receive_ns * SIM_NS + 0.5);
    if (g->first == 0)
        g->first = g->last;
    g->left--;
}

static void on_node_arrives(void *ctx, const struct event *e)
{
    struct gathering *g = ctx;
    network_barrier(&g->net, e->index, 0);
}

void barrier_simulate_switches(const struct machine *m, uint32_t nodes, struct job_report *out)
{
    struct gathering *g = calloc(1, sizeof(*g));
    *out = (struct job_report){.failed = "memory ran out"};
    if (!g || !network_make(&g->net, m, nodes)) {
        free(g);
        return;
    }
    g->net.arrived = on_arrived;
    g->net.delivered = on_delivered;
    g->net.other = on_node_arrives;
    g->net.ctx = g;
    g->receive_ns = m->receive_ns;
    g->left = nodes;
    for (uint32_t i = 0; i < nodes; i++)
        event_insert(&g->net.events, (sim_time)(m->send_ns * SIM_NS + 0.5), EVENT_ARRIVES, i);
    network_run(&g->net);
    if (!g->net.failed && g->left == 0)
        *out = (struct job_report){.us = (double)g->last / SIM_NS / 1000,
                                   .first_us = (double)g->first / SIM_NS / 1000,
                                   .messages = nodes,
                                   .events = g->net.events.taken};
    network_free(&g->net);
    free(g);
}
