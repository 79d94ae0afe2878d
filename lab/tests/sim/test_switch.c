/* test_switch.c: functions of switches other than forwarding (copies, barriers, loss, LIDs), and topologies
 * from text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "plain.h"
#include "test.h"

enum { NODES_MAX = 512 };
static struct network net;
static struct machine plain;
static uint32_t got[NODES_MAX], arrivals;
static sim_time last_arrival;

static void on_delivered(void *ctx, uint32_t message, uint32_t node)
{
    (void)ctx, (void)message;
    got[node]++;
    arrivals++;
    last_arrival = net.now;
}

static void on_arrived(void *ctx, uint32_t message)
{
    (void)ctx, (void)message;
    arrivals++;
    last_arrival = net.now;
}

static void switch_begin(const struct machine *m, uint32_t nodes)
{
    EXPECT(network_make(&net, m, nodes));
    net.arrived = on_arrived;
    net.delivered = on_delivered;
    memset(got, 0, sizeof(got));
    arrivals = 0;
    last_arrival = 0;
}

/* Runs to the end; every buffer and record must be free afterwards. */
static double switch_run_ns(void)
{
    network_run(&net);
    EXPECT(!net.failed);
    for (uint32_t i = 0; i < net.links_count; i++)
        EXPECT_EQ(net.links[i].free_count + net.links[i].free_later_count, net.buffers);
    uint32_t free_packets = 0, free_messages = 0, free_copies = 0;
    for (uint32_t p = net.packets_free; p != NONE; p = net.packets[p].next)
        free_packets++;
    for (uint32_t m = net.messages_free; m != NONE; m = net.messages[m].next)
        free_messages++;
    for (uint32_t c = net.copies_free; c != NONE; c = net.copies[c].next)
        free_copies++;
    EXPECT_EQ(free_packets, net.packets_count);
    EXPECT_EQ(free_messages, net.messages_count);
    EXPECT_EQ(free_copies, net.copies_count);
    double ns = (double)last_arrival / SIM_NS;
    network_free(&net);
    return ns;
}

static void test_multicast_reaches_each_node_once(void)
{
    static const uint32_t sizes[] = {2, 8, 9, 32, 33, 100, 128, 300};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t from = 0; from < sizes[i]; from += sizes[i] / 2)
            for (int bus = 0; bus < 2; bus++) {
                struct machine m = plain;
                m.bus_rate = bus;
                m.bus_shared = bus;
                switch_begin(&m, sizes[i]);
                for (int k = 0; k < 20; k++)
                    network_multicast(&net, from, 500, 0);
                switch_run_ns();
                for (uint32_t n = 0; n < sizes[i]; n++)
                    EXPECT_EQ(got[n], n == from ? 0 : 20);
            }
}

/* All copies leave a switch at the same time, so a multicast takes as long as one message to the farthest
 * node. */
static void test_multicast_takes_one_message_time(void)
{
    switch_begin(&plain, 8);
    network_multicast(&net, 3, 500, 0);
    EXPECT(switch_run_ns() == 120 + 500);
    switch_begin(&plain, 32);
    network_multicast(&net, 3, 500, 0);
    EXPECT(switch_run_ns() == 3 * 110 + 10 + 500);
}

static void test_switch_barrier(void)
{
    struct machine m = plain;
    m.barrier_ns = 7;
    switch_begin(&m, 8);
    for (uint32_t n = 0; n < 8; n++)
        network_barrier(&net, n, 0);
    EXPECT(switch_run_ns() == 110 + 7 + 10);
    EXPECT_EQ(arrivals, 8);
    switch_begin(&m, 32); /* up two levels, down two */
    for (uint32_t n = 0; n < 32; n++)
        network_barrier(&net, n, 0);
    EXPECT(switch_run_ns() == 110 + 7 + 110 + 7 + 110 + 10);
    EXPECT_EQ(arrivals, 32);
    switch_begin(&m, 32);
    for (uint32_t n = 1; n < 32; n++) /* one node does not enter the barrier, so no node is released */
        network_barrier(&net, n, 0);
    network_run(&net);
    EXPECT_EQ(arrivals, 0);
    network_free(&net);
}

static void test_lost_packets_are_repeated(void)
{
    struct machine m = plain;
    m.loss = 0.1;
    m.retry_ns = 5000;
    m.go_back = 0;
    switch_begin(&m, 32);
    for (uint32_t i = 0; i < 1000; i++)
        network_send(&net, i % 32, (i + 7) % 32, 2500, 0);
    network_send(&net, 0, 1, 0, 0);
    network_run(&net);
    EXPECT(net.lost > 300 && net.lost < 2000); /* 3000 packets, two or four links each */
    network_free(&net);
    for (int back = 0; back < 2; back++) {
        m.go_back = back;
        switch_begin(&m, 32);
        for (uint32_t i = 0; i < 1000; i++)
            network_send(&net, i % 32, (i + 7) % 32, 2500, 0);
        switch_run_ns();
        EXPECT_EQ(arrivals, 1000);
    }
    switch_begin(&m, 8);
    for (uint32_t i = 0; i < 2000; i++)
        network_multicast(&net, 0, 100, 0);
    switch_run_ns();
    double share = arrivals / (2000.0 * 7); /* two links each: 0.81 */
    EXPECT(share > 0.78 && share < 0.84);
}

/* A message of many packets over a link that loses some: repeating everything from the lost packet on costs,
 * for each loss, the packets that were sent until the receiver's NAK arrived: the next packet reveals the gap
 * when its last byte has arrived, one packet time and one wire delay later, and the NAK takes another delay
 * while a third packet is cut. With a timeout longer than the whole message only losses that no packet
 * follows wait for the timeout. */
static void test_reliable_connection_repeats_go_back_n(void)
{
    const double packets = 4000, packet_ns = 1000;
    struct machine m = plain;
    m.mtu = 1000;
    m.loss = 0.01;
    m.retry_ns = 3000;
    switch_begin(&m, 8);
    network_send(&net, 0, 1, (uint64_t)(packets * packet_ns), 0);
    network_run(&net);
    double lost = (double)net.lost, refused = (double)net.refused;
    EXPECT(lost > 50 && lost < 150);
    EXPECT(refused >= 0.8 * lost && refused <= 3 * lost);
    network_free(&net);
    switch_begin(&m, 8);
    network_send(&net, 0, 1, (uint64_t)(packets * packet_ns), 0);
    double back = switch_run_ns();
    EXPECT_EQ(arrivals, 1);
    EXPECT(back > (packets + 2 * lost) * packet_ns && back < (packets + 5 * lost) * packet_ns);
    m.go_back = 0;
    switch_begin(&m, 8);
    network_send(&net, 0, 1, (uint64_t)(packets * packet_ns), 0);
    double alone = switch_run_ns();
    EXPECT_EQ(arrivals, 1);
    EXPECT(alone < (packets + 1.5 * lost + 10) * packet_ns && alone < back);
}

/* Destinations 4 and 8 use the same link up from the first leaf, because they have the same last digit,
 * unless each has two LIDs. */
static void test_lids_use_different_routes(void)
{
    struct machine m = plain;
    double one[2];
    for (int lmc = 0; lmc < 2; lmc++) {
        m.lmc = lmc;
        switch_begin(&m, 32);
        net.turn[1] = 1; /* the two senders use different LIDs */
        network_send(&net, 0, 4, 100000, 0);
        network_send(&net, 1, 8, 100000, 0);
        one[lmc] = switch_run_ns();
    }
    EXPECT(one[0] > 1.9 * one[1]);
}

static void test_doorbell_time(void)
{
    struct machine m = plain;
    m.doorbell_ns = 33;
    switch_begin(&m, 8);
    network_send(&net, 0, 1, 500, 0);
    EXPECT(switch_run_ns() == 33 + 120 + 500);
}

static bool read_topology_text(struct graph *g, const char *text, char *why, size_t size)
{
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    EXPECT(in != NULL);
    bool good = in && graph_read(g, in, why, size);
    if (in)
        fclose(in);
    return good;
}

/* A text describes the fat tree of radix 8 with 32 nodes: all times must equal the times with the built-in
 * tree. */
static void test_tree_from_text_equals_built_in_tree(void)
{
    struct graph g;
    char why[256] = "";
    struct machine m = plain;
    EXPECT(read_topology_text(
        &g, "switch leaf[0-7] spine[0-3]\nnode 0-31 leaf[0-7] # four each\nlink leaf[0-7] spine[0-3]\n", why,
        sizeof(why)));
    EXPECT_EQ(g.nodes, 32);
    EXPECT_EQ(g.cables, 32 + 32);
    double found[2];
    for (int words = 0; words < 2; words++) {
        m.topology = words ? &g : NULL;
        switch_begin(&m, 32);
        for (uint32_t i = 0; i < 32; i++)
            for (uint32_t k = 1; k < 32; k++)
                network_send(&net, i, (i + k) % 32, 5000, 0);
        found[words] = switch_run_ns();
        EXPECT_EQ(arrivals, 32 * 31);
        switch_begin(&m, 32);
        network_multicast(&net, 3, 500, 0);
        EXPECT(switch_run_ns() == 3 * 110 + 10 + 500);
        EXPECT_EQ(arrivals, 31);
        switch_begin(&m, 32);
        for (uint32_t n = 0; n < 32; n++)
            network_barrier(&net, n, 0);
        EXPECT(switch_run_ns() == 3 * 110 + 10);
    }
    EXPECT(found[0] / found[1] > 0.95 && found[0] / found[1] < 1.05);
    graph_free(&g);
}

static void test_slow_cables(void)
{
    struct graph g;
    char why[256] = "";
    struct machine m = plain;
    EXPECT(read_topology_text(&g, "switch a b\nnode 0 a\nnode 1 b\nlink a b 1 0.5\n", why, sizeof(why)));
    m.topology = &g;
    switch_begin(&m, 2);
    network_send(&net, 0, 1, 10000, 0);
    double ns = switch_run_ns();
    EXPECT(ns >= 20000 && ns < 20000 + 1500);
    graph_free(&g);
}

static void test_topology_error_names_line(void)
{
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"", "no nodes"},
        {"switch a\nnode 0 b\n", "line 2: there is no switch 'b'"},
        {"switch a a\n", "line 1: switch 'a' is there already"},
        {"switch a\n\nnode 0-3 a\nnode 3 a\n", "line 4: node 3 has a switch"},
        {"switch a\nnode 1 a\n", "node 0 has no switch"},
        {"switch a b\nnode 0 a\nnode 1 b\n", "cannot reach"},
        {"switch a b\nlink a a\n", "line 2: switch 'a' cannot"},
        {"switch a b\nlink a b 0\n", "line 2: '0' is no number of cables"},
        {"switch a b\nlink a b 1 -2\n", "line 2: '-2' is no rate"},
        {"switch a b\nlink a b 1 2 3\n", "line 2: '3' is one word too many"},
        {"switch l[0-5\n", "line 1: 'l[0-5'"},
        {"switch l[0-9999]\n", "line 1"},
        {"switch l[0-1]\nnode 0-2 l[0-1]\n", "line 2: 3 nodes cannot be shared evenly"},
        {"cable a b\n", "line 1: 'cable': expected"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct graph g;
        char why[256] = "";
        FILE *in = tmpfile(); /* fmemopen refuses an empty text */
        EXPECT(in && fputs(bad[i].text, in) >= 0);
        rewind(in);
        EXPECT(!graph_read(&g, in, why, sizeof(why)));
        if (!strstr(why, bad[i].error))
            printf("  '%s': %s\n", bad[i].text, why);
        EXPECT(strstr(why, bad[i].error) != NULL);
        fclose(in);
    }
}

int main(void)
{
    plain = make_simple_machine(1);
    TEST_RUN(test_multicast_reaches_each_node_once);
    TEST_RUN(test_multicast_takes_one_message_time);
    TEST_RUN(test_switch_barrier);
    TEST_RUN(test_lost_packets_are_repeated);
    TEST_RUN(test_reliable_connection_repeats_go_back_n);
    TEST_RUN(test_lids_use_different_routes);
    TEST_RUN(test_doorbell_time);
    TEST_RUN(test_tree_from_text_equals_built_in_tree);
    TEST_RUN(test_slow_cables);
    TEST_RUN(test_topology_error_names_line);
    return test_result();
}
