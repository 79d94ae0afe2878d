/* test_late_frames.c: frames that may arrive after their window has been freed. A rank sends the address
 * of its counters (rma/counts.c) as soon as it learns the address of another rank's counters. No call waits
 * for that frame, and messages on other connections may overtake it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/proc.h"
#include "rma/rma.h"
#include "test.h"

static void test_counter_address_without_window(void)
{
    static struct net net;
    static struct proc proc = {.net = &net};
    static struct rma rma = {.proc = &proc};
    static struct peer peer;
    const struct frame_header h = {.kind = P2P_FRAME_ONE_SIDED, .flags = RMA_COUNTS, .context = 2 * 77};
    const char payload[64] = {0};
    rma_handle_frame(&rma, &peer, &h, payload, sizeof(payload)); /* a failed check would end the process */
    EXPECT(win_of_context(&rma, h.context) == NULL);
}

int main(void)
{
    TEST_RUN(test_counter_address_without_window);
    return test_result();
}
