/* test_rails_reserve_printed.c: the tie-break as printed in [Coll01], local_node_id != remote_node_id, permits
 * a livelock: three nodes that request rails from each other in a cycle can refuse each other for ever. The
 * test also shows that the search of test_rails_reserve_all.c detects livelocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define RESERVE_TIE(local, remote) ((local) != (remote))
#include "lab/mechanisms/rails/reserve.c"

#include "rails_all.h"

static void test_printed_tie_break_can_livelock(void)
{
    struct limits circle = {.nodes = 3, .rails = 1, .messages = 1, .bound = 1, .to = {1, 2, 0}};
    struct limits two = {.nodes = 2, .rails = 1, .messages = 1, .bound = 1, .to = {1, 0}};
    EXPECT(explore_all_interleavings(circle));
    EXPECT(explore_all_interleavings(two));
}

int main(void)
{
    TEST_RUN(test_printed_tie_break_can_livelock);
    return test_result();
}
