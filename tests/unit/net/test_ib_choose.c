/* test_ib_choose.c: all ranks of a job choose the same network, then each rank chooses the fastest, then
 * the nearest port on that network.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/choose.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

static struct net_port make_port(const char *device, enum net_link link, uint64_t subnet, uint32_t gbits,
                                 bool near)
{
    struct net_port p = {.port = 1,
                         .link = (uint8_t)link,
                         .subnet = subnet,
                         .rate = gbits * 1000,
                         .near = near,
                         .state = NET_ACTIVE};
    snprintf(p.device, sizeof(p.device), "%s", device);
    return p;
}

static const enum net_link IB = NET_INFINIBAND, ROCE = NET_ROCE;

/* Chooses for all nodes and returns the device that node `k` uses, "" for none. */
static const char *choose_device(struct net_port (*ports)[4], const uint32_t *counts, uint32_t n, uint32_t k)
{
    static char name[64];
    struct choose_node nodes[8];
    struct choose_network w;
    uint32_t node;
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = (struct choose_node){ports[i], counts[i]};
    if (choose_network(nodes, n, &w, &node) != CHOOSE_FOUND)
        return "";
    int i = choose_port(ports[k], counts[k], &w, 0);
    snprintf(name, sizeof(name), "%s", i < 0 ? "" : ports[k][i].device);
    return name;
}

/* A near Ethernet port must not beat a far InfiniBand one that is sixteen times as fast. */
static void test_rate_before_nearness(void)
{
    struct net_port ports[2][4] = {
        {make_port("eth", ROCE, 1, 25, true), make_port("ndr", IB, 2, 400, false)},
        {make_port("eth", ROCE, 1, 25, true), make_port("ndr", IB, 2, 400, false)}};
    uint32_t counts[] = {2, 2};
    EXPECT(strcmp(choose_device(ports, counts, 2, 0), "ndr") == 0);
    EXPECT(strcmp(choose_device(ports, counts, 2, 1), "ndr") == 0);
    EXPECT(strstr(ports[1][0].why, "network is that of ndr port 1 (InfiniBand, 400 Gb/s against 25)") !=
           NULL);
}

static void test_nearness_among_equal_rates(void)
{
    struct net_port ports[1][4] = {{make_port("far", IB, 2, 200, false), make_port("near", IB, 2, 200, true),
                                    make_port("slow", IB, 2, 100, true)}};
    uint32_t counts[] = {3};
    EXPECT(strcmp(choose_device(ports, counts, 1, 0), "near") == 0);
    EXPECT(strstr(ports[0][0].why, "nearer") != NULL);
    EXPECT(strstr(ports[0][2].why, "near port 1 is faster (200 Gb/s against 100)") != NULL);
    EXPECT(ports[0][1].chosen && !ports[0][0].chosen);
}

/* If one node has only Ethernet, all nodes use Ethernet, however fast the InfiniBand of the others is. */
static void test_all_nodes_use_one_link_type(void)
{
    struct net_port ports[3][4] = {{make_port("ndr", IB, 2, 400, true), make_port("eth", ROCE, 1, 25, true)},
                                   {make_port("eth", ROCE, 1, 25, true)},
                                   {make_port("eth", ROCE, 1, 25, true), make_port("ndr", IB, 2, 400, true)}};
    uint32_t counts[] = {2, 1, 2};
    for (uint32_t k = 0; k < 3; k++)
        EXPECT(strcmp(choose_device(ports, counts, 3, k), "eth") == 0);
}

/* Two rails on separate networks: all ranks choose the same one, although node 1 lists them in another
 * order. */
static void test_all_nodes_use_one_subnet(void)
{
    struct net_port ports[2][4] = {
        {make_port("a0", ROCE, 10, 100, true), make_port("a1", ROCE, 11, 100, true)},
        {make_port("b1", ROCE, 11, 100, true), make_port("b0", ROCE, 10, 100, true)}};
    uint32_t counts[] = {2, 2};
    EXPECT(strcmp(choose_device(ports, counts, 2, 0), "a0") == 0);
    EXPECT(strcmp(choose_device(ports, counts, 2, 1), "b0") == 0);
}

/* The rate of a network is the rate of its slowest node. */
static void test_slowest_node_decides(void)
{
    struct net_port ports[2][4] = {{make_port("x", IB, 1, 400, true), make_port("y", IB, 2, 200, true)},
                                   {make_port("x", IB, 1, 56, true), make_port("y", IB, 2, 200, true)}};
    uint32_t counts[] = {2, 2};
    EXPECT(strcmp(choose_device(ports, counts, 2, 0), "y") == 0);
    EXPECT(strcmp(choose_device(ports, counts, 2, 1), "y") == 0);
}

static void test_hardware_before_software(void)
{
    struct net_port ports[1][4] = {
        {make_port("rxe0", ROCE, 1, 400, true), make_port("old", IB, 2, 10, false)}};
    uint32_t counts[] = {2};
    ports[0][0].made = NET_SOFT_ROCE;
    EXPECT(strcmp(choose_device(ports, counts, 1, 0), "old") == 0);
    EXPECT(strstr(ports[0][0].why, "software") != NULL);
}

static void test_user_order_comes_first(void)
{
    struct net_port ports[1][4] = {{make_port("fast", IB, 1, 400, true),
                                    make_port("slow", ROCE, 2, 25, false),
                                    make_port("never", IB, 1, 800, true)}};
    uint32_t counts[] = {3};
    ports[0][0].place = 1;
    ports[0][2].place = -1;
    EXPECT(strcmp(choose_device(ports, counts, 1, 0), "slow") == 0);
    EXPECT(strstr(ports[0][2].why, "FISHPLATE_IB_DEVICES excludes it") != NULL);
}

static void test_unusable_ports_are_explained(void)
{
    struct net_port ports[1][4] = {
        {make_port("down", IB, 1, 400, true), make_port("iw", NET_IWARP, 1, 400, true)}};
    uint32_t counts[] = {2};
    ports[0][0].state = NET_DOWN;
    EXPECT(strcmp(choose_device(ports, counts, 1, 0), "") == 0);
    choose_explain_unusable(ports[0], 2);
    EXPECT(strstr(ports[0][0].why, "not active (down)") != NULL);
    EXPECT(strstr(ports[0][1].why, "iWARP") != NULL);
}

static void test_verdict_without_common_network(void)
{
    struct net_port ib = make_port("ib", IB, 1, 100, true), eth = make_port("eth", ROCE, 2, 100, true),
                    other = eth;
    struct choose_network w = {0};
    uint32_t node = 99;
    other.subnet = 3;
    struct choose_node none[] = {{NULL, 0}, {NULL, 0}}, some[] = {{&ib, 1}, {NULL, 0}, {&ib, 1}},
                       apart[] = {{&ib, 1}, {&eth, 1}}, routed[] = {{&eth, 1}, {&other, 1}};
    EXPECT_EQ(choose_network(none, 2, &w, &node), CHOOSE_NOWHERE);
    EXPECT_EQ(choose_network(some, 3, &w, &node), CHOOSE_MISSING);
    EXPECT_EQ(node, 1);
    EXPECT_EQ(choose_network(apart, 2, &w, &node), CHOOSE_APART);
    EXPECT_EQ(node, 1);
    EXPECT_EQ(choose_network(routed, 2, &w, &node), CHOOSE_FOUND);
    EXPECT(w.routed && w.link == NET_ROCE);
}

/* For any order of the ports on each node all ranks choose the same network. */
static void test_port_order_does_not_matter(void)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct net_port all[] = {make_port("a", IB, 1, 100, true), make_port("b", IB, 2, 100, false),
                             make_port("c", ROCE, 3, 100, true)};
    for (int x = 0; x < 36; x++) {
        struct net_port ports[2][4];
        uint32_t counts[] = {3, 3};
        for (int i = 0; i < 3; i++) {
            ports[0][i] = all[orders[x / 6][i]];
            ports[1][i] = all[orders[x % 6][i]];
        }
        char first[64];
        snprintf(first, sizeof(first), "%s", choose_device(ports, counts, 2, 0));
        EXPECT(*first && strcmp(first, choose_device(ports, counts, 2, 1)) == 0);
    }
}

/* A port that is down may become a rail later; ports of another link type or without a known address never
 * do. */
static void test_waiting_ports(void)
{
    struct net_port ports[] = {make_port("home", IB, 1, 100, true), make_port("up", IB, 1, 100, true),
                               make_port("down", IB, 1, 100, true), make_port("roce", ROCE, 1, 100, true),
                               make_port("lost", IB, 1, 100, true), make_port("init", IB, 2, 100, true)};
    uint32_t out[8];
    for (int i = 2; i < 6; i++)
        ports[i].state = i == 5 ? NET_INIT : NET_DOWN;
    ports[4].gid_index = -1;
    EXPECT_EQ(choose_rails(ports, 6, 0, 4, 7, out), 1);
    EXPECT_EQ(choose_waiting_ports(ports, 6, 0, 4, 7, 1, out), 3);
    EXPECT_EQ(out[0], 1);
    EXPECT_EQ(out[1], 2);
    EXPECT_EQ(out[2], 5);
    EXPECT(!ports[2].chosen && strstr(ports[2].why, "a further rail when it comes up") != NULL);
    EXPECT_EQ(choose_waiting_ports(ports, 6, 0, 3, 7, 1, out), 2); /* three adapters at most */
    EXPECT_EQ(choose_waiting_ports(ports, 6, 0, 4, 1, 1, out), 1);
}

static void test_link_rates_and_names(void)
{
    EXPECT_EQ(net_link_rate(2, 64), 200000);  /* 4x HDR */
    EXPECT_EQ(net_link_rate(2, 128), 400000); /* 4x NDR */
    EXPECT_EQ(net_link_rate(1, 32), 25000);   /* one lane of 25 Gb/s */
    EXPECT_EQ(net_link_rate(2, 3), 0);
    struct net_port p = make_port("mlx5_0", IB, 0xfe80000000000000u, 200, true);
    char text[128];
    net_port_describe(&p, text, sizeof(text));
    EXPECT(strcmp(text, "mlx5_0 port 1, InfiniBand hardware, 200 Gb/s") == 0);
    net_port_subnet(&p, text, sizeof(text));
    EXPECT(strcmp(text, "subnet fe80:0000:0000:0000") == 0);
    p.made = NET_SOFTIB_TCP;
    net_port_describe(&p, text, sizeof(text));
    EXPECT(strcmp(text, "mlx5_0 port 1, softib over TCP (software)") == 0);
    p = make_port("rxe0", ROCE, (uint64_t)24 << 32 | 0x0a010000, 10, true);
    net_port_subnet(&p, text, sizeof(text));
    EXPECT(strcmp(text, "network 10.1.0.0/24") == 0);
}

int main(void)
{
    TEST_RUN(test_rate_before_nearness);
    TEST_RUN(test_waiting_ports);
    TEST_RUN(test_nearness_among_equal_rates);
    TEST_RUN(test_all_nodes_use_one_link_type);
    TEST_RUN(test_all_nodes_use_one_subnet);
    TEST_RUN(test_slowest_node_decides);
    TEST_RUN(test_hardware_before_software);
    TEST_RUN(test_user_order_comes_first);
    TEST_RUN(test_unusable_ports_are_explained);
    TEST_RUN(test_verdict_without_common_network);
    TEST_RUN(test_port_order_does_not_matter);
    TEST_RUN(test_link_rates_and_names);
    return test_result();
}
