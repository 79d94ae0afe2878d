/* test_flow.c: streams under flow control, compared with times computed by hand and with the results of
 * [Liu04 5.4].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "flow.h"
#include "plain.h"
#include "test.h"

static struct machine machine;

static struct flow_report flow_simulate_stream(enum credit_scheme scheme, uint32_t buffers, uint32_t window)
{
    const struct flow_order order = {.machine = &machine,
                                     .rules = {.scheme = scheme,
                                               .growth = CREDIT_EXPONENTIAL,
                                               .first = buffers,
                                               .buffers_max = 128,
                                               .step = buffers},
                                     .window = window,
                                     .windows = 2000 / window,
                                     .bytes = 4,
                                     .rnr_ns = 10000};
    struct flow_report r;
    flow_simulate(&order, &r);
    EXPECT(r.failed == NULL);
    EXPECT_EQ(r.messages, 2000 / window * window);
    return r;
}

/* One message and one answer at a time: each message carries a credit back, no side waits, and all schemes
 * take the same time: a send, the wire and a receive in each direction. */
static void test_replies_carry_credits(void)
{
    struct flow_report r[3];
    for (int s = CREDIT_HW; s <= CREDIT_DYNAMIC; s++) {
        r[s] = flow_simulate_stream((enum credit_scheme)s, 2, 1);
        EXPECT_EQ(r[s].credit_messages, 0);
        EXPECT_EQ(r[s].waits, 0);
        EXPECT_EQ(r[s].refused, 0);
        EXPECT(r[s].us == r[0].us);
    }
    const double way = 120 + 4;
    double expected = 2000 * 2 * (machine.send_ns + way + machine.receive_ns) / 1000;
    EXPECT(r[0].us > 0.999 * expected && r[0].us < 1.001 * expected);
}

/* A window exceeds the number of buffers, and its messages flow in one direction: each credit message
 * returns half of the credits, the threshold of credit_message_is_due. */
static void test_credits_return_in_halves(void)
{
    struct flow_report r = flow_simulate_stream(CREDIT_STATIC, 10, 100);
    EXPECT(r.waits > 0);
    EXPECT_EQ(r.refused, 0);
    EXPECT_EQ(r.most_posted, 10);
    EXPECT(r.credit_messages >= 2000 / 10 && r.credit_messages <= 2000 / 5);
}

/* With one buffer each message waits for the credit of the preceding one: a send, the wire and a receive
 * in each direction, except for messages whose credit the answer carries. */
static void test_single_credit(void)
{
    struct flow_report r = flow_simulate_stream(CREDIT_STATIC, 1, 100);
    double turn = 2 * (machine.send_ns + 120 + machine.receive_ns);
    EXPECT(r.us > 2000 * turn / 1000 && r.us < 2000 * (turn + 30) / 1000);
}

/* With 10 buffers and large windows the dynamic scheme is fastest and posts more buffers; the static
 * scheme is slowest [Liu04 figures 5.2, 5.3]. With 100 buffers all schemes are equal. */
static void test_dynamic_flow_control_is_fastest(void)
{
    struct flow_report hw = flow_simulate_stream(CREDIT_HW, 10, 100),
                       fixed = flow_simulate_stream(CREDIT_STATIC, 10, 100),
                       dynamic = flow_simulate_stream(CREDIT_DYNAMIC, 10, 100),
                       many = flow_simulate_stream(CREDIT_STATIC, 128, 100);
    EXPECT(dynamic.us < fixed.us);
    EXPECT(dynamic.most_posted > 10);
    EXPECT(dynamic.waits < fixed.waits);
    EXPECT(hw.waits == 0);
    EXPECT(many.us <= dynamic.us);
    EXPECT(flow_simulate_stream(CREDIT_DYNAMIC, 128, 100).us == many.us);
}

/* A receiver slower than the sender, without credits: frames are refused, and all arrive in the end. */
static void test_refused_frames_arrive(void)
{
    struct machine usual = machine;
    machine.receive_ns = 10 * machine.send_ns + 1000;
    struct flow_report r = flow_simulate_stream(CREDIT_HW, 4, 50);
    EXPECT(r.refused > 0);
    EXPECT_EQ(r.credit_messages, 0);
    machine = usual;
}

int main(void)
{
    machine = make_simple_machine(1);
    machine.send_ns = 300;
    machine.receive_ns = 400;
    TEST_RUN(test_replies_carry_credits);
    TEST_RUN(test_credits_return_in_halves);
    TEST_RUN(test_single_credit);
    TEST_RUN(test_dynamic_flow_control_is_fastest);
    TEST_RUN(test_refused_frames_arrive);
    return test_result();
}
