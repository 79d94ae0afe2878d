/* test_ib_choose.c: all ranks of a job choose the same network, then each the fastest port on it, then the nearest.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/choose.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

static struct net_port ib_choose_port(const char *device, enum net_link link, uint64_t subnet, uint32_t gbits,
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
static const char *ib_choose_used(struct net_port (*ports)[4], const uint32_t *counts, uint32_t n, uint32_t k)
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
static void rate_before_nearness(void)
{
    struct net_port ports[2][4] = {
        {ib_choose_port("eth", ROCE, 1, 25, true), ib_choose_port("ndr", IB, 2, 400, false)},
        {ib_choose_port("eth", ROCE, 1, 25, true), ib_choose_port("ndr", IB, 2, 400, false)}};
    uint32_t counts[] = {2, 2};
    EXPECT(strcmp(ib_choose_used(ports, counts, 2, 0), "ndr") == 0);
    EXPECT(strcmp(ib_choose_used(ports, counts, 2, 1), "ndr") == 0);
    EXPECT(strstr(ports[1][0].why, "network is that of ndr port 1 (InfiniBand, 400 Gb/s against 25)") !=
           NULL);
}

static void nearness_among_equals(void)
{
    struct net_port ports[1][4] = {{ib_choose_port("far", IB, 2, 200, false),
                                    ib_choose_port("near", IB, 2, 200, true),
                                    ib_choose_port("slow", IB, 2, 100, true)}};
    uint32_t counts[] = {3};
    EXPECT(strcmp(ib_choose_used(ports, counts, 1, 0), "near") == 0);
    EXPECT(strstr(ports[0][0].why, "nearer") != NULL);
    EXPECT(strstr(ports[0][2].why, "near port 1 is faster (200 Gb/s against 100)") != NULL);
    EXPECT(ports[0][1].chosen && !ports[0][0].chosen);
}

/* One node has only Ethernet: then everybody uses Ethernet, however fast the others' InfiniBand is. */
static void one_kind_for_all(void)
{
    struct net_port ports[3][4] = {
        {ib_choose_port("ndr", IB, 2, 400, true), ib_choose_port("eth", ROCE, 1, 25, true)},
        {ib_choose_port("eth", ROCE, 1, 25, true)},
        {ib_choose_port("eth", ROCE, 1, 25, true), ib_choose_port("ndr", IB, 2, 400, true)}};
    uint32_t counts[] = {2, 1, 2};
    for (uint32_t k = 0; k < 3; k++)
        EXPECT(strcmp(ib_choose_used(ports, counts, 3, k), "eth") == 0);
}

/* Two rails on separate networks: all ranks choose the same one, although node 1 lists them in another order. */
static void one_subnet_for_all(void)
{
    struct net_port ports[2][4] = {
        {ib_choose_port("a0", ROCE, 10, 100, true), ib_choose_port("a1", ROCE, 11, 100, true)},
        {ib_choose_port("b1", ROCE, 11, 100, true), ib_choose_port("b0", ROCE, 10, 100, true)}};
    uint32_t counts[] = {2, 2};
    EXPECT(strcmp(ib_choose_used(ports, counts, 2, 0), "a0") == 0);
    EXPECT(strcmp(ib_choose_used(ports, counts, 2, 1), "b0") == 0);
}

/* The slowest node decides: a network that is fast here and slow there is a slow network. */
static void slowest_node_decides(void)
{
    struct net_port ports[2][4] = {
        {ib_choose_port("x", IB, 1, 400, true), ib_choose_port("y", IB, 2, 200, true)},
        {ib_choose_port("x", IB, 1, 56, true), ib_choose_port("y", IB, 2, 200, true)}};
    uint32_t counts[] = {2, 2};
    EXPECT(strcmp(ib_choose_used(ports, counts, 2, 0), "y") == 0);
    EXPECT(strcmp(ib_choose_used(ports, counts, 2, 1), "y") == 0);
}

static void hardware_before_software(void)
{
    struct net_port ports[1][4] = {
        {ib_choose_port("rxe0", ROCE, 1, 400, true), ib_choose_port("old", IB, 2, 10, false)}};
    uint32_t counts[] = {2};
    ports[0][0].made = NET_SOFT_ROCE;
    EXPECT(strcmp(ib_choose_used(ports, counts, 1, 0), "old") == 0);
    EXPECT(strstr(ports[0][0].why, "software") != NULL);
}

static void the_user_comes_first(void)
{
    struct net_port ports[1][4] = {{ib_choose_port("fast", IB, 1, 400, true),
                                    ib_choose_port("slow", ROCE, 2, 25, false),
                                    ib_choose_port("never", IB, 1, 800, true)}};
    uint32_t counts[] = {3};
    ports[0][0].place = 1;
    ports[0][2].place = -1;
    EXPECT(strcmp(ib_choose_used(ports, counts, 1, 0), "slow") == 0);
    EXPECT(strstr(ports[0][2].why, "FISHPLATE_IB_DEVICES excludes it") != NULL);
}

static void unusable_ports(void)
{
    struct net_port ports[1][4] = {
        {ib_choose_port("down", IB, 1, 400, true), ib_choose_port("iw", NET_IWARP, 1, 400, true)}};
    uint32_t counts[] = {2};
    ports[0][0].state = NET_DOWN;
    EXPECT(strcmp(ib_choose_used(ports, counts, 1, 0), "") == 0);
    choose_explain_unusable(ports[0], 2);
    EXPECT(strstr(ports[0][0].why, "not active (down)") != NULL);
    EXPECT(strstr(ports[0][1].why, "iWARP") != NULL);
}

static void test_verdicts(void)
{
    struct net_port ib = ib_choose_port("ib", IB, 1, 100, true),
                    eth = ib_choose_port("eth", ROCE, 2, 100, true), other = eth;
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

/* Whatever the order of the ports on each node, all ranks end up on one network. */
static void any_order_agrees(void)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct net_port all[] = {ib_choose_port("a", IB, 1, 100, true), ib_choose_port("b", IB, 2, 100, false),
                             ib_choose_port("c", ROCE, 3, 100, true)};
    for (int x = 0; x < 36; x++) {
        struct net_port ports[2][4];
        uint32_t counts[] = {3, 3};
        for (int i = 0; i < 3; i++) {
            ports[0][i] = all[orders[x / 6][i]];
            ports[1][i] = all[orders[x % 6][i]];
        }
        char first[64];
        snprintf(first, sizeof(first), "%s", ib_choose_used(ports, counts, 2, 0));
        EXPECT(*first && strcmp(first, ib_choose_used(ports, counts, 2, 1)) == 0);
    }
}

/* A port that is down is no rail yet. Those of other kinds and those whose address is not known never become one. */
static void ports_that_may_come(void)
{
    struct net_port ports[] = {
        ib_choose_port("home", IB, 1, 100, true), ib_choose_port("up", IB, 1, 100, true),
        ib_choose_port("down", IB, 1, 100, true), ib_choose_port("roce", ROCE, 1, 100, true),
        ib_choose_port("lost", IB, 1, 100, true), ib_choose_port("init", IB, 2, 100, true)};
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

static void rates_and_words(void)
{
    EXPECT_EQ(net_link_rate(2, 64), 200000);  /* 4x HDR */
    EXPECT_EQ(net_link_rate(2, 128), 400000); /* 4x NDR */
    EXPECT_EQ(net_link_rate(1, 32), 25000);   /* one lane of 25 Gb/s */
    EXPECT_EQ(net_link_rate(2, 3), 0);
    struct net_port p = ib_choose_port("mlx5_0", IB, 0xfe80000000000000u, 200, true);
    char text[128];
    net_port_describe(&p, text, sizeof(text));
    EXPECT(strcmp(text, "mlx5_0 port 1, InfiniBand hardware, 200 Gb/s") == 0);
    net_port_subnet(&p, text, sizeof(text));
    EXPECT(strcmp(text, "subnet fe80:0000:0000:0000") == 0);
    p.made = NET_SOFTIB_TCP;
    net_port_describe(&p, text, sizeof(text));
    EXPECT(strcmp(text, "mlx5_0 port 1, softib over TCP (software)") == 0);
    p = ib_choose_port("rxe0", ROCE, (uint64_t)24 << 32 | 0x0a010000, 10, true);
    net_port_subnet(&p, text, sizeof(text));
    EXPECT(strcmp(text, "network 10.1.0.0/24") == 0);
}

int main(void)
{
    TEST_RUN(rate_before_nearness);
    TEST_RUN(ports_that_may_come);
    TEST_RUN(nearness_among_equals);
    TEST_RUN(one_kind_for_all);
    TEST_RUN(one_subnet_for_all);
    TEST_RUN(slowest_node_decides);
    TEST_RUN(hardware_before_software);
    TEST_RUN(the_user_comes_first);
    TEST_RUN(unusable_ports);
    TEST_RUN(test_verdicts);
    TEST_RUN(any_order_agrees);
    TEST_RUN(rates_and_words);
    return test_result();
}
