/* test_rails_mux.c: which rail a message that is not striped uses.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/rails/mux.h"
#include "random.h"
#include "test.h"

static void test_bound_process_keeps_rail(void)
{
    struct mux m;
    mux_open(&m, MUX_BINDING, 3, 4);
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(mux_next(&m, 1), 1);
    mux_set_rail_up(&m, 1, false);
    EXPECT_EQ(mux_next(&m, 1), 2);
    mux_set_rail_up(&m, 2, false);
    EXPECT_EQ(mux_next(&m, 1), 0);
    mux_set_rail_up(&m, 1, true); /* the process returns to its bound rail */
    EXPECT_EQ(mux_next(&m, 1), 1);
}

static void test_turns_skip_down_rails(void)
{
    struct mux m;
    mux_open(&m, MUX_TURNS, 3, 0);
    EXPECT_EQ(mux_next(&m, 1), 0);
    EXPECT_EQ(mux_next(&m, 1), 1);
    mux_set_rail_up(&m, 2, false);
    EXPECT_EQ(mux_next(&m, 1), 0);
    EXPECT_EQ(mux_next(&m, 1), 1);
    mux_set_rail_up(&m, 0, false);
    mux_set_rail_up(&m, 1, false);
    EXPECT_EQ(mux_next(&m, 1), RAIL_NONE);
    mux_set_rail_up(&m, 2, true);
    EXPECT_EQ(mux_next(&m, 1), 2);
}

/* Short messages stay on rail 0 while it is up, and do not count in the turns of the others. */
static void test_short_messages_use_rail_0(void)
{
    struct mux m;
    mux_open(&m, MUX_WEIGHTS, 2, 0);
    mux_settings(&m, (double[]){4, 1}, 1);
    mux_set_short_limit(&m, 1024);
    unsigned got[2] = {0};
    for (int i = 0; i < 1000; i++) {
        EXPECT_EQ(mux_next(&m, 1023), 0);
        unsigned r = mux_next(&m, 1024);
        EXPECT(r < 2);
        got[r & 1]++;
    }
    EXPECT_EQ(got[0], 800);
    EXPECT_EQ(got[1], 200);
    mux_set_rail_up(&m, 0, false);
    EXPECT_EQ(mux_next(&m, 1), 1);
    mux_set_rail_up(&m, 0, true);
    EXPECT_EQ(mux_next(&m, 1), 0);
}

/* After any number of messages each rail is less than one message ahead of or behind its share. */
static void test_weighted_shares(void)
{
    for (int round = 0; round < 200; round++) {
        struct mux m;
        unsigned rails = 1 + random_below(RAILS_MAX);
        uint64_t got[RAILS_MAX] = {0}, sum = 0;
        mux_open(&m, MUX_WEIGHTS, rails, 0);
        for (unsigned r = 0; r < rails; r++)
            sum += m.weight[r] = 1 + random_below(9);
        for (uint64_t n = 1; n <= 3 * sum; n++) {
            got[mux_next(&m, 100)]++;
            for (unsigned r = 0; r < rails; r++) {
                double share = (double)n * m.weight[r] / (double)sum;
                EXPECT((double)got[r] < share + 2 && (double)got[r] > share - 2);
                EXPECT(n % sum || got[r] == n / sum * m.weight[r]);
            }
        }
    }
}

static void test_zero_weight_is_last_resort(void)
{
    struct mux m;
    mux_open(&m, MUX_WEIGHTS, 2, 0);
    m.weight[0] = 0;
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(mux_next(&m, 1), 1);
    mux_set_rail_up(&m, 1, false);
    EXPECT_EQ(mux_next(&m, 1), 0);
}

static void test_windows(void)
{
    struct mux m;
    mux_open(&m, MUX_WINDOW, 2, 0);
    m.window = 3;
    static const unsigned want[] = {0, 0, 0, 1, 1, 1, 0, 0};
    for (unsigned i = 0; i < COUNT_OF(want); i++)
        EXPECT_EQ(mux_next(&m, 1), want[i]);
    /* Rail 0 goes down in the middle of its window: the next window of 3 messages starts on rail 1. */
    mux_set_rail_up(&m, 0, false);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(mux_next(&m, 1), 1);
    mux_set_rail_up(&m, 0, true);
    EXPECT_EQ(mux_next(&m, 1), 0);
}

/* A rail that completes a quarter as fast gets a quarter of the messages, and no window is exceeded. */
static void test_shares_follow_completions(void)
{
    struct mux m;
    uint64_t sent[2] = {0}, done[2] = {0};
    mux_open(&m, MUX_ROOM, 2, 0);
    m.window = 4000;
    for (int step = 0; step < 4000; step++) {
        unsigned rail;
        while ((rail = mux_next(&m, 1000)) != RAIL_NONE) {
            sent[rail]++;
            EXPECT(m.outstanding[rail] <= 4000);
        }
        EXPECT(m.outstanding[0] >= 4000 && m.outstanding[1] >= 4000);
        mux_report_completed(&m, 0, 1000);
        done[0]++;
        if (step % 4 == 0) {
            mux_report_completed(&m, 1, 1000);
            done[1]++;
        }
    }
    EXPECT(sent[0] - done[0] <= 4 && sent[1] - done[1] <= 4);
    EXPECT(sent[0] > 39 * sent[1] / 10 && sent[0] < 41 * sent[1] / 10);
}

/* Weights may be link rates in any unit. */
static void test_weights_of_any_unit(void)
{
    struct mux m;
    unsigned taken[2] = {0};
    mux_open(&m, MUX_WEIGHTS, 2, 0);
    mux_settings(&m, (const double[]){200000, 50000}, 1);
    for (int i = 0; i < 1000; i++)
        taken[mux_next(&m, 1)]++;
    EXPECT_EQ(taken[0], 800);
    EXPECT_EQ(taken[1], 200);
    mux_settings(&m, (const double[]){1e9, 1e-9}, 0);
    EXPECT(m.weight[1] == 1 && m.window == 1); /* no rail is left out, no window is empty */
}

int main(void)
{
    TEST_RUN(test_weights_of_any_unit);
    TEST_RUN(test_bound_process_keeps_rail);
    TEST_RUN(test_turns_skip_down_rails);
    TEST_RUN(test_short_messages_use_rail_0);
    TEST_RUN(test_weighted_shares);
    TEST_RUN(test_zero_weight_is_last_resort);
    TEST_RUN(test_windows);
    TEST_RUN(test_shares_follow_completions);
    return test_result();
}
