/* machine.c: see machine.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/barrier/machine.h"

int barrier_partners(int leader, int leaders, int n, struct barrier_partner *out, int most, int *rounds)
{
    int count = 0, round = 0;
    for (int64_t step = 1; step < leaders; step *= n + 1, round++)
        for (int64_t distance = step; distance <= n * step && distance < leaders; distance += step) {
            if (count == most)
                return -1;
            out[count++] = (struct barrier_partner){.to = (int)((leader + distance) % leaders),
                                                    .from = (int)((leader - distance + leaders) % leaders),
                                                    .round = round};
        }
    *rounds = round;
    return count;
}
