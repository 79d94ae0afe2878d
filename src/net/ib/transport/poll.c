/* poll.c: one poll: rings, completion queues, and less frequent work: pending control messages, changed
 * ports, failed connections, timers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/failover/failover.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/transfer.h"
#include "net/ib/transport/ib_transport.h"

#define SWEEP 1024 /* polls between two checks for registered memory that was freed */

/* Probes silent peers: a process that only waits for messages would not detect a dead peer. The probe is a
 * write of 0 bytes. It needs no action of the peer's program, and fails if the peer's queue pair is gone: the
 * peer has ended, or has closed the connection and its AGREE was lost. */
static void peers_probe(struct ib *ib)
{
    ib_failover_check_patience(ib);
    ib_rails_check_waiting(ib);
    ib_pairs_check_ports(ib, true);
    ib_failover_check_ports(ib, true);
    ib_endpoints_trim(ib);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_endpoint *ep = ib->endpoints[i];
        struct ib_lane *lane = &ep->lanes[0];
        bool closing = ep->conn.state == CONN_CLOSING; /* the answer may be lost */
        if (!(frame_route_is_ready(&ep->route) || closing) || ep->route.state == FRAME_ROUTE_FAILING ||
            ep->leave.received)
            continue;
        if (lane->head == lane->tail)
            ib_lane_post_marker(lane, false);
        else
            ib_lane_request_completion(lane);
    }
}

/* Flushes each endpoint in the list once. `end` marks the last one, because a flush may add endpoints to the
 * list or remove them. */
static void flush_waiting_endpoints(struct ib *ib)
{
    struct list end;
    list_append(&ib->control_waiting, &end);
    while (ib->control_waiting.next != &end) {
        struct list *pos = ib->control_waiting.next;
        list_remove(pos);
        list_append(&ib->control_waiting, pos);
        ib_resend_continue(list_entry(pos, struct ib_endpoint, control_link));
    }
    list_remove(&end);
}

static __attribute__((noinline, cold)) void poll_rare_work(struct ib *ib)
{
    atomic_store(&ib->attention, 0);
    int broken = atomic_load(&ib->fatal_event);
    if (broken)
        ib_fatal(ib, NULL, "the adapter has failed: %s",
                 ib->device.verbs.event_type_str((enum ibv_event_type)(broken - 1)));
    if (ib->pair_failures)
        ib_pairs_drop_failed(ib);
    if (atomic_exchange(&ib->pulse, 0))
        peers_probe(ib);
    if (atomic_exchange(&ib->ports, 0)) {
        ib_rails_check_waiting(ib);
        ib_pairs_check_ports(ib, false);
        ib_failover_check_ports(ib, false);
    }
    if (ib->failures)
        ib_failover_reopen_all(ib);
    if (ib->stripes_blocked)
        ib_stripes_retry(ib);
    flush_waiting_endpoints(ib);
    if (!list_empty(&ib->opening))
        ib_hello_repeat(ib);
    for (uint32_t i = 0; i < ib->nadapters * IB_LANES && ib->lanes > 1; i++) {
        struct ib_shared *s = &ib->shared[i / IB_LANES][i % IB_LANES];
        if (atomic_exchange(&s->low, 0) && s->srq)
            ib_shared_refill_low(s);
    }
}

int ib_poll(struct transport *t)
{
    struct ib *ib = ib_of(t);
    int events = ib->pollset.count > 0 ? ib_rings_poll(ib) : 0;
    ib->tick++;
    /* A frame after an idle poll is returned to the caller at once, and completions wait until the next poll.
     * In a stream of frames completions are polled each time. */
    bool at_once = events > 0 && ib->rings_idle && ib->tick % IB_LISTEN != 0;
    ib->rings_idle = events == 0;
    if (!at_once)
        events += ib_completions_poll(ib);
    if (unlikely(ib->tick % SWEEP == 0))
        ib_memory_sweep(ib);
    if (unlikely(!list_empty(&ib->control_waiting) || !list_empty(&ib->opening) ||
                 atomic_load_explicit(&ib->attention, memory_order_relaxed)))
        poll_rare_work(ib);
    return events;
}
