/* test_shm_split.c: a contribution that its reader reads from the front and its owner writes from the back: in every order of
 * their actions each unit is moved by exactly one of them, and the reader goes only when all of it is there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/split_pieces.h"

#include "net/explore.h"
#include "test.h"

enum { UNITS_MAX = 70 };
enum side { READER, OWNER, SIDES };
enum stage { LOOK, SWAP, MOVE, OVER };

struct one {
    uint64_t old; /* the word it saw */
    uint32_t first, count;
    uint32_t stage, unused;
};

struct state {
    uint64_t word;
    struct one side[SIDES];
    uint32_t wrote, left; /* units the owner has written; the reader is gone */
    uint8_t moved[UNITS_MAX], unused[2];
};

static struct {
    uint32_t units;
    bool blind; /* wrong: the word is stored without looking whether it changed */
    bool hasty; /* wrong: the reader does not wait for what the owner has claimed */
    const char *wrong;
} job;

static struct split_piece shm_split_consume(enum side side, struct split *c)
{
    return side == READER ? split_front(c) : split_back(c);
}

static void shm_split_move(struct state *s, const struct one *me)
{
    for (uint32_t u = me->first; u < me->first + me->count; u++)
        if (++s->moved[u] > 1)
            job.wrong = "a unit is moved twice";
}

/* Called when nothing is left to claim: the owner is done; the reader waits for what the owner has claimed. */
static bool shm_split_end(struct state *s, enum side side, uint64_t word)
{
    if (side == READER && !job.hasty && s->wrote != job.units - split_unpack(word).back)
        return false;
    s->side[side].stage = OVER;
    s->left |= side == READER;
    for (uint32_t u = 0; u < job.units && side == READER; u++)
        if (!s->moved[u])
            job.wrong = "the reader goes before all is there";
    return true;
}

static bool shm_split_act(struct state *s, enum side side)
{
    struct one *me = &s->side[side];
    struct split c = split_unpack(me->old);
    struct split_piece got;
    switch ((enum stage)me->stage) {
    case LOOK:
        me->old = s->word;
        c = split_unpack(me->old);
        if (shm_split_consume(side, &c).count == 0)
            return shm_split_end(s, side, me->old);
        me->stage = SWAP;
        return true;
    case SWAP:
        me->stage = LOOK;
        if (s->word == me->old || job.blind) {
            got = shm_split_consume(side, &c);
            s->word = split_pack(c);
            me->first = got.first;
            me->count = got.count;
            me->stage = MOVE;
        }
        return true;
    case MOVE:
        if (s->left && side == OWNER)
            job.wrong = "the owner writes after the reader is gone";
        shm_split_move(s, me);
        s->wrote += side == OWNER ? me->count : 0;
        me->stage = LOOK;
        return true;
    case OVER:
        return false;
    }
    return false;
}

static bool shm_split_poll(struct explore *e, const void *at)
{
    bool moved = false, over = true;
    for (enum side side = READER; side < SIDES && !job.wrong; side++) {
        struct state s = *(const struct state *)at;
        over &= s.side[side].stage == OVER;
        if (!shm_split_act(&s, side))
            continue;
        moved = true;
        explore_add(e, &s, side == READER ? "the reader goes on" : "the owner goes on");
    }
    if (!job.wrong && !moved && !over)
        job.wrong = "both wait";
    return !job.wrong;
}

static uint32_t explore_job(uint32_t units, bool blind, bool hasty)
{
    struct explore e;
    struct state first;
    memset(&first, 0, sizeof(first));
    first.word = split_pack((struct split){.back = units});
    job.units = units;
    job.blind = blind;
    job.hasty = hasty;
    job.wrong = NULL;
    explore_open(&e, sizeof(first));
    explore_run(&e, &first, shm_split_poll);
    if (job.wrong && !blind && !hasty) {
        printf("%u units: %s:\n", units, job.wrong);
        explore_trail(&e, e.at);
    }
    const uint32_t count = e.count;
    explore_close(&e);
    return count;
}

static void every_unit_is_moved_once(void)
{
    static const uint32_t units[] = {1, 4, 5, 7, 8, 9, 17, 33, 64, UNITS_MAX};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        const uint32_t states = explore_job(units[i], false, false);
        EXPECT(!job.wrong);
        EXPECT(states > 5);
    }
}

static void the_search_finds_what_is_wrong(void)
{
    explore_job(16, true, false);
    EXPECT(job.wrong != NULL);
    explore_job(16, false, true);
    EXPECT(job.wrong != NULL);
}

static void pieces_have_a_sensible_length(void)
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
    TEST_RUN(pieces_have_a_sensible_length);
    TEST_RUN(every_unit_is_moved_once);
    TEST_RUN(the_search_finds_what_is_wrong);
    return test_result();
}
