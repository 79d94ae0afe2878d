/* test_change.c: the exclusion of single and bulk changes (rma/change.h) in every interleaving of four processes, of which up to two
 * die, at every point: a bulk change runs alone, and nobody waits for ever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define FISHPLATE_KILL_POINTS
#include "rma/change.h"

#include "interleave.h"
#include "test.h"

enum { TARGET = 0 }; /* whose memory is changed: the rank of process 0 */
enum way { RIGHT, NO_FLAG, NO_WAIT, WAIT_FOR_DEAD };

static struct {
    struct change target;
    _Atomic uint32_t word[INTERLEAVE_MAX];
    uint32_t single[INTERLEAVE_MAX], bulk[INTERLEAVE_MAX]; /* who is changing */
} mem;
static enum way way;
static int singles; /* the first processes change single elements, the others many */

static enum shlock_result lock(int who, uint32_t *owner)
{
    const struct shlock_user user = {.number = (uint32_t)who, .is_dead = interleave_is_declared};
    enum shlock_result got;
    while ((got = shlock_try(&mem.target.lock, &user, owner)) == SHLOCK_BUSY)
        interleave_wait();
    if (got == SHLOCK_TAKEN_OVER)
        shlock_break(&mem.target.lock, *owner);
    return got;
}

static void change(int who, uint32_t *mark)
{
    *mark = 1;
    interleave_local(who, 128 | explorer.now.process[who].local);
    interleave_point();
    *mark = 0;
}

static void change_single(int who)
{
    uint32_t owner;
    if (change_single_begin(&mem.word[who], &mem.target, TARGET)) {
        change(who, &mem.single[who]);
        change_single_end(&mem.word[who]);
    } else if (lock(who, &owner) == SHLOCK_ACQUIRED) {
        interleave_local(who, 64 | explorer.now.process[who].local);
        change(who, &mem.single[who]);
        shlock_release(&mem.target.lock);
    }
}

static void change_bulk(int who)
{
    uint32_t owner;
    if (lock(who, &owner) != SHLOCK_ACQUIRED)
        return;
    if (way != NO_FLAG)
        change_bulk_announce(&mem.target);
    for (int i = 0; i < explorer.processes && way != NO_WAIT; i++) {
        interleave_local(who, 16 + i);
        while (i != who && change_is_single(&mem.word[i], TARGET) &&
               (way == WAIT_FOR_DEAD || !explorer.now.process[i].declared))
            interleave_wait();
    }
    change(who, &mem.bulk[who]);
    change_bulk_end(&mem.target);
    shlock_release(&mem.target.lock);
}

static void body(int who)
{
    for (int round = 0; round < (explorer.processes > 2 && explorer.deaths > 0 ? 1 : 2); round++) {
        interleave_local(who, round);
        (who < singles ? change_single : change_bulk)(who);
        interleave_point();
    }
}

static void reset(void)
{
    memset(&mem, 0, sizeof(mem));
}

static void share(uint32_t *words)
{
    words[0] = atomic_load(&mem.target.lock.word);
    words[1] = atomic_load(&mem.target.bulk);
    for (int i = 0; i < INTERLEAVE_MAX; i++)
        words[2 + i] = atomic_load(&mem.word[i]) | mem.single[i] << 8 | mem.bulk[i] << 16;
}

/* A bulk change that was cut off by a death excludes the others, too: nobody changes what it left. */
static const char *check(void)
{
    int single = 0, bulk = 0;
    for (int i = 0; i < explorer.processes; i++) {
        single += mem.single[i] && !explorer.now.process[i].dead;
        bulk += mem.bulk[i] != 0;
    }
    return bulk > 1         ? "two bulk changes at once"
           : bulk && single ? "a single change during a bulk change"
                            : NULL;
}

static const char *explore_way(enum way chosen, int nsingles, int nbulks, int deaths)
{
    way = chosen;
    singles = nsingles;
    explorer.processes = nsingles + nbulks;
    explorer.deaths = deaths;
    explorer.body = body;
    explorer.reset = reset;
    explorer.share = share;
    explorer.check = check;
    interleave_all(chosen == RIGHT);
    return explorer.wrong;
}

static void nobody_dies(void)
{
    EXPECT(explore_way(RIGHT, 2, 1, 0) == NULL);
    EXPECT(explore_way(RIGHT, 1, 2, 0) == NULL);
    EXPECT(explore_way(RIGHT, 1, 1, 0) == NULL);
}

static void deaths_at_every_point(void)
{
    EXPECT(explore_way(RIGHT, 1, 1, 1) == NULL);
    EXPECT(explore_way(RIGHT, 2, 1, 2) == NULL);
    EXPECT(explore_way(RIGHT, 1, 2, 2) == NULL);
    EXPECT(explore_way(RIGHT, 2, 2, 1) == NULL);
}

static void mistakes_are_found(void)
{
    EXPECT(explore_way(NO_FLAG, 1, 1, 0) != NULL);
    EXPECT(explore_way(NO_WAIT, 1, 1, 0) != NULL);
    EXPECT(explore_way(WAIT_FOR_DEAD, 1, 1, 1) != NULL);
}

int main(void)
{
    TEST_RUN(nobody_dies);
    TEST_RUN(deaths_at_every_point);
    TEST_RUN(mistakes_are_found);
    return test_result();
}
