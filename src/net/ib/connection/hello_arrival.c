/* hello_arrival.c: handles the HELLOs of peers, and repeats those of this process until they are answered.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "base/tunable.h"
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/guest.h"
#include "net/lost.h"

/* A peer answers only inside an MPI call, and a program may compute for hours before its first call: a
 * missing answer is no failure. The launcher detects processes that die. */
static TUNABLE_INT(patience, "IB_CONNECT_TIMEOUT", 0, 0, 86400,
                   "Seconds after which a job ends because a peer does not answer the opening of a "
                   "connection. 0: wait for ever; the launcher notices ranks that die.");

static COUNTER(repeats, "ib_hellos_repeated",
               "Datagrams to open connections that were repeated because no answer came.");
static COUNTER(foreign, "ib_hellos_dropped",
               "Datagrams dropped because they were addressed to another process or job.");

#define WORRY_S 10 /* seconds without an answer after which a warning is printed */

/* Validates bytes from the network: any host can send a datagram. A HELLO of a guest that this process does
 * not know yet is dropped, because the guest repeats it. */
static bool hello_is_valid(const struct ib *ib, const struct ib_hello *h, uint32_t length, uint32_t *from)
{
    const struct net *net = ib->base.net;
    return length == IB_GRH_BYTES + sizeof(*h) && h->magic == IB_HELLO_MAGIC &&
           h->version == IB_HELLO_VERSION && h->to_job == ib->job && h->to == net->rank &&
           net_guest_find_number(net, h->job, h->from, from) && *from != net->rank && h->mine != 0 &&
           h->lanes >= 1 && h->lanes <= IB_LANES && h->rail < IB_RAILS_MAX && h->adapter < IB_ADAPTERS_MAX;
}

void ib_hello_receive(struct ib *ib, struct ib_buffer *b, uint32_t length)
{
    struct ib_hello h;
    uint8_t rail = b->rail;
    memcpy(&h, b->data + IB_GRH_BYTES, sizeof(h));
    if (ib_hello_post_receive(ib, b) != 0)
        ib_fatal(ib, NULL, "%s", err_detail(MPI_ERR_OTHER));
    struct peer *peer;
    uint32_t from;
    if (!hello_is_valid(ib, &h, length, &from)) {
        counter_add(&foreign, 1);
        return;
    }
    if (net_is_lost(ib->base.net, from))
        return; /* sent before the peer died */
    int rc = net_peer(ib->base.net, from, &peer);
    if (rc != 0)
        ib_fatal(ib, NULL, "rank %u cannot be answered: %s", h.from, err_detail(rc));
    struct ib_endpoint *ep = peer->endpoint;
    if (peer->transport != &ib->base)
        return;
    enum ib_path_verdict verdict = ib_path_match_hello(ep, rail, &h);
    if (verdict == IB_PATH_RESTART)
        ib_endpoint_reopen(ep);
    if (verdict != IB_PATH_REFUSED)
        ib_endpoint_handle_hello(ep, &h);
}

/* True if this process needs the connection. Otherwise only the peer requested it. */
static bool connection_is_awaited(const struct ib_endpoint *ep)
{
    return ep->ib->opening_all || !list_empty(&ep->peer->pending);
}

/* Warns once in a process: if a rank computes for long before its first MPI call, many connections wait, and
 * one warning is enough. */
static void handshake_warn_slow(const struct ib_endpoint *ep)
{
    struct ib *ib = ep->ib;
    const struct net_name to = net_process_name(ib->base.net, ep->peer->rank);
    uint32_t others = 0;
    char more[64] = "";
    if (ib->warned || !connection_is_awaited(ep))
        return;
    ib->warned = true;
    list_foreach(pos, &ib->opening)
    {
        const struct ib_endpoint *other = list_entry(pos, struct ib_endpoint, opening_link);
        others += other != ep && connection_is_awaited(other);
    }
    if (others > 0)
        snprintf(more, sizeof(more), " (nor have %u others answered)", others);
    log_warn("waiting for rank %u%s to open a connection over %s; it has not answered for %d seconds%s: it "
             "makes no MPI call, or it cannot be reached. Still waiting; `fishplate why` reports what it "
             "does, and FISHPLATE_IB_CONNECT_TIMEOUT sets a limit",
             (uint32_t)to.rank, ep->peer->card ? " of another job" : "", ib->device.name, WORRY_S, more);
}

void ib_hello_repeat(struct ib *ib)
{
    uint64_t now = clock_ns();
    if (now < ib->next_timer)
        return;
    ib->next_timer = UINT64_MAX;
    uint32_t tries = patience.value
                         ? (uint32_t)((uint64_t)patience.value * 1000000000u / IB_HELLO_LONGEST_WAIT) + 8
                         : UINT32_MAX;
    list_foreach_safe(pos, after, &ib->opening)
    {
        struct ib_endpoint *ep = list_entry(pos, struct ib_endpoint, opening_link);
        if (ep->deadline <= now) {
            counter_add(&repeats, 1);
            if (now - ep->opening_since >= WORRY_S * 1000000000ull)
                handshake_warn_slow(ep);
            unsigned actions = conn_timer_expired(&ep->conn, tries);
            bool other = actions & CONN_DO_HELLO && ep->paths && ep->paths->count > 1 &&
                         ep->conn.tries % IB_PATH_TRIES == 0;
            if (other) {
                ib_path_assume_up(ep);
                if (ep->conn.state != CONN_HALF || /* frames that arrived in CONN_HALF are processed first */
                    !ib->events->failed(ep, NULL))
                    ib_endpoint_reopen(ep);
            } else {
                ib_endpoint_perform_actions(ep, actions);
            }
        }
        if (!list_empty(&ep->opening_link))
            ib->next_timer = MIN(ib->next_timer, ep->deadline);
    }
}
