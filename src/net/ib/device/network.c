/* network.c: the exchange of offers for ib_network_agree; see network.h. It takes two fences, and only rank 0
 * reads the offers of all nodes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/device/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "boot/boot.h"
#include "boot/softib.h"

/* The published form of an offer begins with this header; the ports follow. */
struct offer_head {
    uint32_t port_size, count, softib;
};

struct decision {
    uint32_t verdict; /* enum choose_verdict, or a value of the enum below */
    uint32_t node;
    struct choose_network network;
};
enum { ALL_SOFTIB = 100, MIXED_LIBRARIES, UNREADABLE };

static int offer_publish(struct boot *b, const struct ib_offer *o)
{
    struct offer_head head = {.port_size = NET_PORT_SENT, .count = o->count, .softib = o->softib};
    size_t size = sizeof(head) + o->count * NET_PORT_SENT;
    char *bytes = malloc(size);
    if (!bytes)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a list of %u ports", o->count);
    memcpy(bytes, &head, sizeof(head));
    for (uint32_t i = 0; i < o->count; i++)
        memcpy(bytes + sizeof(head) + i * NET_PORT_SENT, &o->ports[i], NET_PORT_SENT);
    int rc = boot_put(b, "ib.ports", bytes, size);
    free(bytes);
    return rc;
}

/* Reads the offer of a node; false: the node uses another version of the library. */
static bool read_offer(struct boot *b, uint32_t rank, struct choose_node *node, uint32_t *softib)
{
    struct offer_head head = {0};
    void *bytes;
    size_t len;
    if (boot_get(b, rank, "ib.ports", &bytes, &len) != 0)
        return false;
    bool good = len >= sizeof(head);
    if (good)
        memcpy(&head, bytes, sizeof(head));
    good =
        good && head.port_size == NET_PORT_SENT && len == sizeof(head) + (size_t)head.count * NET_PORT_SENT;
    struct net_port *ports = good ? calloc(head.count + 1, sizeof(*ports)) : NULL;
    for (uint32_t i = 0; ports && i < head.count; i++)
        memcpy(&ports[i], (char *)bytes + sizeof(head) + i * NET_PORT_SENT, NET_PORT_SENT);
    free(bytes);
    if (!ports)
        return false;
    *node = (struct choose_node){ports, head.count};
    *softib += head.softib != 0;
    return true;
}

/* Logs the chosen network and the alternatives. */
static void log_decision(const struct decision *d)
{
    struct net_port p = {.made = d->network.made, .link = d->network.link, .subnet = d->network.subnet};
    char subnet[64];
    if (d->verdict != CHOOSE_FOUND)
        return;
    net_port_subnet(&p, subnet, sizeof(subnet));
    log_info("the network of the job is %s, %s: all nodes have it, the slowest with %g Gb/s",
             net_port_kind(&p), d->network.routed ? "of several subnets that must be routed" : subnet,
             d->network.rate / 1000.0);
}

/* Chooses the network. Called by rank 0. */
static void network_decide(struct boot *b, struct decision *d)
{
    struct choose_node *nodes = calloc(b->nnodes, sizeof(*nodes));
    uint32_t next = 0, softib = 0; /* nodes are numbered in the order of their first ranks */
    *d = (struct decision){.verdict = UNREADABLE};
    for (uint32_t r = 0; nodes && r < b->size && next < b->nnodes; r++) {
        if (b->node_of[r] != next)
            continue;
        if (!read_offer(b, r, &nodes[next], &softib))
            break;
        next++;
    }
    if (nodes && next == b->nnodes) {
        if (softib == 0)
            d->verdict = choose_network(nodes, next, &d->network, &d->node);
        else
            d->verdict = softib == next ? ALL_SOFTIB : MIXED_LIBRARIES;
    } else {
        d->node = next;
    }
    for (uint32_t i = 0; nodes && i < next; i++)
        free((void *)(uintptr_t)nodes[i].ports);
    free(nodes);
    log_decision(d);
}

static uint32_t first_rank_of(const struct boot *b, uint32_t node)
{
    uint32_t r = 0;
    while (r + 1 < b->size && b->node_of[r] != node)
        r++;
    return r;
}

static int network_report_mismatch(struct boot *b, const struct decision *d, const struct ib_offer *mine,
                                   const char *why)
{
    uint32_t rank = first_rank_of(b, d->node);
    bool usable = false;
    for (uint32_t i = 0; i < mine->count; i++)
        usable |= choose_usable(&mine->ports[i]);
    switch (d->verdict) {
    case CHOOSE_MISSING:
        if (!usable)
            return err_set(
                MPI_ERR_OTHER,
                "No InfiniBand or RoCE port is active on %s, but other nodes use one. Bring a port up on "
                "this host, or set FISHPLATE_VERBS=softib for all ranks.%s%s",
                b->host, *why ? " Here, " : "", why);
        return err_set(
            MPI_ERR_OTHER,
            "%s has an active InfiniBand or RoCE port, but the node of rank %u has none: run fishplate "
            "info --devices there, or set FISHPLATE_VERBS=softib for all ranks",
            b->host, rank);
    case CHOOSE_APART:
        return err_set(
            MPI_ERR_OTHER,
            "the nodes have no network in common: the node of rank %u has none of the networks of rank "
            "0's node; fishplate info --devices shows the ports of a node",
            rank);
    case MIXED_LIBRARIES:
        return err_set(
            MPI_ERR_OTHER,
            "FISHPLATE_VERBS=softib is set on some nodes and not on others (on %s it is%s): set it on all "
            "or on none",
            b->host, mine->softib ? "" : " not");
    default:
        return err_set(
            MPI_ERR_OTHER,
            "the list of ports of rank %u cannot be read: do all ranks use the same version of the library?",
            rank);
    }
}

static int offer_exchange(struct boot *b, const struct ib_offer *mine, struct decision *d)
{
    void *bytes = NULL;
    size_t len = 0;
    bool may = mine->softib || mine->fallback;
    int rc = b->local_rank == 0 ? offer_publish(b, mine) : 0;
    rc = rc || !may ? rc : boot_softib_publish_node(b);
    rc = rc ? rc : boot_fence(b);
    if (rc == 0 && b->rank == 0) {
        network_decide(b, d);
        if (may && (d->verdict == ALL_SOFTIB || d->verdict == CHOOSE_NOWHERE))
            rc = boot_softib_publish_fabric(b, mine->softib);
        rc = rc ? rc : boot_put(b, "ib.network", d, sizeof(*d));
    }
    rc = rc ? rc : boot_fence(b);
    rc = rc ? rc : boot_get(b, 0, "ib.network", &bytes, &len);
    if (rc == 0 && len == sizeof(*d))
        memcpy(d, bytes, len);
    else if (rc == 0)
        *d = (struct decision){.verdict = UNREADABLE};
    free(bytes);
    if (rc == 0 && may && (d->verdict == ALL_SOFTIB || d->verdict == CHOOSE_NOWHERE))
        rc = boot_softib_set_environment(b);
    return rc;
}

int ib_network_agree(struct boot *b, const struct ib_offer *mine, const char *why, enum ib_agreed *out,
                     struct choose_network *network)
{
    struct decision d = {.verdict = mine->softib ? ALL_SOFTIB : CHOOSE_NOWHERE};
    int rc = 0;
    if (b->nnodes >= 2)
        rc = offer_exchange(b, mine, &d);
    else if (!mine->softib)
        d.verdict = choose_network(&(struct choose_node){mine->ports, mine->count}, 1, &d.network, &d.node);
    if (rc != 0)
        return rc;
    if (d.verdict != CHOOSE_FOUND && d.verdict != CHOOSE_NOWHERE && d.verdict != ALL_SOFTIB)
        return network_report_mismatch(b, &d, mine, why);
    *out = d.verdict == CHOOSE_FOUND     ? IB_AGREED_PORTS
           : d.verdict == CHOOSE_NOWHERE ? IB_AGREED_NOTHING
                                         : IB_AGREED_SOFTIB;
    *network = d.network;
    return 0;
}
