/* test_rails.c: several rails in the simulated network, the load study of [Coll01], and streams over rails of
 * different speeds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "plain.h"
#include "stream.h"
#include "test.h"
#include "traffic.h"

static struct network net;
static sim_time last_of[2]; /* arrival of the last message with tag 0 and 1 */
static uint32_t first_tag, arrivals;

static void on_arrived(void *ctx, uint32_t message)
{
    (void)ctx;
    uint32_t tag = net.messages[message].tag;
    if (arrivals++ == 0)
        first_tag = tag;
    last_of[tag] = net.now;
}

static void rails_begin(const struct machine *m, uint32_t nodes)
{
    EXPECT(network_make(&net, m, nodes));
    net.arrived = on_arrived;
    arrivals = 0;
    last_of[0] = last_of[1] = 0;
}

static double rails_run_ns(void)
{
    network_run(&net);
    sim_time last = last_of[0] > last_of[1] ? last_of[0] : last_of[1];
    network_free(&net);
    return (double)last / SIM_NS;
}

static struct machine plain;

static void test_rails_are_separate_networks(void)
{
    struct machine m = plain;
    rails_begin(&m, 8);
    network_send_on(&net, 0, 0, 1, 100000, 0, false);
    network_send_on(&net, 1, 0, 1, 100000, 1, false);
    EXPECT(rails_run_ns() == 120 + 100000); /* both messages in parallel take the time of one message */
    rails_begin(&m, 8);
    network_rail_rate(&net, 1, 0.5);
    network_send_on(&net, 0, 0, 1, 100000, 0, false);
    network_send_on(&net, 1, 0, 1, 100000, 1, false);
    rails_run_ns();
    EXPECT(last_of[0] == (120 + 100000) * SIM_NS);
    EXPECT(last_of[1] == (120 + 200000) * SIM_NS);
}

static void test_adapters_share_bus(void)
{
    for (int shared = 0; shared <= 1; shared++) {
        struct machine m = plain;
        m.bus_rate = 1;
        m.bus_node = shared;
        rails_begin(&m, 8);
        network_send_on(&net, 0, 0, 1, 100000, 0, false);
        network_send_on(&net, 1, 0, 1, 100000, 1, false);
        double rate = 200000 / rails_run_ns();
        EXPECT(fabs(rate - (shared ? 1 : 2)) < 0.03);
        if (shared) /* the two messages take turns: both end at about the same time */
            EXPECT(llabs(last_of[0] - last_of[1]) < 5000 * SIM_NS);
    }
}

/* A bus that moves data in one direction at a time gives both directions the same rate, packet by packet. */
static void test_directions_alternate_on_bus(void)
{
    struct machine m = plain;
    m.bus_rate = 1;
    m.bus_shared = 1;
    rails_begin(&m, 8);
    for (int i = 0; i < 20; i++) {
        network_send(&net, 0, 1, 10000, 0);
        network_send(&net, 1, 0, 10000, 1);
    }
    double end = rails_run_ns();
    EXPECT(fabs(400000 / end - 1) < 0.02);
    EXPECT(llabs(last_of[0] - last_of[1]) < 5000 * SIM_NS);
}

/* A bus that needs a quarter of a packet's time to change its direction carries four fifths if the directions
 * alternate. */
static void test_bus_turn_time(void)
{
    struct machine m = plain;
    m.bus_rate = 1;
    m.bus_shared = 1;
    m.bus_turn_ns = m.mtu / 4;
    rails_begin(&m, 8);
    network_send(&net, 0, 1, 200000, 0);
    network_send(&net, 1, 0, 200000, 1);
    EXPECT(fabs(400000 / rails_run_ns() - 0.8) < 0.02);
    rails_begin(&m, 8);
    network_send(&net, 0, 1, 200000, 0); /* data in a single direction never turns the bus */
    EXPECT(fabs(200000 / rails_run_ns() - 1) < 0.02);
}

/* Two long messages to one node: as packets they share the node's cable, so both end late. As worms on one
 * lane the second message waits for the first; on two lanes they share the cable again. */
static void test_worms_hold_lanes(void)
{
    for (int lanes = 0; lanes <= 2; lanes++) {
        struct machine m = plain;
        m.lanes = lanes;
        rails_begin(&m, 8);
        network_send(&net, 0, 2, 100000, 0);
        network_send(&net, 1, 2, 100000, 1);
        EXPECT(fabs(rails_run_ns() / 200000 - 1) < 0.02);
        double first = (double)(last_of[0] < last_of[1] ? last_of[0] : last_of[1]) / SIM_NS;
        EXPECT(fabs(first / (lanes == 1 ? 100000 : 200000) - 1) < 0.02);
        EXPECT_EQ(arrivals, 2);
    }
}

/* Three messages whose fixed routes share a link up take turns on this link; adaptive switches spread the
 * messages over several links, also as worms. */
static void test_adaptive_routing(void)
{
    for (int adaptive = 0; adaptive <= 1; adaptive++)
        for (int lanes = 0; lanes <= 2; lanes++) {
            struct machine m = plain;
            m.adaptive = adaptive;
            m.lanes = lanes;
            rails_begin(&m, 16);
            for (uint32_t i = 0; i < 3; i++)
                network_send(&net, i, 4 * (i + 1), 100000, 0);
            EXPECT(fabs(rails_run_ns() / (adaptive ? 100000 : 300000) - 1) < 0.05);
            EXPECT_EQ(arrivals, 3);
        }
}

static void test_urgent_messages_precede_others(void)
{
    rails_begin(&plain, 8);
    network_send_on(&net, 0, 0, 1, 100000, 0, false);
    network_send_on(&net, 0, 0, 1, 20, 1, true);
    EXPECT(rails_run_ns() == 120 + 100020);
    EXPECT_EQ(first_tag, 1);
    EXPECT(last_of[1] < 2500 * SIM_NS); /* after at most two packets of the long message */
    struct machine m = plain;
    m.bus_rate = 0.01; /* urgent messages of adapters do not cross the bus */
    m.mtu = 64;
    rails_begin(&m, 8);
    network_send_on(&net, 0, 0, 1, 10000, 0, false);
    network_send_on(&net, 0, 0, 1, 20, 1, true);
    EXPECT(rails_run_ns() > 1e6);
    EXPECT(last_of[1] == (120 + 20) * SIM_NS);
}

/* ---- [Coll01] ---- */

static struct traffic_report rails_run_traffic(enum alloc_policy policy, int nodes, int rails, double kib,
                                               double load, double ratio)
{
    struct machine m = traffic_machine;
    struct traffic_report r;
    m.rails = rails;
    struct traffic_order o = {.machine = &m,
                              .nodes = nodes,
                              .per_node = 4,
                              .policy = policy,
                              .ratio = ratio,
                              .shortest = 4096,
                              .mean_bytes = kib * 1024,
                              .load = load,
                              .control_ns = 300,
                              .warm_us = kib * 6,
                              .us = kib * 24,
                              .seed = 7};
    traffic_simulate(&o, &r);
    EXPECT(!r.failed);
    EXPECT_EQ(r.strays, 0);
    return r;
}

/* Below saturation all created messages arrive; above saturation no policy exceeds half of the links'
 * rate, since each byte crosses two buses. */
static void test_load_below_saturation_is_accepted(void)
{
    for (int policy = ALLOC_BASIC; policy <= ALLOC_HYBRID; policy++) {
        struct traffic_report low = rails_run_traffic((enum alloc_policy)policy, 8, 2, 32, 0.08, 1);
        struct traffic_report high = rails_run_traffic((enum alloc_policy)policy, 8, 2, 32, 0.9, 1);
        EXPECT(low.messages > 50);
        EXPECT(fabs(low.accepted - low.offered) < 0.02);
        EXPECT(fabs(low.offered - 0.08) < 0.02 && fabs(high.offered - 0.9) < 0.08);
        EXPECT(high.accepted > 0.15 && high.accepted < 0.5);
        EXPECT(high.latency_us > 2 * low.latency_us);
        EXPECT((policy >= ALLOC_DYNAMIC) == (low.frames > 0));
    }
}

static void test_same_seed_repeats_run(void)
{
    struct traffic_report a = rails_run_traffic(ALLOC_HYBRID, 8, 3, 16, 0.3, 0.5),
                          b = rails_run_traffic(ALLOC_HYBRID, 8, 3, 16, 0.3, 0.5);
    EXPECT(a.events == b.events && a.accepted == b.accepted && a.latency_us == b.latency_us &&
           a.frames == b.frames);
}

/* The paper's main results with large differences: more rails are worse for basic but not for dynamic;
 * stripes shorten the latency. */
static void test_rails_and_stripes_change_latency(void)
{
    double basic1 = rails_run_traffic(ALLOC_BASIC, 16, 1, 32, 0.7, 0).accepted,
           basic7 = rails_run_traffic(ALLOC_BASIC, 16, 7, 32, 0.7, 0).accepted;
    double dynamic1 = rails_run_traffic(ALLOC_DYNAMIC, 16, 1, 32, 0.7, 1).accepted,
           dynamic7 = rails_run_traffic(ALLOC_DYNAMIC, 16, 7, 32, 0.7, 1).accepted;
    EXPECT(basic7 < 0.8 * basic1);
    EXPECT(dynamic7 > 0.9 * dynamic1);
    EXPECT(dynamic7 > 1.2 * basic7);
    for (int policy = ALLOC_LOCAL; policy <= ALLOC_DYNAMIC; policy++) {
        struct traffic_report one = rails_run_traffic((enum alloc_policy)policy, 16, 4, 64, 0.05, 0);
        struct traffic_report all = rails_run_traffic((enum alloc_policy)policy, 16, 4, 64, 0.05, 1);
        EXPECT(one.stripes == 1 && all.stripes > 2);
        EXPECT(all.latency_us < 0.6 * one.latency_us);
    }
}

/* ---- [Liu04 8.3.3] ---- */

static struct stream_order make_stream_order(double second_rail, bool bidirectional)
{
    return (struct stream_order){.machine = &stream_machine,
                                 .scale = {1, second_rail},
                                 .weight = {1, 1},
                                 .bidirectional = bidirectional,
                                 .alpha = 0.5,
                                 .bytes = 1 << 20,
                                 .smallest = 8192,
                                 .window = 8,
                                 .warm_us = 20000,
                                 .us = 60000,
                                 .disturbed_rail = -1};
}

static double measure_stream_rate(struct stream_order o, double weight0, bool adaptive)
{
    struct stream_report r;
    o.weight[0] = weight0;
    o.weight[1] = 1 - weight0;
    o.adaptive = adaptive;
    stream_simulate(&o, &r);
    EXPECT(!r.failed);
    return r.rate;
}

static void test_adaptive_stripes_reach_best_weights(void)
{
    for (int both = 0; both <= 1; both++) {
        struct stream_order o = make_stream_order(0.25, both);
        double best = 0, even = measure_stream_rate(o, 0.5, false),
               adaptive = measure_stream_rate(o, 0, true);
        for (double w = 0.6; w < 0.9; w += 0.04)
            best = fmax(best, measure_stream_rate(o, w, false));
        EXPECT(adaptive > 0.95 * best);
        EXPECT(even < 0.7 * best);
        if (both) /* the buses change the best weights: 4:1 is not the best */
            EXPECT(adaptive > 1.1 * measure_stream_rate(o, 0.8, false));
    }
}

static void test_adaptive_stripes_recover(void)
{
    struct stream_order o = make_stream_order(1, false);
    struct stream_report r;
    o.adaptive = true;
    o.us = 256000;
    o.disturbed_rail = 1;
    o.disturbed = 0.5;
    o.disturbed_from_us = 64000;
    o.disturbed_to_us = 160000;
    stream_simulate(&o, &r);
    EXPECT_EQ(r.slices, STREAM_SLICES);
    double before = 0, during = 0, after = 0;
    for (int i = 0; i < 8; i++) {
        before += r.curve[7 + i] / 8;
        during += r.curve[30 + i] / 8;
        after += r.curve[50 + i] / 8;
    }
    EXPECT(before > 1.9 && after > 1.9);
    EXPECT(during > 1.4 && during < 1.55);
}

int main(void)
{
    plain = make_simple_machine(2);
    TEST_RUN(test_rails_are_separate_networks);
    TEST_RUN(test_adapters_share_bus);
    TEST_RUN(test_directions_alternate_on_bus);
    TEST_RUN(test_bus_turn_time);
    TEST_RUN(test_worms_hold_lanes);
    TEST_RUN(test_adaptive_routing);
    TEST_RUN(test_urgent_messages_precede_others);
    TEST_RUN(test_load_below_saturation_is_accepted);
    TEST_RUN(test_same_seed_repeats_run);
    TEST_RUN(test_rails_and_stripes_change_latency);
    TEST_RUN(test_adaptive_stripes_reach_best_weights);
    TEST_RUN(test_adaptive_stripes_recover);
    return test_result();
}
