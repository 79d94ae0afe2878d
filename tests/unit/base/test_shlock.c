/* test_shlock.c: the lock of base/shlock.h in every interleaving of three processes, of which up to two die, at every point: one process
 * at a time is inside, what a dead owner left half changed is repaired before anybody sees it, and nobody waits for ever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define FISHPLATE_KILL_POINTS
#include "base/shlock.h"

#include "interleave.h"
#include "test.h"

enum way { RIGHT, STORE_OVER, TAKE_FROM_LIVING, FORGET_REPAIR, BREAK };

static struct {
    struct shlock lock;
    uint32_t inside[INTERLEAVE_MAX];
    uint32_t first, second; /* equal while nobody is inside */
} mem;
static enum way way;
static int rounds;

static bool is_dead(void *unused, uint32_t number)
{
    return way == TAKE_FROM_LIVING || interleave_is_declared(unused, number);
}

/* A deliberate mistake: two processes that find the owner dead both take over. */
static enum shlock_result store_over(struct shlock *l, const struct shlock_user *u, uint32_t *owner)
{
    if (shlock_acquire_free(l, u->number))
        return SHLOCK_ACQUIRED;
    *owner = atomic_load(&l->word) - 1;
    if (*owner + 1 == 0 || !u->is_dead(NULL, *owner))
        return SHLOCK_BUSY;
    interleave_point();
    atomic_store(&l->word, u->number + 1);
    return SHLOCK_TAKEN_OVER;
}

static void shlock_message_body(int who)
{
    const struct shlock_user user = {.number = (uint32_t)who, .is_dead = is_dead};
    uint32_t owner;
    for (int round = 0; round < rounds; round++) {
        enum shlock_result got;
        interleave_local(who, round);
        while ((got = (way == STORE_OVER ? store_over : shlock_try)(&mem.lock, &user, &owner)) == SHLOCK_BUSY)
            interleave_wait();
        if (got == SHLOCK_BROKEN)
            return;
        if (got == SHLOCK_TAKEN_OVER && way == BREAK) {
            shlock_break(&mem.lock, owner);
            return;
        }
        mem.inside[who] = 1;
        if (got == SHLOCK_TAKEN_OVER && way != FORGET_REPAIR)
            mem.second = mem.first;
        interleave_local(who, round | 16);
        interleave_point();
        mem.first++;
        interleave_local(who, round | 32);
        interleave_point();
        mem.second++;
        interleave_local(who, round | 48);
        interleave_point();
        mem.inside[who] = 0;
        shlock_release(&mem.lock);
        interleave_point();
    }
}

static void shlock_reset(void)
{
    memset(&mem, 0, sizeof(mem));
}

static void shlock_share(uint32_t *words)
{
    words[0] = atomic_load(&mem.lock.word);
    memcpy(words + 1, mem.inside, sizeof(mem.inside));
    words[5] = mem.first;
    words[6] = mem.second;
}

static const char *shlock_check(void)
{
    int inside = 0, dead_inside = 0;
    for (int i = 0; i < explorer.processes; i++) {
        inside += mem.inside[i] && !explorer.now.process[i].dead;
        dead_inside += mem.inside[i] && explorer.now.process[i].dead;
    }
    if (inside > 1)
        return "two are inside";
    if (!inside && !dead_inside && mem.first != mem.second)
        return "the data are half changed and nobody is inside";
    for (int i = 0; i < explorer.processes; i++)
        if (mem.inside[i] && !explorer.now.process[i].dead && explorer.now.process[i].local >> 4 == 1 &&
            mem.first != mem.second)
            return "a process found data half changed";
    return NULL;
}

static const char *explore_way(enum way chosen, int processes, int deaths)
{
    way = chosen;
    rounds = deaths > 1 ? 1 : 2;
    explorer.processes = processes;
    explorer.deaths = deaths;
    explorer.body = shlock_message_body;
    explorer.reset = shlock_reset;
    explorer.share = shlock_share;
    explorer.check = shlock_check;
    interleave_all(chosen == RIGHT || chosen == BREAK);
    return explorer.wrong;
}

static void nobody_dies(void)
{
    EXPECT(explore_way(RIGHT, 3, 0) == NULL);
}

static void deaths_at_every_point(void)
{
    EXPECT(explore_way(RIGHT, 2, 1) == NULL);
    EXPECT(explore_way(RIGHT, 3, 2) == NULL);
}

static void broken_for_good(void)
{
    EXPECT(explore_way(BREAK, 3, 2) == NULL);
}

static void mistakes_are_found(void)
{
    EXPECT(explore_way(STORE_OVER, 3, 1) != NULL);
    EXPECT(explore_way(TAKE_FROM_LIVING, 2, 0) != NULL);
    EXPECT(explore_way(FORGET_REPAIR, 2, 1) != NULL);
}

int main(void)
{
    TEST_RUN(nobody_dies);
    TEST_RUN(deaths_at_every_point);
    TEST_RUN(broken_for_good);
    TEST_RUN(mistakes_are_found);
    return test_result();
}
