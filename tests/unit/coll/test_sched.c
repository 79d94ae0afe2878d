/* test_sched.c: construction of schedules: which calls add a step, and where fences and temporary buffers
 * are placed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/sched/sched.h"
#include "test.h"

static const struct loc send0 = {BUF_SEND, 0}, recv0 = {BUF_RECV, 0};

static void test_empty_transfers_add_no_step(void)
{
    struct sched s;
    sched_init(&s);
    sched_send(&s, 1, send0, 0);
    sched_recv(&s, 1, recv0, 0);
    sched_copy(&s, send0, recv0, 0);
    sched_copy(&s, recv0, recv0, 5);
    sched_reduce(&s, send0, recv0, recv0, 0);
    sched_fence(&s);
    EXPECT_EQ(s.count, 0);
    sched_signal(&s, 1);
    EXPECT_EQ(s.count, 1);
    sched_free(&s);
}

static void test_fences_do_not_repeat(void)
{
    struct sched s;
    sched_init(&s);
    sched_send(&s, 1, send0, 1);
    sched_copy(&s, send0, recv0, 1);
    sched_fence(&s);
    sched_fence(&s);
    sched_copy(&s, send0, loc_add(recv0, 1), 1);
    sched_fence(&s); /* no fence needed: only a copy since the last one */
    EXPECT_EQ(s.count, 4);
    EXPECT_EQ(s.steps[2].kind, STEP_FENCE);
    sched_free(&s);
}

static void test_temporaries_do_not_overlap(void)
{
    struct sched s;
    sched_init(&s);
    struct loc a = sched_temp(&s, 10), b = sched_temp(&s, 3);
    EXPECT_EQ(a.at, 0);
    EXPECT_EQ(b.at, 10);
    EXPECT_EQ(s.temp, 13);
    EXPECT_EQ(b.buf, BUF_TEMP);
    sched_free(&s);
}

static void test_schedule_grows(void)
{
    struct sched s;
    sched_init(&s);
    for (int i = 0; i < 1000; i++)
        sched_send(&s, i, loc_add(send0, i), 1);
    EXPECT_EQ(s.count, 1000);
    EXPECT_EQ(s.steps[999].peer, 999);
    EXPECT_EQ(s.steps[999].at[0], 999);
    EXPECT(!s.failed);
    sched_free(&s);
}

static void test_remote_peers_are_distinguished(void)
{
    EXPECT(PEER_IS_REMOTE(PEER_REMOTE(0)));
    EXPECT(!PEER_IS_REMOTE(0));
    EXPECT_EQ(PEER_REMOTE(PEER_REMOTE(7)), 7);
}

int main(void)
{
    TEST_RUN(test_empty_transfers_add_no_step);
    TEST_RUN(test_fences_do_not_repeat);
    TEST_RUN(test_temporaries_do_not_overlap);
    TEST_RUN(test_schedule_grows);
    TEST_RUN(test_remote_peers_are_distinguished);
    return test_result();
}
