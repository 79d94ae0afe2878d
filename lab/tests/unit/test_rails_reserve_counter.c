/* test_rails_reserve_counter.c: what [Coll01] compares in algorithm 4 is the adapter's counter as it is now, while the
 * other side's RTS carries the counter as it was at the time of the request. Even with a strict tie-break three nodes can then refuse
 * each other for ever, whatever the counter's bound: an adapter that has won once compares as weaker
 * than the priority in its own RTS. reserve.c compares what its own RTS carries. This test is the evidence.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define RESERVE_COMPARED(n) ((n)->priority)
#include "lab/mechanisms/rails/reserve.c"

#include "rails_all.h"

static void the_running_counter_never_ends(void)
{
    for (uint8_t bound = 1; bound <= 3; bound++)
        EXPECT(explore_all(
            (struct limits){.nodes = 3, .rails = 1, .messages = 1, .bound = bound, .to = {1, 2, 0}}));
}

int main(void)
{
    TEST_RUN(the_running_counter_never_ends);
    return test_result();
}
