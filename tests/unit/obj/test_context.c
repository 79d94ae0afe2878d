/* test_context.c: choosing context ids out of a mask, from any starting point.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/context.h"
#include "test.h"

static bool is_set(const uint64_t *mask, uint32_t id)
{
    return mask[id / 64] >> id % 64 & 1;
}

static void reserved_ids_are_taken(void)
{
    static struct proc p;
    context_ids_init(&p);
    for (uint32_t id = 0; id < CONTEXT_IDS; id++)
        EXPECT_EQ(is_set(p.context_mask, id), id >= CONTEXT_IDS_RESERVED);
    EXPECT_EQ(context_id_of(context_of_id(77)), 77);
    EXPECT_EQ(context_of_id(77) % 2, 0);
}

static void lowest_first(void)
{
    uint64_t mask[CONTEXT_WORDS] = {0};
    uint32_t ids[2] = {0};
    EXPECT(!context_pick(mask, 0, CONTEXT_WORDS, 0, 1, ids));
    mask[1] = 1ull << 63;
    EXPECT(!context_pick(mask, 0, CONTEXT_WORDS, 0, 2, ids));
    mask[40] = 1;
    EXPECT(context_pick(mask, 0, CONTEXT_WORDS, 0, 2, ids));
    EXPECT_EQ(ids[0], 127);
    EXPECT_EQ(ids[1], 40 * 64);
    EXPECT(!context_pick(mask, 0, 40, 0, 2, ids));
}

static void every_start_finds_every_id(void)
{
    uint64_t mask[CONTEXT_WORDS] = {0};
    uint32_t ids[2];
    enum { FIRST = 60, LAST = 62 };
    for (uint32_t bit = 0; bit < 128; bit++) {
        mask[60] = mask[61] = 0;
        mask[60 + bit / 64] = 1ull << bit % 64;
        for (uint32_t start = 0; start < 300; start++) {
            EXPECT(context_pick(mask, FIRST, LAST, start, 1, ids));
            EXPECT_EQ(ids[0], 60 * 64 + bit);
            EXPECT(!context_pick(mask, FIRST, LAST, start, 2, ids));
        }
    }
}

static void picks_differ_and_start_where_told(void)
{
    uint64_t mask[CONTEXT_WORDS];
    uint32_t ids[2];
    memset(mask, 0xff, sizeof(mask));
    for (uint32_t start = 0; start < 64 * CONTEXT_WORDS; start++) {
        EXPECT(context_pick(mask, 0, CONTEXT_WORDS, start, 2, ids));
        EXPECT_EQ(ids[0], start);
        EXPECT_EQ(ids[1], (start + 1) % (64 * CONTEXT_WORDS));
    }
}

int main(void)
{
    TEST_RUN(reserved_ids_are_taken);
    TEST_RUN(lowest_first);
    TEST_RUN(every_start_finds_every_id);
    TEST_RUN(picks_differ_and_start_where_told);
    return test_result();
}
