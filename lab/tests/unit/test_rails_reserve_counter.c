/* test_rails_reserve_counter.c: the reason why reserve.c compares the priority in the adapter's own RTS.
 * Algorithm 4 of [Coll01] compares the present value of the adapter's counter, while the other side's RTS
 * carries the counter at the time of its request. Then three nodes can refuse each other for ever, even with
 * a strict tie-break and any bound of the counter: an adapter that has won once compares as weaker than the
 * priority in its own RTS.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define RESERVE_COMPARED(n) ((n)->priority)
#include "lab/mechanisms/rails/reserve.c"

#include "rails_all.h"

static void test_running_counter_can_livelock(void)
{
    for (uint8_t bound = 1; bound <= 3; bound++)
        EXPECT(explore_all_interleavings(
            (struct limits){.nodes = 3, .rails = 1, .messages = 1, .bound = bound, .to = {1, 2, 0}}));
}

int main(void)
{
    TEST_RUN(test_running_counter_can_livelock);
    return test_result();
}
