/* test_rails_reserve_counter.c: algorithm 4 of [Coll01] compares the present value of the adapter's counter,
 * while the other side's RTS carries the counter at the time of its request. Even with a strict tie-break
 * three nodes can then refuse each other for ever, whatever the counter's bound: an adapter that has won once
 * compares as weaker than the priority in its own RTS. reserve.c compares the priority in its own RTS. This
 * test shows the need.
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
