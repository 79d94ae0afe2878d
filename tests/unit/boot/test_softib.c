/* test_softib.c: what is said to softib of nodes on one machine, on several, and on both.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "boot/softib.h"
#include "test.h"

static void softib_expect(const struct softib_node *nodes, uint32_t n, const char *wanted)
{
    char *text = softib_describe(nodes, n, 5);
    EXPECT(text != NULL);
    if (text)
        EXPECT_STR(text, wanted);
    free(text);
}

static void one_machine(void)
{
    static const struct softib_node nodes[] = {{"m", "10.0.0.1"}, {"m", "10.0.0.1"}};
    softib_expect(nodes, 2, "nodes=2 name=0000000000000005");
}

static void two_machines(void)
{
    static const struct softib_node nodes[] = {{"m", "10.0.0.1,10.1.0.1,172.17.0.1"},
                                               {"n", "10.0.0.2,10.1.0.2"}};
    softib_expect(
        nodes, 2,
        "nodes=2 ports=2 wire=tcp base=10245 name=0000000000000005 node0: addr=10.0.0.1 addr=10.1.0.1 "
        "addr=172.17.0.1 node1: addr=10.0.0.2 addr=10.1.0.2");
}

/* Two nodes of one machine need ports of their own; a node without an address is left to the default. */
static void shared_machines(void)
{
    static const struct softib_node nodes[] = {{"m", "10.0.0.1"}, {"m", "10.0.0.1"}, {"n", ""}};
    softib_expect(
        nodes, 3,
        "nodes=3 ports=1 wire=tcp base=10245 name=0000000000000005 node0: addr=10.0.0.1 node1: base=11269 "
        "addr=10.0.0.1 node2:");
}

int main(void)
{
    TEST_RUN(one_machine);
    TEST_RUN(two_machines);
    TEST_RUN(shared_machines);
    return test_result();
}
