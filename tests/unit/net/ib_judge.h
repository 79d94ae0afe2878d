/* ib_judge.h: what must have become of the world of ib_world.h when its network is well again: all that was sent has come, the two ends of
 * each connection agree, and when all connections are closed nothing is left of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_IB_JUDGE_H
#define FP_TESTS_IB_JUDGE_H

#include "ib_world.h"

enum { JUDGE_ROUNDS = 1500, JUDGE_STEP = 20 * 1000 * 1000, JUDGE_PULSE = 10 };

static inline struct ib_endpoint *judge_end(uint32_t from, uint32_t to)
{
    struct peer *peer = world.processes[from].net.peers[to];
    return peer ? peer->endpoint : NULL;
}

static inline enum conn_state judge_state(const struct ib_endpoint *ep)
{
    return ep ? ep->conn.state : CONN_IDLE;
}

/* True if no request and no datagram is under way. */
static inline bool judge_network_quiet(void)
{
    if (!list_empty(&fabric.datagrams))
        return false;
    list_foreach(pos, &fabric.qps)
    {
        const struct fabric_qp *qp = list_entry(pos, struct fabric_qp, link);
        const struct fabric_cq *cq = (const struct fabric_cq *)qp->base.send_cq;
        if (qp->head != qp->tail || cq->head != cq->tail)
            return false;
    }
    return true;
}

static inline bool judge_flow_over(const struct world_flow *f)
{
    bool over = f->come == f->requested && !f->waits;
    for (uint32_t i = 0; i < WORLD_PUTS; i++)
        over = over && !f->puts[i].busy;
    return over;
}

/* True if the endpoint is at rest. A closed connection may keep records until the next one reports what has arrived. */
static inline bool judge_end_quiet(const struct ib_endpoint *ep)
{
    return !ep ||
           ((ep->conn.state == CONN_IDLE ||
             (ep->conn.state == CONN_OPEN && traffic_is_ready(&ep->traffic))) &&
            ep->traffic.state != TRAFFIC_FAILING && ep->failed_since == 0 && ep->control_pending == 0 &&
            list_empty(&ep->held) && ep->final_markers == 0 && ep->ops == 0);
}

/* True if both ends have joined the same pairs of rails, or none. */
static inline bool judge_joined(const struct ib_endpoint *a, const struct ib_endpoint *b)
{
    bool same = true;
    for (uint32_t k = 1; a && b && a->pairs && b->pairs && k < MIN(a->pairs->count, b->pairs->count); k++)
        same = same && a->pairs->pair[k].joint.state == b->pairs->pair[k].joint.state;
    return same;
}

static inline bool judge_over(void)
{
    if (!judge_network_quiet())
        return false;
    for (uint32_t i = 0; i < world.set.processes; i++)
        for (uint32_t k = 0; k < world.set.processes; k++)
            if (i != k &&
                (!judge_flow_over(&world.processes[i].flows[k]) || !judge_end_quiet(judge_end(i, k)) ||
                 judge_state(judge_end(i, k)) != judge_state(judge_end(k, i)) ||
                 !judge_joined(judge_end(i, k), judge_end(k, i))))
                return false;
    return true;
}

/* One round of a network that loses nothing. */
static inline void judge_round(void)
{
    while (!list_empty(&fabric.datagrams))
        fabric_datagram_arrives(list_entry(fabric.datagrams.next, struct fabric_datagram, link), false);
    list_foreach(pos, &fabric.qps)
    {
        struct fabric_qp *qp = list_entry(pos, struct fabric_qp, link);
        while (fabric_arrives(qp) || fabric_acknowledged(qp))
            ;
        fabric_gives_up(qp, false);
    }
    for (uint32_t i = 0; i < world.set.processes; i++)
        for (int k = 0; k < 4; k++)
            net_progress(&world.processes[i].net);
}

/* Activates all ports and advances time until nothing happens any more. */
static inline bool judge_settle(void)
{
    for (uint32_t i = 0; i < world.set.processes; i++) {
        for (uint32_t k = 0; k < world.set.ports; k++)
            world_port(i, k, true);
        world_notice(i);
    }
    for (int round = 1; round <= JUDGE_ROUNDS; round++) {
        judge_round();
        if (judge_over())
            return true;
        world_now += JUDGE_STEP;
        for (uint32_t i = 0; i < world.set.processes && round % JUDGE_PULSE == 0; i++)
            world_pulse(i);
    }
    return false;
}

static inline void judge_print(void)
{
    static const char *const states[] = {"idle", "asking", "half", "open", "closing", "agreed", "failed"};
    for (uint32_t i = 0; i < world.set.processes; i++)
        for (uint32_t k = 0; k < world.set.processes; k++) {
            const struct ib_endpoint *ep = judge_end(i, k);
            const struct world_flow *f = &world.processes[i].flows[k];
            if (!ep)
                continue;
            printf("  %u to %u: %s%s%s, frames %u of %u (%u sent%s), control_pending %x, final close %u, "
                   "transfers %u, "
                   "held %d, kept %d %d, queue %u\n",
                   i, k, states[ep->conn.state], traffic_is_ready(&ep->traffic) ? ", ready" : "",
                   ep->traffic.state == TRAFFIC_FAILING ? ", failing" : "", f->come, f->requested, f->sent,
                   f->waits ? ", waits" : "", ep->control_pending, ep->final_markers, ep->ops,
                   !list_empty(&ep->held), !list_empty(&ep->unacknowledged),
                   !list_empty(&ep->unacknowledged_rdma), ep->lanes[0].head - ep->lanes[0].tail);
        }
}

/* Checks that one end's credits equal the other's posted buffers. */
static inline void judge_credits(const struct ib_lane *a, const struct ib_lane *b, const char *what)
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

static inline void judge_connection(const struct ib_endpoint *a, const struct ib_endpoint *b)
{
    for (uint32_t k = 0; k < a->ib->lanes; k++)
        judge_credits(&a->lanes[k], &b->lanes[k], "the primary rail");
    if (a->tx_on && b->rx_state == IB_RING_USED)
        EXPECT_EQ(a->tx.head - a->tx.tail, b->rx.owed);
    for (uint32_t k = 1; a->pairs && b->pairs && k < MIN(a->pairs->count, b->pairs->count); k++) {
        const struct ib_pair *mine = &a->pairs->pair[k], *theirs = &b->pairs->pair[k];
        if (mine->joint.state == JOINT_USED && theirs->joint.state == JOINT_USED && !mine->lane.bare)
            judge_credits(&mine->lane, &theirs->lane, "a further rail");
    }
}

static inline void judge_connections(void)
{
    for (uint32_t i = 0; i < world.set.processes; i++)
        for (uint32_t k = 0; k < world.set.processes; k++) {
            EXPECT_EQ(world_flag_seen(i, k), world.processes[i].flows[k].flag);
            if (i != k && judge_state(judge_end(i, k)) == CONN_OPEN)
                judge_connection(judge_end(i, k), judge_end(k, i));
        }
}

/* Checks that released memory has the contents that its owner left. */
static inline void judge_given_up(void)
{
    for (uint32_t i = 0; i < world.set.processes; i++)
        for (uint32_t k = 0; k < world.processes[i].ngiven_up; k++)
            for (uint32_t at = 0; at < WORLD_FLAGS; at++)
                EXPECT_EQ(world.processes[i].given_up[k][at], 0x5b);
}

/* All connections close. */
static inline bool judge_close(void)
{
    for (int tries = 0; tries < 20; tries++) {
        bool any = false;
        for (uint32_t i = 0; i < world.set.processes; i++)
            for (uint32_t k = 0; k < world.set.processes; k++)
                if (judge_state(judge_end(i, k)) == CONN_OPEN) {
                    any = true;
                    ib_peer_part(&world.processes[i].ib->base, world.processes[i].net.peers[k], true);
                }
        if (!any)
            return true;
        if (!judge_settle())
            return false;
    }
    return false;
}

/* Counts the records that an end keeps of a closed connection: all of it has arrived, and the next connection reports
 * that. */
static inline void judge_kept(uint32_t rank, uint32_t *small, uint32_t *large)
{
    for (uint32_t k = 0; k < world.set.processes; k++)
        if (judge_end(rank, k))
            list_foreach(pos, &judge_end(rank, k)->unacknowledged)
            {
                const struct ib_buffer *b = list_entry(pos, struct ib_buffer, link);
                const struct ib_lane *lane =
                    ib_lane_for_size(judge_end(rank, k), b->length - MIN(b->length, sizeof(struct ib_frame)));
                ++*(lane->pool == &lane->endpoint->ib->small ? small : large);
            }
}

static inline void judge_nothing_left(void)
{
    for (uint32_t i = 0; i < world.set.processes; i++) {
        const struct ib *ib = world.processes[i].ib;
        uint32_t small = 0, large = 0, cq = 0;
        judge_kept(i, &small, &large);
        for (uint32_t a = 0; a < ib->nadapters; a++) {
            small += ib->shared[a][0].posted;
            large += ib->shared[a][1].posted;
            cq = 2 * 64 + ib->shared[a][0].most + ib->shared[a][1].most;
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

/* Checks everything. */
static inline void world_judge(void)
{
    bool good = judge_settle();
    EXPECT(good);
    if (good) {
        judge_connections();
        judge_given_up();
    }
    if (good && !judge_close()) {
        printf("the connections do not close\n");
        test_failures++;
        good = false;
    }
    if (good)
        judge_nothing_left();
    else
        judge_print();
}

#endif
