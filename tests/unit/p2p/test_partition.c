/* test_partition.c: the transfers of a partitioned message cover every partition once and in order;
 * partitions that are sent together are small and lie within one partition of the receiver.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/partition.h"

#include "test.h"

static void check_plan(struct partition_side s, struct partition_side r, uint64_t together)
{
    struct partition_plan plan;
    EXPECT(partition_plan_make(s, r, together, &plan) == 0);
    EXPECT(plan.first[0] == 0 && plan.first[plan.transfers] == s.partitions);
    for (int t = 0; t < plan.transfers; t++) {
        int first = plan.first[t], last = plan.first[t + 1], low, high;
        uint64_t from = (uint64_t)first * s.bytes, to = (uint64_t)last * s.bytes;
        EXPECT(first < last);
        for (int i = first; i < last; i++)
            EXPECT(partition_find_transfer(&plan, i) == t);
        partition_find_touched(r, from, to, &low, &high);
        EXPECT(low >= 0 && high <= r.partitions);
        if (s.bytes > 0)
            EXPECT((uint64_t)low * r.bytes <= from && (uint64_t)high * r.bytes >= to);
        if (last - first > 1 && s.bytes > 0)
            EXPECT(high - low == 1 && to - from <= together);
    }
    partition_plan_free(&plan);
}

static void test_all_shapes(void)
{
    static const uint64_t limits[] = {0, 1, 16, 4096};
    for (int s = 1; s <= 24; s++)
        for (int r = 1; r <= 24; r++)
            for (uint64_t total = 0; total <= 24 * 720; total += 720)
                for (size_t k = 0; k < 4; k++)
                    if (total % (uint64_t)s == 0 && total % (uint64_t)r == 0)
                        check_plan((struct partition_side){s, total / (uint64_t)s},
                                   (struct partition_side){r, total / (uint64_t)r}, limits[k]);
}

static void test_known_plans(void)
{
    struct partition_plan plan;
    partition_plan_make((struct partition_side){8, 10}, (struct partition_side){2, 40}, 4096, &plan);
    EXPECT(plan.transfers == 2 && plan.first[1] == 4);
    partition_plan_free(&plan);
    partition_plan_make((struct partition_side){8, 10}, (struct partition_side){2, 40}, 20, &plan);
    EXPECT(plan.transfers == 4);
    partition_plan_free(&plan);
    partition_plan_make((struct partition_side){2, 40}, (struct partition_side){8, 10}, 4096, &plan);
    EXPECT(plan.transfers == 2);
    partition_plan_free(&plan);
    partition_plan_make((struct partition_side){5, 0}, (struct partition_side){3, 0}, 0, &plan);
    EXPECT(plan.transfers == 1);
    partition_plan_free(&plan);
    partition_plan_make((struct partition_side){0, 0}, (struct partition_side){3, 0}, 0, &plan);
    EXPECT(plan.transfers == 0);
    partition_plan_free(&plan);
}

int main(void)
{
    TEST_RUN(test_all_shapes);
    TEST_RUN(test_known_plans);
    return test_result();
}
