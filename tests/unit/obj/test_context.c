/* test_context.c: choice of context ids from a mask of free ids, from any starting point.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/epoch.h"

#include <stdlib.h>

#include "test.h"

static bool is_set(const uint64_t *mask, uint32_t id)
{
    return mask[id / 64] >> id % 64 & 1;
}

static void test_reserved_ids_are_taken(void)
{
    static struct proc p;
    context_ids_init(&p);
    for (uint32_t id = 0; id < CONTEXT_IDS; id++)
        EXPECT_EQ(is_set(p.context_mask, id), id >= CONTEXT_IDS_RESERVED);
    EXPECT_EQ(context_id_of(context_of_id(77)), 77);
    EXPECT_EQ(context_of_id(77) % 2, 0);
}

static void test_lowest_id_first(void)
{
    uint64_t mask[CONTEXT_WORDS] = {0};
    uint32_t ids[2] = {0};
    EXPECT(!context_pick_ids(mask, 0, CONTEXT_WORDS, 0, 1, ids));
    mask[1] = 1ull << 63;
    EXPECT(!context_pick_ids(mask, 0, CONTEXT_WORDS, 0, 2, ids));
    mask[40] = 1;
    EXPECT(context_pick_ids(mask, 0, CONTEXT_WORDS, 0, 2, ids));
    EXPECT_EQ(ids[0], 127);
    EXPECT_EQ(ids[1], 40 * 64);
    EXPECT(!context_pick_ids(mask, 0, 40, 0, 2, ids));
}

static void test_every_start_finds_every_id(void)
{
    uint64_t mask[CONTEXT_WORDS] = {0};
    uint32_t ids[2];
    enum { FIRST = 60, LAST = 62 };
    for (uint32_t bit = 0; bit < 128; bit++) {
        mask[60] = mask[61] = 0;
        mask[60 + bit / 64] = 1ull << bit % 64;
        for (uint32_t start = 0; start < 300; start++) {
            EXPECT(context_pick_ids(mask, FIRST, LAST, start, 1, ids));
            EXPECT_EQ(ids[0], 60 * 64 + bit);
            EXPECT(!context_pick_ids(mask, FIRST, LAST, start, 2, ids));
        }
    }
}

static void test_choices_start_at_given_number(void)
{
    uint64_t mask[CONTEXT_WORDS];
    uint32_t ids[2];
    memset(mask, 0xff, sizeof(mask));
    for (uint32_t start = 0; start < 64 * CONTEXT_WORDS; start++) {
        EXPECT(context_pick_ids(mask, 0, CONTEXT_WORDS, start, 2, ids));
        EXPECT_EQ(ids[0], start);
        EXPECT_EQ(ids[1], (start + 1) % (64 * CONTEXT_WORDS));
    }
}

/* The id of a communicator that was freed with messages in flight is reused in a later epoch. */
static void test_retired_ids_get_new_epoch(void)
{
    static struct proc p;
    context_ids_init(&p);
    const uint32_t id = 77, other = 78, old = 3 * CONTEXT_IDS + id;
    context_id_reserve(&p, old);
    EXPECT(context_is_current(&p, old) && !context_is_retired(&p, context_of_id(old)));
    context_retire(&p, old);
    EXPECT(context_is_retired(&p, context_of_id(old)) && context_is_retired(&p, context_of_id(old) + 1));
    EXPECT(!context_is_retired(&p, context_of_id(old + CONTEXT_IDS)) &&
           !context_is_retired(&p, context_of_id(other)));
    EXPECT(!context_is_retired(&p, 1u << 31 | context_of_id(old))); /* the context of no communicator */
    context_free_retired_ids(&p, false);
    EXPECT(!is_set(p.context_mask, id)); /* enough other ids are free */
    EXPECT_EQ(p.context_epoch, 0);
    context_free_retired_ids(&p, true);
    EXPECT(is_set(p.context_mask, id));
    EXPECT_EQ(p.context_epoch, 4);
    uint32_t ids[2] = {id, other};
    context_add_epoch(ids, 2, p.context_epoch);
    EXPECT_EQ(ids[0], old + CONTEXT_IDS);
    EXPECT(context_is_current(&p, ids[0]) && !context_is_current(&p, old));
    context_retire(&p, (CONTEXT_EPOCHS - 1) * CONTEXT_IDS + other);
    context_id_reserve(&p, other);
    context_free_retired_ids(&p, true);
    EXPECT(!is_set(p.context_mask, other)); /* the id has no later epoch */
    free(p.context_epochs);
}

int main(void)
{
    TEST_RUN(test_reserved_ids_are_taken);
    TEST_RUN(test_lowest_id_first);
    TEST_RUN(test_every_start_finds_every_id);
    TEST_RUN(test_choices_start_at_given_number);
    TEST_RUN(test_retired_ids_get_new_epoch);
    return test_result();
}
