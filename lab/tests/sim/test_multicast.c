/* test_multicast.c: the library's multicast state machines on the simulated network: every node receives
 * every packet, with loss and without, and the acknowledgements are collected as configured.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "multicast.h"
#include "plain.h"
#include "test.h"

enum { PACKETS = 40 };

static struct multicast_report multicast_run(double loss, uint32_t nodes, uint32_t collectors,
                                             uint32_t aggregate)
{
    struct machine m = make_simple_machine(1);
    struct multicast_report r;
    m.send_ns = m.receive_ns = m.ack_ns = 100;
    m.loss = loss;
    m.retry_ns = 20000;
    struct multicast_order order = {.machine = &m,
                                    .nodes = nodes,
                                    .collectors = collectors,
                                    .packets = PACKETS,
                                    .bytes = 500,
                                    .rules = multicast_rules(16, aggregate, 200)};
    multicast_simulate(&order, &r);
    if (r.failed)
        printf("  %u nodes, %u collectors, loss %g: %s\n", nodes, collectors, loss, r.failed);
    EXPECT(!r.failed);
    return r;
}

static void test_multicast_delivers_every_packet(void)
{
    static const uint32_t nodes[] = {2, 3, 8, 33, 100};
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
        for (uint32_t k = 1; k <= nodes[i] && k <= 32; k *= 2)
            for (uint32_t aggregate = 1; aggregate <= 8; aggregate += 7) {
                struct multicast_report clean = multicast_run(0, nodes[i], k, aggregate),
                                        lossy = multicast_run(0.01, nodes[i], k, aggregate);
                EXPECT_EQ(clean.again, 0);
                EXPECT_EQ(clean.lost, 0);
                EXPECT(lossy.lost > 0);
                EXPECT(clean.root_us > 0 && lossy.root_us > 0);
            }
}

/* Without aggregation each member acknowledges each packet once; with aggregation there are far fewer
 * acknowledgements. */
static void test_number_of_acknowledgements(void)
{
    EXPECT_EQ(multicast_run(0, 33, 1, 1).acks, PACKETS * 32);
    EXPECT(multicast_run(0, 33, 1, 8).acks < PACKETS * 32 / 4);
    EXPECT_EQ(multicast_run(0, 33, 1, 1).most_children, 32);
    EXPECT(multicast_run(0, 33, 4, 1).most_children <= 11);
}

/* One processor is too slow to collect the acknowledgements of 100 nodes; 10, the square root of 100, is
 * the best number of co-roots [Liu04 7.5.2]. */
static void test_co_roots_reduce_time(void)
{
    double alone = multicast_run(0, 100, 1, 1).us, some = multicast_run(0, 100, 10, 1).us,
           all = multicast_run(0, 100, 100, 1).us;
    EXPECT(some < 0.5 * alone && some < 0.5 * all);
}

int main(void)
{
    TEST_RUN(test_multicast_delivers_every_packet);
    TEST_RUN(test_number_of_acknowledgements);
    TEST_RUN(test_co_roots_reduce_time);
    return test_result();
}
