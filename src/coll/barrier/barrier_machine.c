/* barrier_machine.c: computes the partners of a leader in each round, for each algorithm (barrier_machine.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/barrier/barrier_machine.h"

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

int barrier_partners_pairs(int leader, int leaders, struct barrier_partner *out, int most, int *rounds)
{
    int half = 1, levels = 0, count = 0;
    for (; 2 * half <= leaders; half *= 2)
        levels++;
    const bool has_surplus = half < leaders;
    *rounds = levels + 2 * has_surplus;
    if (most < levels + 2)
        return -1;
    if (leader >= half) {
        out[0] = (struct barrier_partner){.to = leader - half, .from = -1, .round = 0};
        out[1] = (struct barrier_partner){.to = -1, .from = leader - half, .round = *rounds - 1};
        return 2;
    }
    if (leader + half < leaders)
        out[count++] = (struct barrier_partner){.to = -1, .from = leader + half, .round = 0};
    for (int k = 0; k < levels; k++)
        out[count++] = (struct barrier_partner){
            .to = leader ^ 1 << k, .from = leader ^ 1 << k, .round = has_surplus + k};
    if (leader + half < leaders)
        out[count++] = (struct barrier_partner){.to = leader + half, .from = -1, .round = *rounds - 1};
    return count;
}

int barrier_tree(int leader, int leaders, int fan, int first, struct barrier_partner *out, int most)
{
    int count = 0;
    for (int64_t child = (int64_t)leader * fan + 1; child <= (int64_t)leader * fan + fan && child < leaders;
         child++) {
        if (count == most)
            return -1;
        out[count++] = (struct barrier_partner){.to = -1, .from = (int)child, .round = first};
    }
    if (leader == 0)
        return count;
    if (count == most)
        return -1;
    out[count++] = (struct barrier_partner){.to = (leader - 1) / fan, .from = -1, .round = first + 1};
    return count;
}

int barrier_partners_star(int leader, int leaders, int first, struct barrier_partner *out, int most)
{
    if ((leader == 0 ? leaders - 1 : 1) > most)
        return -1;
    if (leader > 0) {
        out[0] = (struct barrier_partner){.to = -1, .from = 0, .round = first};
        return 1;
    }
    for (int other = 1; other < leaders; other++)
        out[other - 1] = (struct barrier_partner){.to = other, .from = -1, .round = first};
    return leaders - 1;
}
