/* meeting.c: see meeting.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/meeting.h"

int meeting_partners(int leader, int leaders, int n, struct meeting_partner *out, int most, int *rounds)
{
    int count = 0, round = 0;
    for (int64_t step = 1; step < leaders; step *= n + 1, round++)
        for (int64_t distance = step; distance <= n * step && distance < leaders; distance += step) {
            if (count == most)
                return -1;
            out[count++] = (struct meeting_partner){.to = (int)((leader + distance) % leaders),
                                                    .from = (int)((leader - distance + leaders) % leaders),
                                                    .round = round};
        }
    *rounds = round;
    return count;
}
