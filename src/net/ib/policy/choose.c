/* choose.c: the network of a job and the port of a process; see choose.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/choose.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"

static bool can_carry_frames(const struct net_port *p)
{
    return p->place >= 0 && p->link != NET_IWARP && p->link != NET_WIRES;
}

bool choose_usable(const struct net_port *p)
{
    return p->state == NET_ACTIVE && can_carry_frames(p);
}

static bool is_port_on_network(const struct net_port *p, const struct choose_network *w)
{
    return choose_usable(p) && p->made == w->made && p->link == w->link &&
           (w->routed || p->subnet == w->subnet);
}

/* Positive when a is the better port for a process. */
static int compare_ports(const struct net_port *a, const struct net_port *b)
{
    if (a->place != b->place)
        return b->place - a->place;
    if (a->rate != b->rate)
        return a->rate > b->rate ? 1 : -1;
    return a->near - b->near;
}

/* Returns the best port of a node on a network, or -1; among equal ports the first. */
static int find_best_port(const struct net_port *ports, uint32_t n, const struct choose_network *w)
{
    int best = -1;
    for (uint32_t i = 0; i < n; i++)
        if (is_port_on_network(&ports[i], w) && (best < 0 || compare_ports(&ports[i], &ports[best]) > 0))
            best = (int)i;
    return best;
}

/* Distributes the node's processes over the ports that are as good as the best one. */
static int choose_process_port(const struct net_port *ports, uint32_t n, const struct choose_network *w,
                               uint32_t process)
{
    int best = find_best_port(ports, n, w), taken = best;
    uint32_t equals = 0, at = 0;
    for (uint32_t i = 0; i < n; i++)
        equals += is_port_on_network(&ports[i], w) && compare_ports(&ports[i], &ports[best]) == 0;
    for (uint32_t i = 0; i < n && equals > 0; i++)
        if (is_port_on_network(&ports[i], w) && compare_ports(&ports[i], &ports[best]) == 0 &&
            at++ == process % equals)
            taken = (int)i;
    return taken;
}

/* A network and its position among the candidates. */
struct candidate {
    struct choose_network network;
    int place; /* largest position in the user's list on any node */
};

/* True if every node has a port on the network. Sets rate and place to those of the worst node; *node: the
 * first node without the network. */
static bool candidate_on_all_nodes(struct candidate *c, const struct choose_node *nodes, uint32_t n,
                                   uint32_t *node)
{
    c->network.rate = UINT32_MAX;
    c->place = 0;
    for (uint32_t k = 0; k < n; k++) {
        int best = find_best_port(nodes[k].ports, nodes[k].count, &c->network);
        if (best < 0) {
            *node = k;
            return false;
        }
        c->network.rate = MIN(c->network.rate, nodes[k].ports[best].rate);
        c->place = MAX(c->place, nodes[k].ports[best].place);
    }
    return true;
}

static bool candidate_is_better(const struct candidate *a, const struct candidate *b)
{
    if (a->place != b->place)
        return a->place < b->place;
    if (a->network.made != b->network.made)
        return a->network.made < b->network.made;
    if (a->network.rate != b->network.rate)
        return a->network.rate > b->network.rate;
    return a->network.link < b->network.link; /* InfiniBand needs no configuration of Ethernet switches */
}

/* Finds the best network of node 0 that all nodes have. */
static bool best_network(const struct choose_node *nodes, uint32_t n, bool routed, struct choose_network *out,
                         uint32_t *node)
{
    struct candidate best = {0};
    bool found = false;
    for (uint32_t i = 0; i < nodes[0].count; i++) {
        const struct net_port *p = &nodes[0].ports[i];
        struct candidate c = {
            .network = {
                .subnet = routed ? 0 : p->subnet, .made = p->made, .link = p->link, .routed = routed}};
        if (!choose_usable(p) || !candidate_on_all_nodes(&c, nodes, n, node) ||
            (found && !candidate_is_better(&c, &best)))
            continue;
        best = c;
        found = true;
    }
    if (found)
        *out = best.network;
    return found;
}

enum choose_verdict choose_network(const struct choose_node *nodes, uint32_t n, struct choose_network *out,
                                   uint32_t *node)
{
    uint32_t with = 0, first_without = n;
    for (uint32_t k = 0; k < n; k++) {
        bool usable = false;
        for (uint32_t i = 0; i < nodes[k].count; i++)
            usable |= choose_usable(&nodes[k].ports[i]);
        with += usable;
        if (!usable)
            first_without = MIN(first_without, k);
    }
    *node = first_without;
    if (with < n)
        return with == 0 ? CHOOSE_NOWHERE : CHOOSE_MISSING;
    if (best_network(nodes, n, false, out, node) || best_network(nodes, n, true, out, node))
        return CHOOSE_FOUND;
    return CHOOSE_APART;
}

/* ---- reasons ---- */

static void explain_unusable_port(struct net_port *p)
{
    if (p->place < 0)
        snprintf(p->why, sizeof(p->why), "FISHPLATE_IB_DEVICES excludes it");
    else if (p->link == NET_IWARP)
        snprintf(p->why, sizeof(p->why), "iWARP has no datagrams, which are needed to open a connection");
    else if (p->link == NET_WIRES)
        snprintf(p->why, sizeof(p->why), "it carries no data, only barriers of MPI_COMM_WORLD");
    else
        snprintf(p->why, sizeof(p->why), "the port is not active (%s)", net_port_state(p));
}

void choose_explain_unusable(struct net_port *ports, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        ports[i].chosen = false;
        if (choose_usable(&ports[i]))
            snprintf(ports[i].why, sizeof(ports[i].why), "it could be used");
        else
            explain_unusable_port(&ports[i]);
    }
}

/* States why a usable port is not used. */
static void explain_unused_port(struct net_port *p, const struct net_port *used,
                                const struct choose_network *w)
{
    char name[64];
    net_port_name(used, name, sizeof(name));
    if (p->made != used->made && p->made != NET_HARDWARE)
        snprintf(p->why, sizeof(p->why), "%s is %s, this one is software", name,
                 used->made == NET_HARDWARE ? "hardware" : "preferred");
    else if (!is_port_on_network(p, w) && p->rate != used->rate)
        snprintf(p->why, sizeof(p->why), "the job's network is that of %s (%s, %g Gb/s against %g)", name,
                 net_port_link(used), used->rate / 1000.0, p->rate / 1000.0);
    else if (!is_port_on_network(p, w))
        snprintf(p->why, sizeof(p->why), "the job's network is that of %s (%s)", name, net_port_link(used));
    else if (p->place != used->place)
        snprintf(p->why, sizeof(p->why), "FISHPLATE_IB_DEVICES prefers %s", name);
    else if (p->rate != used->rate)
        snprintf(p->why, sizeof(p->why), "%s is faster (%g Gb/s against %g)", name, used->rate / 1000.0,
                 p->rate / 1000.0);
    else if (p->near != used->near)
        snprintf(p->why, sizeof(p->why), "%s is as fast and nearer to this process's GPU or cores", name);
    else
        snprintf(p->why, sizeof(p->why), "%s is as good and comes first", name);
}

static void explain_used_port(struct net_port *p, uint32_t usable, const struct choose_network *w)
{
    if (usable == 1)
        snprintf(p->why, sizeof(p->why), "the only port that can be used");
    else if (w->routed)
        snprintf(p->why, sizeof(p->why), "the nodes share no subnet; routers must connect them");
    else
        snprintf(p->why, sizeof(p->why), "the best port on the network that all nodes share");
}

int choose_port(struct net_port *ports, uint32_t n, const struct choose_network *network, uint32_t process)
{
    int best = choose_process_port(ports, n, network, process);
    uint32_t usable = 0;
    choose_explain_unusable(ports, n);
    if (best < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        if (!choose_usable(&ports[i]))
            continue;
        usable++;
        if ((int)i != best)
            explain_unused_port(&ports[i], &ports[best], network);
    }
    ports[best].chosen = true;
    explain_used_port(&ports[best], usable, network);
    return best;
}

static bool same_device(const struct net_port *a, const struct net_port *b)
{
    return strncmp(a->device, b->device, sizeof(a->device)) == 0;
}

/* True if the port is on an adapter of the rails so far, or there is room for one more adapter. */
static bool adapter_is_within_limit(const struct net_port *ports, uint32_t home, const uint32_t *rails,
                                    uint32_t count, const struct net_port *p, uint32_t adapters)
{
    uint32_t used = 1;
    if (same_device(p, &ports[home]))
        return true;
    for (uint32_t i = 0; i < count; i++) {
        bool fresh = !same_device(&ports[rails[i]], &ports[home]);
        if (same_device(p, &ports[rails[i]]))
            return true;
        for (uint32_t k = 0; k < i; k++)
            fresh &= !same_device(&ports[rails[i]], &ports[rails[k]]);
        used += fresh;
    }
    return used < adapters;
}

uint32_t choose_rails(struct net_port *ports, uint32_t n, uint32_t home, uint32_t adapters, uint32_t most,
                      uint32_t *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct net_port *p = &ports[i];
        if (i == home || !choose_usable(p) || p->made != ports[home].made || p->link != ports[home].link)
            continue; /* all rails have one kind of network */
        if (count == most || !adapter_is_within_limit(ports, home, out, count, p, adapters)) {
            snprintf(p->why, sizeof(p->why), "at most %u rails on %u adapters are used at once", most + 1,
                     adapters);
            continue;
        }
        out[count++] = i;
        p->chosen = true;
        if (p->subnet == ports[home].subnet)
            snprintf(p->why, sizeof(p->why), "a further rail: takes stripes of large messages");
        else
            snprintf(p->why, sizeof(p->why), "a further rail to nodes that are on its subnet too");
    }
    return count;
}

static bool may_become_active(const struct net_port *p)
{
    return (p->state == NET_DOWN || p->state == NET_INIT || p->state == NET_ARMED) && can_carry_frames(p) &&
           p->gid_index >= 0;
}

uint32_t choose_waiting_ports(struct net_port *ports, uint32_t n, uint32_t home, uint32_t adapters,
                              uint32_t most, uint32_t count, uint32_t *out)
{
    for (uint32_t i = 0; i < n && count < most; i++) {
        struct net_port *p = &ports[i];
        if (i == home || !may_become_active(p) || p->made != ports[home].made ||
            p->link != ports[home].link || !adapter_is_within_limit(ports, home, out, count, p, adapters))
            continue;
        out[count++] = i;
        snprintf(p->why, sizeof(p->why), "the port is not active (%s); a further rail when it comes up",
                 net_port_state(p));
    }
    return count;
}
