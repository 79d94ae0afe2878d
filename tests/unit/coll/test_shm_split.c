/* test_shm_split.c: a contribution that its reader copies from the front and its owner copies from the
 * back: in every order of their actions each unit is copied by exactly one of them, and the reader
 * finishes only when all units are copied.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/split_pieces.h"

#include "net/explore.h"
#include "test.h"

enum { UNITS_MAX = 70 };
enum side { READER, OWNER, SIDES };
enum stage { READ_WORD, COMPARE_AND_SWAP, COPY, FINISHED };

struct side_state {
    uint64_t old; /* the shared word as this side read it */
    uint32_t first, count;
    uint32_t stage, unused;
};

struct state {
    uint64_t word;
    struct side_state side[SIDES];
    uint32_t units_written,
        reader_finished; /* units that the owner has written; 1: the reader has finished */
    uint8_t times_copied[UNITS_MAX], unused[2];
};

static struct {
    uint32_t units;
    bool stores_without_compare; /* defect: the word is stored without comparing it with the old value */
    bool
        ignores_claimed_units; /* defect: the reader does not wait for the units that the owner has claimed */
    const char *wrong;
} job;

static struct split_piece claim_piece(enum side side, struct split *c)
{
    return side == READER ? split_front(c) : split_back(c);
}

static void copy_units(struct state *s, const struct side_state *me)
{
    for (uint32_t u = me->first; u < me->first + me->count; u++)
        if (++s->times_copied[u] > 1)
            job.wrong = "a unit is copied twice";
}

/* Called when no unit is left to claim: the owner finishes; the reader waits for the units that the owner
 * has claimed. */
static bool finish_side(struct state *s, enum side side, uint64_t word)
{
    if (side == READER && !job.ignores_claimed_units &&
        s->units_written != job.units - split_unpack(word).back)
        return false;
    s->side[side].stage = FINISHED;
    s->reader_finished |= side == READER;
    for (uint32_t u = 0; u < job.units && side == READER; u++)
        if (!s->times_copied[u])
            job.wrong = "the reader finishes before all units are copied";
    return true;
}

static bool step_side(struct state *s, enum side side)
{
    struct side_state *me = &s->side[side];
    struct split c = split_unpack(me->old);
    struct split_piece got;
    switch ((enum stage)me->stage) {
    case READ_WORD:
        me->old = s->word;
        c = split_unpack(me->old);
        if (claim_piece(side, &c).count == 0)
            return finish_side(s, side, me->old);
        me->stage = COMPARE_AND_SWAP;
        return true;
    case COMPARE_AND_SWAP:
        me->stage = READ_WORD;
        if (s->word == me->old || job.stores_without_compare) {
            got = claim_piece(side, &c);
            s->word = split_pack(c);
            me->first = got.first;
            me->count = got.count;
            me->stage = COPY;
        }
        return true;
    case COPY:
        if (s->reader_finished && side == OWNER)
            job.wrong = "the owner writes after the reader has finished";
        copy_units(s, me);
        s->units_written += side == OWNER ? me->count : 0;
        me->stage = READ_WORD;
        return true;
    case FINISHED:
        return false;
    }
    return false;
}

static bool expand_state(struct explore *e, const void *at)
{
    bool moved = false, over = true;
    for (enum side side = READER; side < SIDES && !job.wrong; side++) {
        struct state s = *(const struct state *)at;
        over &= s.side[side].stage == FINISHED;
        if (!step_side(&s, side))
            continue;
        moved = true;
        explore_add(e, &s, side == READER ? "the reader continues" : "the owner continues");
    }
    if (!job.wrong && !moved && !over)
        job.wrong = "reader and owner wait forever";
    return !job.wrong;
}

static uint32_t explore_job(uint32_t units, bool blind, bool hasty)
{
    struct explore e;
    struct state first;
    memset(&first, 0, sizeof(first));
    first.word = split_pack((struct split){.back = units});
    job.units = units;
    job.stores_without_compare = blind;
    job.ignores_claimed_units = hasty;
    job.wrong = NULL;
    explore_open(&e, sizeof(first));
    explore_run(&e, &first, expand_state);
    if (job.wrong && !blind && !hasty) {
        printf("%u units: %s:\n", units, job.wrong);
        explore_print_trail(&e, e.current);
    }
    const uint32_t count = e.count;
    explore_close(&e);
    return count;
}

static void test_units_are_copied_once(void)
{
    static const uint32_t units[] = {1, 4, 5, 7, 8, 9, 17, 33, 64, UNITS_MAX};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        const uint32_t states = explore_job(units[i], false, false);
        EXPECT(!job.wrong);
        EXPECT(states > 5);
    }
}

static void test_search_finds_defects(void)
{
    explore_job(16, true, false);
    EXPECT(job.wrong != NULL);
    explore_job(16, false, true);
    EXPECT(job.wrong != NULL);
}

static void test_piece_lengths(void)
{
    for (uint32_t units = 1; units < 300; units++) {
        struct split c = {.back = units};
        uint32_t sum = 0;
        for (struct split_piece p; (p = split_front(&c)).count != 0; sum += p.count) {
            EXPECT(p.first == sum && p.count <= SPLIT_MAX + SPLIT_CRUMB);
            EXPECT(p.count >= SPLIT_MIN || units < SPLIT_MIN || c.front == c.back);
        }
        EXPECT_EQ(sum, units);
    }
}

int main(void)
{
    TEST_RUN(test_piece_lengths);
    TEST_RUN(test_units_are_copied_once);
    TEST_RUN(test_search_finds_defects);
    return test_result();
}
