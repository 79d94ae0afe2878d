/* ib_judge.h: checks a world of ib_world.h after its network was repaired: everything sent has arrived,
 * the two ends of each connection agree, and closed connections leave no resources behind.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_IB_JUDGE_H
#define FP_TESTS_IB_JUDGE_H

#include "ib_world.h"

enum { SETTLE_ROUNDS = 1500, SETTLE_STEP_NS = 20 * 1000 * 1000, ROUNDS_PER_HEARTBEAT = 10 };

static inline struct ib_endpoint *find_endpoint(uint32_t from, uint32_t to)
{
    struct peer *peer = world.processes[from].net.peers[to];
    return peer ? peer->endpoint : NULL;
}

static inline enum conn_state connection_state(const struct ib_endpoint *ep)
{
    return ep ? ep->conn.state : CONN_IDLE;
}

/* True if no request and no datagram is in flight. */
static inline bool network_is_idle(void)
{
    if (!list_empty(&fabric.datagrams))
        return false;
    list_foreach(pos, &fabric.qps)
    {
        const struct fabric_qp *qp = list_entry(pos, struct fabric_qp, link);
        const struct fabric_cq *cq = (const struct fabric_cq *)qp->base.send_cq;
        /* An XRC target has no send completion queue. */
        if (cq && (qp->head != qp->tail || cq->head != cq->tail))
            return false;
    }
    return true;
}

static inline bool flow_is_complete(const struct world_flow *f)
{
    bool over = f->delivered == f->requested && !f->is_queued;
    for (uint32_t i = 0; i < WORLD_PUTS; i++)
        over = over && !f->puts[i].busy;
    return over;
}

/* True if the endpoint is idle. A closed connection may retain records until the next connection reports
 * which frames have arrived. */
static inline bool endpoint_is_idle(const struct ib_endpoint *ep)
{
    return !ep ||
           ((ep->conn.state == CONN_IDLE ||
             (ep->conn.state == CONN_OPEN && frame_route_is_ready(&ep->route))) &&
            ep->route.state != FRAME_ROUTE_FAILING && ep->failed_since == 0 && ep->control_pending == 0 &&
            list_empty(&ep->held) && ep->final_markers == 0 && ep->ops == 0);
}

/* True if both ends have joined the same pairs of rails, or if neither end has joined any. */
static inline bool rails_match(const struct ib_endpoint *a, const struct ib_endpoint *b)
{
    bool same = true;
    for (uint32_t k = 1; a && b && a->pairs && b->pairs && k < MIN(a->pairs->count, b->pairs->count); k++)
        same = same && a->pairs->pair[k].joint.state == b->pairs->pair[k].joint.state;
    return same;
}

static inline bool world_is_settled(void)
{
    if (!network_is_idle())
        return false;
    for (uint32_t i = 0; i < world.settings.processes; i++)
        for (uint32_t k = 0; k < world.settings.processes; k++)
            if (i != k &&
                (!flow_is_complete(&world.processes[i].flows[k]) || !endpoint_is_idle(find_endpoint(i, k)) ||
                 connection_state(find_endpoint(i, k)) != connection_state(find_endpoint(k, i)) ||
                 !rails_match(find_endpoint(i, k), find_endpoint(k, i))))
                return false;
    return true;
}

/* Delivers and acknowledges everything in flight, then lets every process make progress. */
static inline void deliver_and_progress_all(void)
{
    while (!list_empty(&fabric.datagrams))
        fabric_deliver_datagram(list_entry(fabric.datagrams.next, struct fabric_datagram, link), false);
    list_foreach(pos, &fabric.qps)
    {
        struct fabric_qp *qp = list_entry(pos, struct fabric_qp, link);
        while (fabric_deliver_request(qp) || fabric_acknowledge_request(qp))
            ;
        fabric_fail_request(qp, false);
    }
    for (uint32_t i = 0; i < world.settings.processes; i++)
        for (int k = 0; k < 4 && !world.processes[i].has_ended; k++)
            net_progress(&world.processes[i].net);
}

/* Activates all ports and advances time until nothing happens any more. */
static inline bool settle_world(void)
{
    for (uint32_t i = 0; i < world.settings.processes; i++) {
        for (uint32_t k = 0; k < world.settings.ports; k++)
            world_set_port(i, k, true);
        world_report_ports(i);
    }
    for (int round = 1; round <= SETTLE_ROUNDS; round++) {
        deliver_and_progress_all();
        if (world_is_settled())
            return true;
        world_now += SETTLE_STEP_NS;
        for (uint32_t i = 0; i < world.settings.processes && round % ROUNDS_PER_HEARTBEAT == 0; i++)
            world_request_heartbeat(i);
    }
    return false;
}

static inline void print_world(void)
{
    static const char *const states[] = {"idle",    "connecting",   "half open", "open",
                                         "closing", "close agreed", "failed"};
    for (uint32_t i = 0; i < world.settings.processes; i++)
        for (uint32_t k = 0; k < world.settings.processes; k++) {
            const struct ib_endpoint *ep = world.processes[i].has_ended ? NULL : find_endpoint(i, k);
            const struct world_flow *f = &world.processes[i].flows[k];
            if (!ep)
                continue;
            printf("  %u to %u: %s%s%s, frames %u of %u (%u sent%s), control_pending %x, final close %u, "
                   "transfers %u, "
                   "held frames %d, unacknowledged %d, unacknowledged RDMA %d, queued requests %u\n",
                   i, k, states[ep->conn.state], frame_route_is_ready(&ep->route) ? ", ready" : "",
                   ep->route.state == FRAME_ROUTE_FAILING ? ", failing" : "", f->delivered, f->requested,
                   f->sent, f->is_queued ? ", queued" : "", ep->control_pending, ep->final_markers, ep->ops,
                   !list_empty(&ep->held), !list_empty(&ep->unacknowledged),
                   !list_empty(&ep->unacknowledged_rdma), ep->lanes[0].head - ep->lanes[0].tail);
        }
}

/* Checks that the credits of `a`, plus those that `b` owes, equal the buffers posted by `b`. */
static inline void check_credits(const struct ib_lane *a, const struct ib_lane *b, const char *what)
{
    const struct credit *mine = &a->credit, *theirs = &b->credit;
    if (mine->unit == 0)
        return;
    if (mine->have + theirs->owed != theirs->posted)
        printf("%s: %u credits and %u owed, for %u buffers\n", what, mine->have, theirs->owed,
               theirs->posted);
    EXPECT_EQ(mine->have + theirs->owed, theirs->posted);
    const struct fabric_qp *qp = (const struct fabric_qp *)b->qp;
    if (!b->shared)
        EXPECT_EQ(qp->own.head - qp->own.tail, theirs->posted + POSTED_SPARE);
}

static inline void check_connection(const struct ib_endpoint *a, const struct ib_endpoint *b)
{
    for (uint32_t k = 0; k < a->ib->lanes; k++)
        check_credits(&a->lanes[k], &b->lanes[k], "primary rail");
    if (a->tx_on && b->rx_state == IB_RING_USED)
        EXPECT_EQ(a->tx.head - a->tx.tail, b->rx.owed);
    for (uint32_t k = 1; a->pairs && b->pairs && k < MIN(a->pairs->count, b->pairs->count); k++) {
        const struct ib_pair *mine = &a->pairs->pair[k], *theirs = &b->pairs->pair[k];
        if (mine->joint.state == JOINT_USED && theirs->joint.state == JOINT_USED && !mine->lane.bare)
            check_credits(&mine->lane, &theirs->lane, "secondary rail");
    }
}

static inline void check_connections(void)
{
    for (uint32_t i = 0; i < world.settings.processes; i++)
        for (uint32_t k = 0; k < world.settings.processes; k++) {
            EXPECT_EQ(world_read_flag(i, k), world.processes[i].flows[k].flag);
            if (i != k && connection_state(find_endpoint(i, k)) == CONN_OPEN)
                check_connection(find_endpoint(i, k), find_endpoint(k, i));
        }
}

/* Checks that late flags did not overwrite memory that was deregistered and reused. */
static inline void check_released_flags(void)
{
    for (uint32_t i = 0; i < world.settings.processes; i++)
        for (uint32_t k = 0; k < world.processes[i].nreleased; k++)
            for (uint32_t at = 0; at < WORLD_FLAGS; at++)
                EXPECT_EQ(world.processes[i].released_flags[k][at], 0x5b);
}

static inline bool close_all_connections(void)
{
    for (int tries = 0; tries < 20; tries++) {
        bool any = false;
        for (uint32_t i = 0; i < world.settings.processes; i++)
            for (uint32_t k = 0; k < world.settings.processes; k++)
                if (connection_state(find_endpoint(i, k)) == CONN_OPEN) {
                    any = true;
                    ib_peer_close_guest(&world.processes[i].ib->base, world.processes[i].net.peers[k], true);
                }
        if (!any)
            return true;
        if (!settle_world())
            return false;
    }
    return false;
}

/* Counts the records that an endpoint retains of its closed connections until the next connection
 * reports that their frames arrived. */
static inline void count_retained_records(uint32_t rank, uint32_t *small, uint32_t *large)
{
    for (uint32_t k = 0; k < world.settings.processes; k++)
        if (find_endpoint(rank, k))
            list_foreach(pos, &find_endpoint(rank, k)->unacknowledged)
            {
                const struct ib_buffer *b = list_entry(pos, struct ib_buffer, link);
                const struct ib_lane *lane = ib_lane_for_size(
                    find_endpoint(rank, k), b->length - MIN(b->length, sizeof(struct ib_frame)));
                ++*(lane->pool == &lane->endpoint->ib->small ? small : large);
            }
}

static inline void check_no_resources_left(void)
{
    for (uint32_t i = 0; i < world.settings.processes; i++) {
        const struct ib *ib = world.processes[i].ib;
        uint32_t small = 0, large = 0, cq = 0;
        count_retained_records(i, &small, &large);
        for (uint32_t a = 0; a < ib->nadapters; a++) {
            small += ib->shared[a][0].posted;
            large += ib->shared[a][1].posted;
            cq = 2 * 64 + ib->shared[a][0].capacity + ib->shared[a][1].capacity;
            EXPECT_EQ(ib->adapters[a].under_way, 0);
            EXPECT_EQ(ib->adapters[a].cq_used, cq);
        }
        EXPECT_EQ(ib->small.in_use, small);
        EXPECT_EQ(ib->large.in_use, large);
        EXPECT_EQ(ib->rings.in_use, 0);
        EXPECT_EQ(ib->open, 0);
        EXPECT_EQ(ib->elsewhere, 0);
        EXPECT(list_empty(&ib->control_waiting));
        EXPECT(list_empty(&ib->opening));
    }
}

/* ---- the end of a job ---- */

/* One turn of MPI_Finalize: the process ends if the transport lets it. */
static inline void try_to_finalize(uint32_t rank)
{
    struct world_process *p = &world.processes[rank];
    if (!p->has_ended && ib_may_end(p->ib, true, false))
        world_process_end(p);
}

/* All processes are in MPI_Finalize, and the network loses nothing from now on: all processes must end. A
 * process that still waits after an hour (IB_RAIL_PATIENCE) gives up, which is an error unless its peer has
 * sent LEAVE. Time advances in small steps at first, then in large ones. */
static inline void check_all_end(void)
{
    bool ended = false;
    for (uint32_t i = 0; i < world.settings.processes; i++)
        for (uint32_t k = 0; k < world.settings.ports && !world.processes[i].has_ended; k++) {
            world_set_port(i, k, true);
            world_report_ports(i);
        }
    for (int round = 1; round <= SETTLE_ROUNDS && !ended; round++) {
        const bool fast = round > SETTLE_ROUNDS / 3;
        deliver_and_progress_all();
        ended = true;
        for (uint32_t i = 0; i < world.settings.processes; i++) {
            try_to_finalize(i);
            ended = ended && world.processes[i].has_ended;
        }
        world_now += fast ? UINT64_C(5000000000) : SETTLE_STEP_NS;
        for (uint32_t i = 0; i < world.settings.processes; i++)
            if (!world.processes[i].has_ended && (fast || round % ROUNDS_PER_HEARTBEAT == 0))
                world_request_heartbeat(i);
    }
    EXPECT(ended);
    if (!ended)
        print_world();
}

/* Repairs the network, lets the world settle and runs all checks. */
static inline void world_check(void)
{
    bool good = settle_world();
    EXPECT(good);
    if (good) {
        check_connections();
        check_released_flags();
    }
    if (good && !close_all_connections()) {
        printf("connections are still open after 20 attempts to close them\n");
        test_failures++;
        good = false;
    }
    if (good)
        check_no_resources_left();
    else
        print_world();
}

#endif
