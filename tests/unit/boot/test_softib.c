/* test_softib.c: the description of the network that a job passes to softib, for virtual nodes on one
 * machine, on several, and on both.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "boot/softib.h"
#include "test.h"

static void expect_description(const struct softib_node *nodes, uint32_t n, const char *wanted)
{
    char *text = softib_describe(nodes, n, 5);
    EXPECT(text != NULL);
    if (text)
        EXPECT_STR(text, wanted);
    free(text);
}

static void test_one_machine(void)
{
    static const struct softib_node nodes[] = {{"m", "10.0.0.1"}, {"m", "10.0.0.1"}};
    expect_description(nodes, 2, "nodes=2 name=0000000000000005");
}

static void test_two_machines(void)
{
    static const struct softib_node nodes[] = {{"m", "10.0.0.1,10.1.0.1,172.17.0.1"},
                                               {"n", "10.0.0.2,10.1.0.2"}};
    expect_description(
        nodes, 2,
        "nodes=2 ports=2 wire=tcp base=10245 name=0000000000000005 node0: addr=10.0.0.1 addr=10.1.0.1 "
        "addr=172.17.0.1 node1: addr=10.0.0.2 addr=10.1.0.2");
}

/* Two nodes of one machine get separate ports; a node without an address gets the default. */
static void test_shared_machines(void)
{
    static const struct softib_node nodes[] = {{"m", "10.0.0.1"}, {"m", "10.0.0.1"}, {"n", ""}};
    expect_description(
        nodes, 3,
        "nodes=3 ports=1 wire=tcp base=10245 name=0000000000000005 node0: addr=10.0.0.1 node1: base=11269 "
        "addr=10.0.0.1 node2:");
}

/* All ports of a machine with many nodes are below the range of ephemeral ports, for any job. */
static void test_ports_of_many_nodes(void)
{
    static struct softib_node nodes[1024] = {{"n", ""}};
    for (int i = 1; i < 1024; i++)
        nodes[i] = (struct softib_node){"m", "10.0.0.1"};
    for (uint32_t n = 3; n <= 1024; n += n / 3) {
        char *text = softib_describe(nodes, n, UINT64_MAX);
        unsigned last = 0;
        for (const char *at = text; at && (at = strstr(at, " base=")); at++) {
            const unsigned base = (unsigned)atoi(at + 6);
            EXPECT(base >= 10240 && base > last);
            last = base;
        }
        EXPECT(last > 0 && last < 32768);
        free(text);
    }
}

int main(void)
{
    TEST_RUN(test_one_machine);
    TEST_RUN(test_two_machines);
    TEST_RUN(test_shared_machines);
    TEST_RUN(test_ports_of_many_nodes);
    return test_result();
}
