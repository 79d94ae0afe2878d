/* test_network.c: the simulated network compared with times computed by hand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "network.h"
#include "plain.h"
#include "test.h"

static struct machine plain;

static sim_time last_arrival;
static uint32_t arrivals;
static struct network net;

static void on_arrived(void *ctx, uint32_t message)
{
    (void)ctx, (void)message;
    last_arrival = net.now;
    arrivals++;
}

static void network_begin(const struct machine *m, uint32_t nodes)
{
    EXPECT(network_make(&net, m, nodes));
    net.arrived = on_arrived;
    last_arrival = 0;
    arrivals = 0;
}

static double network_run_ns(void)
{
    network_run(&net);
    double ns = (double)last_arrival / SIM_NS;
    network_free(&net);
    return ns;
}

static void test_message_time_is_sum_of_delays(void)
{
    network_begin(&plain, 8);
    network_send(&net, 0, 1, 500, 0);
    EXPECT(network_run_ns() == 10 + 100 + 10 + 500); /* cut through: the bytes count once */
    network_begin(&plain, 8);
    network_send(&net, 0, 1, 0, 0);
    EXPECT(network_run_ns() == 120);
    network_begin(&plain, 8);
    network_send(&net, 0, 1, 10000, 0);
    EXPECT(network_run_ns() == 120 + 10000); /* ten packets follow each other without gaps */
    network_begin(&plain, 32);               /* two levels: 0 and 31 are under different leaves */
    network_send(&net, 0, 31, 500, 0);
    EXPECT(network_run_ns() == 3 * 110 + 10 + 500);
    struct machine bus = plain;
    bus.bus_rate = 0.5;
    bus.bus_ns = 7;
    network_begin(&bus, 8);
    network_send(&net, 0, 1, 500, 0);
    EXPECT(network_run_ns() == 7 + 120 + 7 + 1000); /* the slower bus determines the rate */
}

static void test_adapter_needs_gap_between_messages(void)
{
    struct machine m = plain;
    m.message_ns = 50;
    network_begin(&m, 8);
    for (int i = 0; i < 100; i++)
        network_send(&net, 0, 1, 8, 0);
    /* the last message begins after 99 gaps; its own time includes the 100th */
    EXPECT(network_run_ns() == 100 * 50 + 120);
}

static void test_links_saturate_at_their_rate(void)
{
    for (int shared = 0; shared <= 1; shared++) {
        struct machine m = plain;
        m.bus_rate = 1;
        m.bus_shared = shared;
        network_begin(&m, 8);
        /* A bus that both directions share gives each direction half of the rate. */
        for (int i = 0; i < 200; i++) {
            network_send(&net, 0, 1, 10000, 0);
            network_send(&net, 1, 0, 10000, 0);
        }
        double rate = 200 * 10000 / network_run_ns();
        EXPECT(fabs(rate - (shared ? 0.5 : 1)) < 0.01);
        EXPECT_EQ(arrivals, 400);
    }
    /* Seven nodes send to one node: the last cable is the limit, and no packet is lost in front of it. */
    network_begin(&plain, 8);
    for (uint32_t i = 1; i < 8; i++)
        for (int k = 0; k < 20; k++)
            network_send(&net, i, 0, 5000, 0);
    EXPECT(fabs(7 * 20 * 5000 / network_run_ns() - 1) < 0.01);
    EXPECT_EQ(arrivals, 140);
}

static void on_tagged_arrival(void *ctx, uint32_t message)
{
    (void)ctx;
    if (net.messages[message].tag == 2)
        last_arrival = net.now;
    arrivals++;
}

/* Time until node 0's ten messages to `to` have arrived, with or without a flood from nodes 1 to 3 to node
 * 7. */
static double network_time_during_flood_ns(uint32_t to, bool flood)
{
    struct machine m = plain;
    m.buffers = 2;
    m.radix = 4; /* two nodes a leaf, two links up, chosen by the last bit of the destination */
    network_begin(&m, 8);
    net.arrived = on_tagged_arrival;
    for (int k = 0; flood && k < 50; k++)
        for (uint32_t from = 1; from < 4; from++)
            network_send(&net, from, 7, 1000, 1);
    for (int k = 0; k < 10; k++)
        network_send(&net, 0, to, 1000, 2);
    double ns = network_run_ns();
    EXPECT_EQ(arrivals, flood ? 160 : 10);
    return ns;
}

/* Only node 0 sends to node 5, but the link up that leads to node 5 is full of packets that wait for node
 * 7. The link up that leads to node 4 is free. */
static void test_congestion_spreads(void)
{
    EXPECT(network_time_during_flood_ns(5, true) > 2 * network_time_during_flood_ns(5, false));
    EXPECT(network_time_during_flood_ns(4, true) == network_time_during_flood_ns(4, false));
}

static double network_random_uniform(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*x >> 11) + 0.5) * 0x1p-53;
}

static sim_time sent_at[200000];
static double waited;

static void on_poisson_arrival(void *ctx, uint32_t message)
{
    (void)ctx;
    waited += (double)(net.now - sent_at[net.messages[message].tag]) / SIM_NS - 1120;
    arrivals++;
}

static void on_send_time(void *ctx, const struct event *e)
{
    (void)ctx;
    sent_at[e->index] = net.now;
    network_send(&net, 0, 1, 1000, e->index);
}

/* Messages that arrive at random at one link wait, in the mean, load / (2 (1 - load)) of a message's own
 * time. */
static void test_link_is_md1_queue(void)
{
    enum { MESSAGES = 200000 };
    uint64_t x = 42;
    for (double load = 0.3; load < 0.85; load += 0.25) {
        double at = 0;
        network_begin(&plain, 2);
        net.arrived = on_poisson_arrival;
        net.other = on_send_time;
        waited = 0;
        for (uint32_t i = 0; i < MESSAGES; i++) {
            at += -log(network_random_uniform(&x)) * 1000 / load;
            EXPECT(event_insert(&net.events, (sim_time)(at * SIM_NS), EVENT_OTHER, i));
        }
        network_run(&net);
        EXPECT_EQ(arrivals, MESSAGES);
        double mean = waited / MESSAGES / 1000, expected = load / (2 * (1 - load));
        EXPECT(fabs(mean / expected - 1) < 0.04);
        network_free(&net);
    }
}

int main(void)
{
    plain = make_simple_machine(1);
    TEST_RUN(test_message_time_is_sum_of_delays);
    TEST_RUN(test_adapter_needs_gap_between_messages);
    TEST_RUN(test_links_saturate_at_their_rate);
    TEST_RUN(test_congestion_spreads);
    TEST_RUN(test_link_is_md1_queue);
    return test_result();
}
