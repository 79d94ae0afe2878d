/* test_sched.c: building schedules: what adds a step and what does not.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/sched/sched.h"
#include "test.h"

static const struct loc send0 = {BUF_SEND, 0}, recv0 = {BUF_RECV, 0};

static void nothing_to_move_adds_nothing(void)
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

static void fences_do_not_repeat(void)
{
    struct sched s;
    sched_init(&s);
    sched_send(&s, 1, send0, 1);
    sched_copy(&s, send0, recv0, 1);
    sched_fence(&s);
    sched_fence(&s);
    sched_copy(&s, send0, loc_add(recv0, 1), 1);
    sched_fence(&s); /* only a copy since the last one */
    EXPECT_EQ(s.count, 4);
    EXPECT_EQ(s.steps[2].kind, STEP_FENCE);
    sched_free(&s);
}

static void temporaries_lie_apart(void)
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

static void grows(void)
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

static void remote_peers_are_distinguished(void)
{
    EXPECT(PEER_IS_REMOTE(PEER_REMOTE(0)));
    EXPECT(!PEER_IS_REMOTE(0));
    EXPECT_EQ(PEER_REMOTE(PEER_REMOTE(7)), 7);
}

int main(void)
{
    TEST_RUN(nothing_to_move_adds_nothing);
    TEST_RUN(fences_do_not_repeat);
    TEST_RUN(temporaries_lie_apart);
    TEST_RUN(grows);
    TEST_RUN(remote_peers_are_distinguished);
    return test_result();
}
