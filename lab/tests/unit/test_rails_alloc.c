/* test_rails_alloc.c: allocation of rails, the sender's half of a reservation, and its frames.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/rails/reserve_frame.h"
#include "lab/mechanisms/rails/request.h"
#include "lab/mechanisms/rails/reserve.h"
#include "test.h"

static void test_basic_policy_is_round_robin(void)
{
    struct alloc a;
    uint32_t set;
    alloc_open(&a, ALLOC_BASIC, 3, 1, 0);
    for (int i = 0; i < 7; i++) {
        /* this policy ignores which rails are free */
        EXPECT_EQ(alloc_message(&a, 1 << 20, 0, &set), ALLOC_SEND);
        EXPECT_EQ(set, rail_bit((unsigned)i % 3));
    }
}

static void test_local_policy_uses_free_rails(void)
{
    struct alloc a;
    uint32_t set;
    alloc_open(&a, ALLOC_LOCAL, 4, 0, 0);
    EXPECT_EQ(alloc_message(&a, 1, 0, &set), ALLOC_WAIT);
    EXPECT_EQ(alloc_message(&a, 1, 0xa, &set), ALLOC_SEND);
    EXPECT_EQ(set, 2);
    EXPECT_EQ(alloc_message(&a, 1, 0xb, &set), ALLOC_SEND);
    EXPECT_EQ(set, 8); /* the rail after the last one */
    EXPECT_EQ(alloc_message(&a, 1, 0xb, &set), ALLOC_SEND);
    EXPECT_EQ(set, 1);
    a.ratio = 1;
    EXPECT_EQ(alloc_message(&a, 1, 0xd, &set), ALLOC_SEND);
    EXPECT_EQ(set, 0xd);
}

/* Ratio 0 selects one rail, 1 all rails; a larger ratio never selects fewer rails. Over many messages
 * every rail is selected equally often. */
static void test_ratio_limits_rails(void)
{
    for (unsigned rails = 1; rails <= RAILS_MAX; rails++) {
        unsigned before = 1;
        for (int percent = 0; percent <= 100; percent++) {
            struct alloc a;
            unsigned taken[RAILS_MAX] = {0}, count = 0;
            alloc_open(&a, ALLOC_LOCAL, rails, percent / 100.0, 0);
            for (unsigned i = 0; i < rails; i++) {
                uint32_t set = alloc_select(&a, rails_all(rails));
                count = rail_set_count(set);
                for (unsigned r = 0; r < rails; r++)
                    taken[r] += rail_set_contains(set, r);
            }
            for (unsigned r = 0; r < rails; r++)
                EXPECT_EQ(taken[r], count);
            EXPECT(count >= before);
            before = count;
            EXPECT(percent != 0 || count == 1);
            EXPECT(percent != 100 || count == rails);
        }
    }
}

static void test_hybrid_policy_reserves_for_long_messages(void)
{
    struct alloc a;
    uint32_t set;
    alloc_open(&a, ALLOC_HYBRID, 4, 1, 4096);
    EXPECT_EQ(alloc_message(&a, 4096, 6, &set), ALLOC_SEND);
    EXPECT_EQ(set, 2);
    EXPECT_EQ(alloc_message(&a, 4096, 0, &set), ALLOC_SEND);
    EXPECT_EQ(set, 4);
    EXPECT_EQ(alloc_message(&a, 4097, 6, &set), ALLOC_RESERVE);
    EXPECT_EQ(set, 6);
    EXPECT_EQ(alloc_message(&a, 4097, 0, &set), ALLOC_WAIT);
}

static void test_request_collects_answers(void)
{
    struct alloc a;
    struct request r;
    alloc_open(&a, ALLOC_DYNAMIC, 4, 0, 0);
    request_begin(&r, 7, 0xf);
    EXPECT_EQ(request_answer(&r, &a, 7, 2, true).verdict, REQUEST_WAIT);
    EXPECT_EQ(request_answer(&r, &a, 7, 2, true).verdict, REQUEST_IGNORED);
    EXPECT_EQ(request_answer(&r, &a, 6, 0, true).verdict, REQUEST_IGNORED);
    EXPECT_EQ(request_answer(&r, &a, 7, 0, false).verdict, REQUEST_WAIT);
    EXPECT_EQ(request_answer(&r, &a, 7, 3, true).verdict, REQUEST_WAIT);
    struct request_out out = request_answer(&r, &a, 7, 1, true);
    EXPECT_EQ(out.verdict, REQUEST_SEND);
    EXPECT_EQ(out.send, 2);
    EXPECT_EQ(out.abort, 0xc);
    EXPECT_EQ(request_answer(&r, &a, 7, 1, true).verdict, REQUEST_IGNORED);
    request_begin(&r, 8, 3);
    request_answer(&r, &a, 8, 0, false);
    EXPECT_EQ(request_answer(&r, &a, 8, 1, false).verdict, REQUEST_RETRY);
}

static void test_request_gives_up_after_timeout(void)
{
    struct alloc a;
    struct request r;
    alloc_open(&a, ALLOC_DYNAMIC, 4, 1, 0);
    request_begin(&r, 7, 0xf);
    request_answer(&r, &a, 7, 2, true);
    request_answer(&r, &a, 7, 3, false);
    struct request_out out = request_timeout(&r, &a);
    EXPECT_EQ(out.verdict, REQUEST_SEND);
    EXPECT_EQ(out.send, 4);
    EXPECT_EQ(out.abort, 3);
    EXPECT_EQ(request_timeout(&r, &a).verdict, REQUEST_IGNORED);
    request_begin(&r, 9, 1);
    out = request_timeout(&r, &a);
    EXPECT_EQ(out.verdict, REQUEST_RETRY);
    EXPECT_EQ(out.abort, 1);
}

/* The sender reports that its message is in memory: the receiver's rail becomes free, then the sender's. A
 * frame of another request has no effect. */
static void test_done_frees_both_ends(void)
{
    struct reserve a, b;
    reserve_open(&a, 1, 0, 4);
    reserve_open(&b, 2, 0, 4);
    struct reserve_out out = reserve_local_rts(&a, 7, 2);
    out = reserve_frame(&b, &out.frame[0]);
    out = reserve_frame(&a, &out.frame[0]);
    EXPECT_EQ(out.answer, RESERVE_ANSWER_CTS);
    struct frame done = {.kind = FRAME_DONE, .from = 1, .to = 2, .request = 6};
    EXPECT(reserve_frame(&b, &done).stray && b.state == RESERVE_RECEIVING);
    done.request = 7;
    out = reserve_frame(&b, &done);
    EXPECT(out.frames == 1 && out.frame[0].kind == FRAME_ACK && reserve_is_free(&b));
    EXPECT(reserve_frame(&b, &done).stray);
    EXPECT(!reserve_frame(&a, &out.frame[0]).stray && reserve_is_free(&a));
}

/* Processes 1 and 5 share an adapter, whose memory was zeroed. A rail that one process has reserved is
 * busy for the other, and the number of the requester breaks ties, whichever process receives the RTS. */
static void test_processes_share_adapter(void)
{
    struct reserve n = {0};
    reserve_set_user(&n, 1, 0, 4);
    struct reserve_out out = reserve_local_rts(&n, 7, 3);
    EXPECT(out.frames == 1 && out.frame[0].kind == FRAME_RTS && out.frame[0].from == 1);

    reserve_set_user(&n, 5, 0, 4);
    EXPECT_EQ(reserve_local_rts(&n, 8, 3).answer, RESERVE_ANSWER_NACK);
    EXPECT(reserve_local_abort(&n, 8).stray && !reserve_is_free(&n));
    EXPECT(!reserve_involves_peer(&n, 3)); /* the request is process 1's */
    reserve_release_peer(&n, 3);
    EXPECT_EQ(n.state, RESERVE_RESERVED);

    const struct frame rts = {.kind = FRAME_RTS, .from = 3, .to = 5, .request = 9};
    out = reserve_frame(&n, &rts);
    EXPECT(out.frames == 1 && out.frame[0].kind == FRAME_CTS && out.frame[0].from == 5 &&
           out.frame[0].to == 3);
    EXPECT_EQ(n.state, RESERVE_RECEIVING_OUT);

    reserve_set_user(&n, 1, 0, 4);
    const struct frame nack = {.kind = FRAME_NACK, .from = 3, .to = 1, .request = 7};
    out = reserve_frame(&n, &nack);
    EXPECT(out.answer == RESERVE_ANSWER_NACK && out.request == 7 && n.state == RESERVE_RECEIVING);
    EXPECT(reserve_involves_peer(&n, 3));
    const struct frame done = {.kind = FRAME_DONE, .from = 3, .to = 5, .request = 9};
    reserve_set_user(&n, 5, 0, 4);
    out = reserve_frame(&n, &done);
    EXPECT(out.frames == 1 && out.frame[0].kind == FRAME_ACK && out.frame[0].from == 5 &&
           reserve_is_free(&n));
}

static bool rails_alloc_is_equal(const struct frame *a, const struct frame *b)
{
    return a->kind == b->kind && a->rail == b->rail && a->priority == b->priority && a->from == b->from &&
           a->to == b->to && a->request == b->request;
}

static void test_frame_decodes_to_same_frame(void)
{
    for (int kind = FRAME_RTS; kind <= FRAME_DONE; kind++)
        for (int p = -FRAME_PRIORITY_MAX; p <= FRAME_PRIORITY_MAX;
             p += kind == FRAME_RTS ? 1 : 4 * FRAME_PRIORITY_MAX) {
            struct frame f = {.kind = (uint8_t)kind,
                              .rail = (uint8_t)(kind - 1),
                              .priority = (int16_t)(kind == FRAME_RTS ? p : 0),
                              .from = 0x01020304,
                              .to = 0xfffefdfc,
                              .request = 0x80000001u + (uint32_t)p};
            struct frame back = {0};
            uint8_t bytes[FRAME_BYTES];
            frame_encode(&f, bytes);
            const char *wrong = frame_decode(bytes, sizeof(bytes), 6, 0xfffefdfc, &back);
            EXPECT(!wrong && rails_alloc_is_equal(&f, &back));
        }
}

/* Sets any byte to any value: either the decoded frame encodes to the same bytes, or decoding fails with a
 * reason. */
static void test_damaged_frames_are_refused(void)
{
    struct frame f = {.kind = FRAME_RTS, .rail = 1, .priority = -3, .from = 4, .to = 9, .request = 77}, back;
    uint8_t good[FRAME_BYTES], bad[FRAME_BYTES], again[FRAME_BYTES];
    int refused = 0;
    frame_encode(&f, good);
    for (size_t size = 0; size < 2 * FRAME_BYTES; size++)
        EXPECT(size == FRAME_BYTES || frame_decode(good, size, 2, 9, &back));
    for (int at = 0; at < FRAME_BYTES; at++)
        for (int value = 0; value < 256; value++) {
            memcpy(bad, good, sizeof(bad));
            bad[at] = (uint8_t)value;
            if (frame_decode(bad, sizeof(bad), 2, 9, &back)) {
                refused++;
                continue;
            }
            frame_encode(&back, again);
            EXPECT(memcmp(bad, again, sizeof(bad)) == 0);
            EXPECT(value == good[at] || (at != 0 && at != 3 && at < 18 && (at < 8 || at > 11)));
        }
    EXPECT(refused > 256 * 8);
}

/* r rails connect r choose r / 2 nodes, so that each node has a rail to and from each other node; 16 nodes
 * need at least six rails [Coll01 1]. */
static void test_static_rails_connect_all_nodes(void)
{
    EXPECT_EQ(alloc_static_nodes(2), 2);
    EXPECT(alloc_static_nodes(5) < 16);
    EXPECT(alloc_static_nodes(6) >= 16);
    for (unsigned rails = 2; rails <= 8; rails++) {
        const uint32_t nodes = alloc_static_nodes(rails);
        for (uint32_t a = 0; a < nodes; a++)
            for (uint32_t b = 0; b < nodes; b++) {
                const uint32_t from = alloc_static_rails(rails, a), to = alloc_static_rails(rails, b);
                EXPECT_EQ(rail_set_count(from), rails / 2);
                EXPECT_EQ((from & ~to) != 0, a != b);
            }
        EXPECT_EQ(alloc_static_rails(rails, nodes), 0);
    }
}

int main(void)
{
    TEST_RUN(test_done_frees_both_ends);
    TEST_RUN(test_processes_share_adapter);
    TEST_RUN(test_basic_policy_is_round_robin);
    TEST_RUN(test_local_policy_uses_free_rails);
    TEST_RUN(test_ratio_limits_rails);
    TEST_RUN(test_hybrid_policy_reserves_for_long_messages);
    TEST_RUN(test_request_collects_answers);
    TEST_RUN(test_request_gives_up_after_timeout);
    TEST_RUN(test_frame_decodes_to_same_frame);
    TEST_RUN(test_damaged_frames_are_refused);
    TEST_RUN(test_static_rails_connect_all_nodes);
    return test_result();
}
