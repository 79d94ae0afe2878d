/* test_mcast.c: who acknowledges to whom for all small trees; what a sender sends again and to whom; when a member
 * acknowledges; numbers that wrap around.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "net/mcast/sender.h"
#include "net/mcast/stream.h"
#include "net/mcast/tree.h"
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

static struct mcast_sender opened(const struct mcast_rules *r, uint32_t packets)
{
    struct mcast_sender s;
    bool ask;
    mcast_sender_open(&s, r, child, CHILDREN, sent);
    for (uint32_t i = 0; i < packets; i++)
        mcast_sender_add_packet(&s, 0, &ask);
    return s;
}

static void ack(struct mcast_sender *s, uint32_t from, uint32_t next, uint64_t early)
{
    const struct mcast_ack a = {.next = next, .limit = next + 8, .early = early};
    mcast_sender_apply_ack(s, from, &a, 10);
}

/* Every member but the root has one parent, at the index it thinks it has, and the root is reached by two steps. */
static void trees(void)
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

/* Acknowledgements lie in a root's or co-root's memory at the distance of the child from the root: no two at one place. */
static void children_have_places_of_their_own(void)
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

/* 128 collectors: seven are sent to by the root, the others by co-roots. */
static void delivery_is_a_binomial_tree(void)
{
    const struct mcast_tree t = {1024, 5, 128, .deliver = true};
    EXPECT_EQ(mcast_tree_children(&t, 5), 7 + 7);
    EXPECT_EQ(mcast_tree_leaves(&t, 5), 7);
    EXPECT_EQ(mcast_tree_children(&t, 5 + 8), 7 + 6);
}

static void trees_are_balanced(void)
{
    const struct mcast_tree t = {1024, 5, 128};
    EXPECT_EQ(mcast_tree_children(&t, 5), 127 + 7);
    EXPECT_EQ(mcast_tree_children(&t, 5 + 8), 7);
    EXPECT_EQ(mcast_tree_children(&t, 6), 0);
}

static void window_closes_and_opens(void)
{
    struct mcast_sender s = opened(&rules, 8);
    EXPECT_EQ(mcast_sender_free_slots(&s), 0);
    for (uint32_t c = 0; c < CHILDREN - 1; c++)
        ack(&s, c, 5, 0);
    EXPECT_EQ(mcast_sender_free_slots(&s), 0); /* the slowest decides */
    ack(&s, CHILDREN - 1, 3, 0);
    EXPECT_EQ(mcast_sender_free_slots(&s), 3);
    EXPECT_EQ(s.base, 3);
}

static void no_room_at_one_child(void)
{
    struct mcast_sender s = opened(&rules, 4);
    struct mcast_resend out[8];
    const struct mcast_ack full = {.next = 4, .limit = 4};
    child[2].limit = 4; /* as if it had said so before */
    s.limit = 4;
    for (uint32_t c = 0; c < CHILDREN; c++)
        if (c != 2)
            ack(&s, c, 4, 0);
    mcast_sender_apply_ack(&s, 2, &full, 10);
    EXPECT(mcast_sender_is_idle(&s));
    EXPECT_EQ(mcast_sender_free_slots(&s), 0);
    EXPECT_EQ(mcast_sender_timeout(&s, 1000, out, 8), 0); /* nobody wants to send */
    mcast_sender_window_full(&s, 10);
    EXPECT_EQ(mcast_sender_timeout(&s, 200, out, 8), 1);
    EXPECT(out[0].ask && out[0].to == 2);
    ack(&s, 2, 4, 0);
    EXPECT_EQ(mcast_sender_free_slots(&s), 8);
}

static void timeout_to_the_few_or_to_all(void)
{
    struct mcast_sender s = opened(&rules, 3);
    struct mcast_resend out[8];
    EXPECT_EQ(mcast_sender_timeout(&s, 99, out, 8), 0);
    EXPECT_EQ(mcast_sender_timeout(&s, 100, out, 8),
              1); /* no acknowledgement from anyone: the oldest, to all */
    EXPECT(out[0].to == MCAST_ALL && out[0].seq == 0 && !out[0].ask);
    for (uint32_t c = 0; c < CHILDREN - 1; c++)
        ack(&s, c, 3, 0);
    ack(&s, 3, 1, 0);
    EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), 2); /* it acknowledged: all it misses */
    EXPECT(out[0].to == 3 && out[0].seq == 1 && out[1].to == 3 && out[1].seq == 2);
    EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), 1); /* silent since: only the oldest */
    EXPECT(out[0].to == 3 && out[0].seq == 1);
}

static void timeouts_grow_and_are_forgotten(void)
{
    struct mcast_sender s = opened(&rules, 1);
    struct mcast_resend out[8];
    uint64_t now = 100, before;
    static const uint64_t waits[] = {100, 200, 400, 400, 400};
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        EXPECT_EQ(mcast_sender_timeout(&s, now, out, 8),
                  i < 3 ? 1 : CHILDREN); /* see multicast_that_nobody_receives */
        before = now;
        now = s.deadline;
        EXPECT_EQ(now - before, waits[i]);
    }
    for (uint32_t c = 0; c < CHILDREN; c++)
        ack(&s, c, 1, 0);
    EXPECT(s.deadline == MCAST_NEVER && s.tries == 0);
}

/* The sender's own port is down: nobody hears a multicast, and everybody can be reached over its connection. */
static void multicast_that_nobody_receives(void)
{
    struct mcast_sender s = opened(&rules, 1);
    struct mcast_resend out[8];
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), 1);
        EXPECT_EQ(out[0].to, MCAST_ALL);
    }
    EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), CHILDREN);
    for (uint32_t c = 0; c < CHILDREN; c++) {
        EXPECT_EQ(out[c].to, c);
        EXPECT_EQ(out[c].seq, 0);
        ack(&s, c, 1, 0);
    }
    bool ask;
    mcast_sender_add_packet(&s, 1000, &ask); /* the next one begins anew */
    EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), 1);
    EXPECT_EQ(out[0].to, MCAST_ALL);
}

static void late_acknowledgements_are_requested(void)
{
    struct mcast_rules r = rules;
    struct mcast_resend out[8];
    r.aggregate = 10;
    struct mcast_sender s = opened(&r, 2);
    EXPECT_EQ(mcast_sender_timeout(&s, 100, out, 8), 1);
    EXPECT(out[0].ask && out[0].to == MCAST_ALL);
    EXPECT_EQ(mcast_sender_timeout(&s, s.deadline, out, 8), 1);
    EXPECT(!out[0].ask);
}

static void holes_are_repaired_once(void)
{
    struct mcast_sender s = opened(&rules, 6);
    struct mcast_resend out[8];
    ack(&s, 1, 1, 1 << 2); /* 3 came, 1 and 2 are missing: may still be on the way */
    EXPECT_EQ(mcast_sender_list_resends(&s, 1, 60, out, 8), 0);
    ack(&s, 1, 1, 1 << 2 | 1 << 4); /* 5 came as well */
    EXPECT_EQ(mcast_sender_list_resends(&s, 1, 60, out, 8), 2);
    EXPECT(out[0].seq == 1 && out[1].seq == 2 && out[0].to == 1);
    EXPECT_EQ(mcast_sender_list_resends(&s, 1, 70, out, 8), 0);
    EXPECT_EQ(mcast_sender_list_resends(&s, 1, 110, out, 8), 2);
}

static void old_and_foolish_acknowledgements(void)
{
    struct mcast_sender s = opened(&rules, 4);
    for (uint32_t c = 0; c < CHILDREN; c++)
        ack(&s, c, 3, 0);
    ack(&s, 0, 1, 0);  /* overtaken */
    ack(&s, 0, 50, 0); /* of packets that were never sent */
    EXPECT_EQ(s.base, 3);
    EXPECT_EQ(child[0].next, 3);
}

/* A leaf may have a packet before its co-root has: its acknowledgement counts. */
static void leaves_may_be_ahead(void)
{
    struct mcast_sender s = opened(&rules, 0);
    bool ask;
    for (uint32_t c = 0; c < CHILDREN; c++)
        ack(&s, c, c == 0 ? 1 : 2, 0);
    EXPECT(mcast_sender_is_idle(&s));
    mcast_sender_add_packet(&s, 20, &ask);
    EXPECT(mcast_sender_is_idle(&s) && s.deadline == MCAST_NEVER);
    mcast_sender_add_packet(&s, 20, &ask);
    EXPECT_EQ(s.base, 1);
    ack(&s, 0, 2, 0);
    EXPECT(mcast_sender_is_idle(&s));
}

static enum mcast_verdict arrive(struct mcast_stream *s, const struct mcast_rules *r, uint32_t seq,
                                 bool wanted, uint32_t skew)
{
    const struct mcast_arrival a = {
        .seq = seq, .wanted = wanted, .room = 4, .relay = UINT32_MAX, .now = 1000};
    return mcast_stream_classify_packet(s, r, skew, &a);
}

static void order_and_duplicates(void)
{
    struct mcast_stream s;
    mcast_stream_open(&s, &rules);
    EXPECT_EQ(arrive(&s, &rules, 1, true, 0), MCAST_KEEP);
    EXPECT_EQ(arrive(&s, &rules, 1, true, 0), MCAST_DUPLICATE);
    EXPECT(!mcast_stream_has_packet(&s));
    EXPECT_EQ(arrive(&s, &rules, 0, true, 0), MCAST_TAKE);
    EXPECT(mcast_stream_has_packet(&s));
    EXPECT_EQ(arrive(&s, &rules, 0, true, 0), MCAST_DUPLICATE);
    EXPECT_EQ(arrive(&s, &rules, 2, true, 0), MCAST_KEEP); /* 1 must be taken first */
    mcast_stream_packet_taken(&s);
    mcast_stream_packet_taken(&s);
    EXPECT(!mcast_stream_has_packet(&s));
    EXPECT_EQ(arrive(&s, &rules, 3 + 8, true, 0), MCAST_REFUSE);
    const struct mcast_ack a = mcast_stream_ack(&s, &rules, 4, UINT32_MAX);
    EXPECT(a.next == 3 && a.early == 0 && a.limit == 8);
}

static void numbers_wrap(void)
{
    struct mcast_stream s;
    mcast_stream_open(&s, &rules);
    s.next = s.taken = s.told = s.promised = UINT32_MAX - 1;
    EXPECT_EQ(arrive(&s, &rules, 0, true, 0), MCAST_KEEP);
    EXPECT_EQ(arrive(&s, &rules, UINT32_MAX - 1, true, 0), MCAST_TAKE);
    EXPECT_EQ(arrive(&s, &rules, UINT32_MAX, true, 0), MCAST_TAKE);
    EXPECT_EQ(s.next, 1);
    EXPECT_EQ(arrive(&s, &rules, UINT32_MAX, true, 0), MCAST_DUPLICATE);
}

/* Of m packets each member acknowledges one, and different members different ones. */
static void aggregated_and_skewed(void)
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
                EXPECT_EQ(arrive(&s, &r, seq, true, me), MCAST_TAKE);
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

static void a_full_member_reports_both_changes(void)
{
    struct mcast_stream s;
    mcast_stream_open(&s, &rules);
    for (uint32_t seq = 0; seq < 8; seq++)
        EXPECT_EQ(arrive(&s, &rules, seq, false, 0), MCAST_KEEP);
    EXPECT_EQ(mcast_stream_ack(&s, &rules, 4, UINT32_MAX).limit, 8);
    EXPECT(!s.owe);
    EXPECT_EQ(arrive(&s, &rules, 8, false, 0), MCAST_REFUSE);
    EXPECT(s.owe);
    mcast_stream_ack(&s, &rules, 4, UINT32_MAX);
    mcast_stream_packet_taken(&s);
    EXPECT(s.owe);
    EXPECT_EQ(mcast_stream_ack(&s, &rules, 4, UINT32_MAX).limit, 9);
}

int main(void)
{
    TEST_RUN(trees);
    TEST_RUN(trees_are_balanced);
    TEST_RUN(children_have_places_of_their_own);
    TEST_RUN(delivery_is_a_binomial_tree);
    TEST_RUN(window_closes_and_opens);
    TEST_RUN(no_room_at_one_child);
    TEST_RUN(timeout_to_the_few_or_to_all);
    TEST_RUN(timeouts_grow_and_are_forgotten);
    TEST_RUN(multicast_that_nobody_receives);
    TEST_RUN(late_acknowledgements_are_requested);
    TEST_RUN(holes_are_repaired_once);
    TEST_RUN(old_and_foolish_acknowledgements);
    TEST_RUN(leaves_may_be_ahead);
    TEST_RUN(order_and_duplicates);
    TEST_RUN(numbers_wrap);
    TEST_RUN(aggregated_and_skewed);
    TEST_RUN(a_full_member_reports_both_changes);
    return test_result();
}
