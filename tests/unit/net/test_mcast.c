/* test_mcast.c: the acknowledgement trees of all small groups; which packets a sender resends to which
 * members; when a member acknowledges; sequence numbers that wrap around.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "net/mcast/sender.h"
#include "net/mcast/stream.h"
#include "net/mcast/ack_tree.h"
#include "test.h"

#define CHILDREN 4

static const struct mcast_rules rules = {.window = 8,
                                         .ring = 8,
                                         .aggregate = 1,
                                         .few = 1,
                                         .burst = 4,
                                         .timeout = 100,
                                         .timeout_max = 400,
                                         .quiet = 50,
                                         .delay = 20};

static struct mcast_child child[CHILDREN];
static uint64_t sent[8];

static struct mcast_sender open_sender(const struct mcast_rules *r, uint32_t packets)
{
    struct mcast_sender s;
    bool ask;
    mcast_sender_open(&s, r, child, CHILDREN, sent);
    for (uint32_t i = 0; i < packets; i++)
        mcast_sender_add_packet(&s, 0, &ask);
    return s;
}

static void receive_ack(struct mcast_sender *s, uint32_t from, uint32_t next, uint64_t early)
{
    const struct mcast_ack a = {.next = next, .limit = next + 8, .early = early};
    mcast_sender_apply_ack(s, from, &a, 10);
}

/* Every member but the root has one parent, the parent lists the member at the member's own index, and the
 * root is two steps away at most. */
static void test_trees(void)
{
    for (uint32_t n = 1; n <= 20; n++)
        for (uint32_t root = 0; root < n; root++)
            for (uint32_t k = 1; k <= 2 * n; k++) {
                const struct mcast_tree t = {n, root, (k + 1) / 2, .deliver = k % 2 == 0};
                uint32_t total = 0, steps = 0;
                for (uint32_t m = 0; m < n; m++) {
                    total += mcast_tree_children(&t, m);
                    const uint32_t parent = mcast_tree_parent(&t, m);
                    EXPECT(t.deliver || mcast_tree_parent(&t, parent) == root);
                    for (uint32_t at = m; at != root && steps < n * n; steps++)
                        at = mcast_tree_parent(&t, at);
                    if (m == root)
                        continue;
                    const uint32_t index = mcast_tree_index(&t, m);
                    EXPECT(index < mcast_tree_children(&t, parent));
                    EXPECT_EQ(mcast_tree_child(&t, parent, index), m);
                }
                EXPECT_EQ(total, n - 1);
                EXPECT(steps < n * n);
            }
}

/* A child's acknowledgement is stored in its parent's memory at an offset given by the child's distance
 * from the root: no two children of a parent share an offset. */
static void test_ack_slots_are_distinct(void)
{
    for (uint32_t k = 1; k <= 24; k++) {
        const uint32_t n = 12;
        for (uint32_t parent = 0; parent < n; parent++) {
            bool used[12] = {false};
            for (uint32_t root = 0; root < n; root++) {
                const struct mcast_tree t = {n, root, (k + 1) / 2, .deliver = k % 2 == 0};
                for (uint32_t i = 0; i < mcast_tree_children(&t, parent); i++) {
                    const uint32_t place = mcast_tree_place(&t, mcast_tree_child(&t, parent, i));
                    EXPECT(place < n && !used[place]);
                    used[place] = true;
                }
            }
        }
    }
}

/* 128 collectors: the root sends to seven of them, co-roots send to the others. */
static void test_delivery_is_binomial(void)
{
    const struct mcast_tree t = {1024, 5, 128, .deliver = true};
    EXPECT_EQ(mcast_tree_children(&t, 5), 7 + 7);
    EXPECT_EQ(mcast_tree_leaves(&t, 5), 7);
    EXPECT_EQ(mcast_tree_children(&t, 5 + 8), 7 + 6);
}

static void test_trees_are_balanced(void)
{
    const struct mcast_tree t = {1024, 5, 128};
    EXPECT_EQ(mcast_tree_children(&t, 5), 127 + 7);
    EXPECT_EQ(mcast_tree_children(&t, 5 + 8), 7);
    EXPECT_EQ(mcast_tree_children(&t, 6), 0);
}

static void test_window_closes_and_opens(void)
{
    struct mcast_sender s = open_sender(&rules, 8);
    EXPECT_EQ(mcast_sender_free_slots(&s), 0);
    for (uint32_t c = 0; c < CHILDREN - 1; c++)
        receive_ack(&s, c, 5, 0);
    EXPECT_EQ(mcast_sender_free_slots(&s), 0); /* the slowest child decides */
    receive_ack(&s, CHILDREN - 1, 3, 0);
    EXPECT_EQ(mcast_sender_free_slots(&s), 3);
    EXPECT_EQ(s.base, 3);
}

static void test_child_without_room_blocks(void)
{
    struct mcast_sender s = open_sender(&rules, 4);
    struct mcast_resend out[8];
    const struct mcast_ack full = {.next = 4, .limit = 4};
    child[2].limit = 4; /* the child's limit from an earlier acknowledgement */
    s.limit = 4;
    for (uint32_t c = 0; c < CHILDREN; c++)
        if (c != 2)
            receive_ack(&s, c, 4, 0);
    mcast_sender_apply_ack(&s, 2, &full, 10);
    EXPECT(mcast_sender_is_idle(&s));
    EXPECT_EQ(mcast_sender_free_slots(&s), 0);
    EXPECT_EQ(mcast_sender_timeout(&s, 1000, out, 8), 0); /* no packet waits for the window */
    mcast_sender_window_full(&s, 10);
    EXPECT_EQ(mcast_sender_timeout(&s, 200, out, 8), 1);
    EXPECT(out[0].ask && out[0].to == 2);
    receive_ack(&s, 2, 4, 0);
    EXPECT_EQ(mcast_sender_free_slots(&s), 8);
}

static void test_timeout_resends_to_few_or_all(void)
{
    struct mcast_sender s = open_sender(&rules, 3);
    struct mcast_resend out[8];
    EXPECT_EQ(mcast_sender_timeout(&s, 99, out, 8), 0);
    /* No child has acknowledged anything: only the oldest packet is resent, to all. */
    EXPECT_EQ(mcast_sender_timeout(&s, 100, out, 8), 1);
    EXPECT(out[0].to == MCAST_ALL && out[0].seq == 0 && !out[0].ask);
    for (uint32_t c = 0; c < CHILDREN - 1; c++)
        receive_ack(&s, c, 3, 0);
    receive_ack(&s, 3, 1, 0);
    /* The child has acknowledged packets in between: all packets that it misses are resent. */
    EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), 2);
    EXPECT(out[0].to == 3 && out[0].seq == 1 && out[1].to == 3 && out[1].seq == 2);
    /* The child has acknowledged nothing since: only the oldest packet is resent. */
    EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), 1);
    EXPECT(out[0].to == 3 && out[0].seq == 1);
}

static void test_timeout_backoff(void)
{
    struct mcast_sender s = open_sender(&rules, 1);
    struct mcast_resend out[8];
    uint64_t now = 100, before;
    static const uint64_t waits[] = {100, 200, 400, 400, 400};
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        /* The first resends are multicast, later ones go to each child (test_multicast_is_never_received). */
        EXPECT_EQ(mcast_sender_timeout(&s, now, out, 8), i < 3 ? 1 : CHILDREN);
        before = now;
        now = s.deadline;
        EXPECT_EQ(now - before, waits[i]);
    }
    for (uint32_t c = 0; c < CHILDREN; c++)
        receive_ack(&s, c, 1, 0);
    EXPECT(s.deadline == MCAST_NEVER && s.tries == 0);
}

/* The sender's multicast port is down: no member receives a multicast, but every member can be reached
 * over its connection. */
static void test_multicast_is_never_received(void)
{
    struct mcast_sender s = open_sender(&rules, 1);
    struct mcast_resend out[8];
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), 1);
        EXPECT_EQ(out[0].to, MCAST_ALL);
    }
    EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), CHILDREN);
    for (uint32_t c = 0; c < CHILDREN; c++) {
        EXPECT_EQ(out[c].to, c);
        EXPECT_EQ(out[c].seq, 0);
        receive_ack(&s, c, 1, 0);
    }
    bool ask;
    mcast_sender_add_packet(&s, 1000, &ask); /* a new packet uses multicast again */
    EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), 1);
    EXPECT_EQ(out[0].to, MCAST_ALL);
}

static void test_late_acks_are_requested(void)
{
    struct mcast_rules r = rules;
    struct mcast_resend out[8];
    r.aggregate = 10;
    struct mcast_sender s = open_sender(&r, 2);
    EXPECT_EQ(mcast_sender_timeout(&s, 100, out, 8), 1);
    EXPECT(out[0].ask && out[0].to == MCAST_ALL);
    EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), 1);
    EXPECT(!out[0].ask);
}

static void test_holes_are_repaired_once(void)
{
    struct mcast_sender s = open_sender(&rules, 6);
    struct mcast_resend out[8];
    receive_ack(&s, 1, 1, 1 << 2); /* packet 3 arrived; 1 and 2 may still be in flight */
    EXPECT_EQ(mcast_sender_list_resends(&s, 1, 60, out, 8), 0);
    receive_ack(&s, 1, 1, 1 << 2 | 1 << 4); /* packet 5 arrived too */
    EXPECT_EQ(mcast_sender_list_resends(&s, 1, 60, out, 8), 2);
    EXPECT(out[0].seq == 1 && out[1].seq == 2 && out[0].to == 1);
    EXPECT_EQ(mcast_sender_list_resends(&s, 1, 70, out, 8), 0);
    EXPECT_EQ(mcast_sender_list_resends(&s, 1, 110, out, 8), 2);
}

static void test_invalid_acks_are_ignored(void)
{
    struct mcast_sender s = open_sender(&rules, 4);
    for (uint32_t c = 0; c < CHILDREN; c++)
        receive_ack(&s, c, 3, 0);
    receive_ack(&s, 0, 1, 0);  /* an acknowledgement that a later one has overtaken */
    receive_ack(&s, 0, 50, 0); /* acknowledges packets that were never sent */
    EXPECT_EQ(s.base, 3);
    EXPECT_EQ(child[0].next, 3);
}

/* A leaf may receive a packet before its co-root does: the leaf's acknowledgement counts. */
static void test_leaf_ahead_of_coroot(void)
{
    struct mcast_sender s = open_sender(&rules, 0);
    bool ask;
    for (uint32_t c = 0; c < CHILDREN; c++)
        receive_ack(&s, c, c == 0 ? 1 : 2, 0);
    EXPECT(mcast_sender_is_idle(&s));
    mcast_sender_add_packet(&s, 20, &ask);
    EXPECT(mcast_sender_is_idle(&s) && s.deadline == MCAST_NEVER);
    mcast_sender_add_packet(&s, 20, &ask);
    EXPECT_EQ(s.base, 1);
    receive_ack(&s, 0, 2, 0);
    EXPECT(mcast_sender_is_idle(&s));
}

static enum mcast_verdict receive_packet(struct mcast_stream *s, const struct mcast_rules *r, uint32_t seq,
                                         bool wanted, uint32_t skew)
{
    const struct mcast_arrival a = {
        .seq = seq, .wanted = wanted, .room = 4, .relay = UINT32_MAX, .now = 1000};
    return mcast_stream_classify_packet(s, r, skew, &a);
}

static void test_packets_out_of_order_and_twice(void)
{
    struct mcast_stream s;
    mcast_stream_open(&s, &rules);
    EXPECT_EQ(receive_packet(&s, &rules, 1, true, 0), MCAST_KEEP);
    EXPECT_EQ(receive_packet(&s, &rules, 1, true, 0), MCAST_DUPLICATE);
    EXPECT(!mcast_stream_has_packet(&s));
    EXPECT_EQ(receive_packet(&s, &rules, 0, true, 0), MCAST_TAKE);
    EXPECT(mcast_stream_has_packet(&s));
    EXPECT_EQ(receive_packet(&s, &rules, 0, true, 0), MCAST_DUPLICATE);
    /* Packet 2 is retained until the application has taken packet 1. */
    EXPECT_EQ(receive_packet(&s, &rules, 2, true, 0), MCAST_KEEP);
    mcast_stream_packet_taken(&s);
    mcast_stream_packet_taken(&s);
    EXPECT(!mcast_stream_has_packet(&s));
    EXPECT_EQ(receive_packet(&s, &rules, 3 + 8, true, 0), MCAST_REFUSE);
    const struct mcast_ack a = mcast_stream_ack(&s, &rules, 4, UINT32_MAX);
    EXPECT(a.next == 3 && a.early == 0 && a.limit == 8);
}

static void test_sequence_numbers_wrap(void)
{
    struct mcast_stream s;
    mcast_stream_open(&s, &rules);
    s.next = s.taken = s.acked = s.promised = UINT32_MAX - 1;
    EXPECT_EQ(receive_packet(&s, &rules, 0, true, 0), MCAST_KEEP);
    EXPECT_EQ(receive_packet(&s, &rules, UINT32_MAX - 1, true, 0), MCAST_TAKE);
    EXPECT_EQ(receive_packet(&s, &rules, UINT32_MAX, true, 0), MCAST_TAKE);
    EXPECT_EQ(s.next, 1);
    EXPECT_EQ(receive_packet(&s, &rules, UINT32_MAX, true, 0), MCAST_DUPLICATE);
}

/* Each member acknowledges one of m packets; different members acknowledge different packets. */
static void test_aggregated_and_skewed_acks(void)
{
    struct mcast_rules r = rules;
    r.aggregate = 4;
    for (int skew = 0; skew < 2; skew++)
        for (uint32_t me = 0; me < 4; me++) {
            struct mcast_stream s;
            r.skew = skew;
            mcast_stream_open(&s, &r);
            uint32_t acks = 0;
            for (uint32_t seq = 0; seq < 16; seq++) {
                EXPECT_EQ(receive_packet(&s, &r, seq, true, me), MCAST_TAKE);
                if (!s.owe) {
                    EXPECT(!mcast_stream_ack_is_due(&s, 1010) && mcast_stream_ack_is_due(&s, 1020));
                    continue;
                }
                EXPECT_EQ(seq % 4, skew ? me : 3);
                acks++;
                mcast_stream_ack(&s, &r, 4, UINT32_MAX);
            }
            EXPECT_EQ(acks, 4);
        }
}

static void test_full_member_acks_when_room_returns(void)
{
    struct mcast_stream s;
    mcast_stream_open(&s, &rules);
    for (uint32_t seq = 0; seq < 8; seq++)
        EXPECT_EQ(receive_packet(&s, &rules, seq, false, 0), MCAST_KEEP);
    EXPECT_EQ(mcast_stream_ack(&s, &rules, 4, UINT32_MAX).limit, 8);
    EXPECT(!s.owe);
    EXPECT_EQ(receive_packet(&s, &rules, 8, false, 0), MCAST_REFUSE);
    EXPECT(s.owe);
    mcast_stream_ack(&s, &rules, 4, UINT32_MAX);
    mcast_stream_packet_taken(&s);
    EXPECT(s.owe);
    EXPECT_EQ(mcast_stream_ack(&s, &rules, 4, UINT32_MAX).limit, 9);
}

int main(void)
{
    TEST_RUN(test_trees);
    TEST_RUN(test_trees_are_balanced);
    TEST_RUN(test_ack_slots_are_distinct);
    TEST_RUN(test_delivery_is_binomial);
    TEST_RUN(test_window_closes_and_opens);
    TEST_RUN(test_child_without_room_blocks);
    TEST_RUN(test_timeout_resends_to_few_or_all);
    TEST_RUN(test_timeout_backoff);
    TEST_RUN(test_multicast_is_never_received);
    TEST_RUN(test_late_acks_are_requested);
    TEST_RUN(test_holes_are_repaired_once);
    TEST_RUN(test_invalid_acks_are_ignored);
    TEST_RUN(test_leaf_ahead_of_coroot);
    TEST_RUN(test_packets_out_of_order_and_twice);
    TEST_RUN(test_sequence_numbers_wrap);
    TEST_RUN(test_aggregated_and_skewed_acks);
    TEST_RUN(test_full_member_acks_when_room_returns);
    return test_result();
}
