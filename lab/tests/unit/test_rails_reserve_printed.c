/* test_rails_reserve_printed.c: the tie-break as printed in [Coll01], local_node_id != remote_node_id, is
 * found to be wrong: three nodes that request rails from each other in a circle can refuse each other for
 * ever. This shows that the search of test_rails_reserve_all.c can fail.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define RESERVE_TIE(local, remote) ((local) != (remote))
#include "lab/mechanisms/rails/reserve.c"

#include "rails_all.h"

static void the_printed_tie_break_never_ends(void)
{
    struct limits circle = {.nodes = 3, .rails = 1, .messages = 1, .bound = 1, .to = {1, 2, 0}};
    struct limits two = {.nodes = 2, .rails = 1, .messages = 1, .bound = 1, .to = {1, 0}};
    EXPECT(explore_all(circle));
    EXPECT(explore_all(two));
}

int main(void)
{
    TEST_RUN(the_printed_tie_break_never_ends);
    return test_result();
}
