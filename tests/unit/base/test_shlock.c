/* test_shlock.c: the lock of base/shlock.h in every interleaving of three processes, of which up to two
 * die at any kill point: at most one process holds the lock, data that a dead owner left half changed is
 * repaired before any process reads it, and no process waits forever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define FISHPLATE_KILL_POINTS
#include "base/shlock.h"

#include "interleave.h"
#include "test.h"

enum variant { CORRECT, STORE_WITHOUT_COMPARE, STEAL_FROM_LIVING, SKIP_REPAIR, BREAK_LOCK };

static struct {
    struct shlock lock;
    uint32_t inside[INTERLEAVE_MAX];
    uint32_t first, second; /* the protected data: equal while no process holds the lock */
} mem;
static enum variant variant;
static int rounds;

static bool is_dead(void *unused, uint32_t number)
{
    return variant == STEAL_FROM_LIVING || interleave_is_declared(unused, number);
}

/* A deliberate error: two processes that find the owner dead both take the lock. */
static enum shlock_result take_over_without_compare(struct shlock *l, const struct shlock_user *u,
                                                    uint32_t *owner)
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

static void run_process(int who)
{
    const struct shlock_user user = {.number = (uint32_t)who, .is_dead = is_dead};
    uint32_t owner;
    for (int round = 0; round < rounds; round++) {
        enum shlock_result got;
        interleave_set_local(who, round);
        while ((got = (variant == STORE_WITHOUT_COMPARE ? take_over_without_compare : shlock_try)(
                    &mem.lock, &user, &owner)) == SHLOCK_BUSY)
            interleave_wait();
        if (got == SHLOCK_BROKEN)
            return;
        if (got == SHLOCK_TAKEN_OVER && variant == BREAK_LOCK) {
            shlock_break(&mem.lock, owner);
            return;
        }
        mem.inside[who] = 1;
        if (got == SHLOCK_TAKEN_OVER && variant != SKIP_REPAIR)
            mem.second = mem.first;
        interleave_set_local(who, round | 16);
        interleave_point();
        mem.first++;
        interleave_set_local(who, round | 32);
        interleave_point();
        mem.second++;
        interleave_set_local(who, round | 48);
        interleave_point();
        mem.inside[who] = 0;
        shlock_release(&mem.lock);
        interleave_point();
    }
}

static void reset_memory(void)
{
    memset(&mem, 0, sizeof(mem));
}

static void copy_shared_words(uint32_t *words)
{
    words[0] = atomic_load(&mem.lock.word);
    memcpy(words + 1, mem.inside, sizeof(mem.inside));
    words[5] = mem.first;
    words[6] = mem.second;
}

static const char *check_invariants(void)
{
    int inside = 0, dead_inside = 0;
    for (int i = 0; i < explorer.processes; i++) {
        inside += mem.inside[i] && !explorer.now.process[i].dead;
        dead_inside += mem.inside[i] && explorer.now.process[i].dead;
    }
    if (inside > 1)
        return "two processes hold the lock";
    if (!inside && !dead_inside && mem.first != mem.second)
        return "the data is half changed and no process holds the lock";
    for (int i = 0; i < explorer.processes; i++)
        if (mem.inside[i] && !explorer.now.process[i].dead && explorer.now.process[i].local >> 4 == 1 &&
            mem.first != mem.second)
            return "a process read half-changed data";
    return NULL;
}

static const char *explore_variant(enum variant chosen, int processes, int deaths)
{
    variant = chosen;
    rounds = deaths > 1 ? 1 : 2;
    explorer.processes = processes;
    explorer.deaths = deaths;
    explorer.body = run_process;
    explorer.reset = reset_memory;
    explorer.share = copy_shared_words;
    explorer.check = check_invariants;
    interleave_explore(chosen == CORRECT || chosen == BREAK_LOCK);
    return explorer.wrong;
}

static void test_without_deaths(void)
{
    EXPECT(explore_variant(CORRECT, 3, 0) == NULL);
}

static void test_deaths_at_every_point(void)
{
    EXPECT(explore_variant(CORRECT, 2, 1) == NULL);
    EXPECT(explore_variant(CORRECT, 3, 2) == NULL);
}

static void test_broken_lock(void)
{
    EXPECT(explore_variant(BREAK_LOCK, 3, 2) == NULL);
}

static void test_search_finds_errors(void)
{
    EXPECT(explore_variant(STORE_WITHOUT_COMPARE, 3, 1) != NULL);
    EXPECT(explore_variant(STEAL_FROM_LIVING, 2, 0) != NULL);
    EXPECT(explore_variant(SKIP_REPAIR, 2, 1) != NULL);
}

int main(void)
{
    TEST_RUN(test_without_deaths);
    TEST_RUN(test_deaths_at_every_point);
    TEST_RUN(test_broken_lock);
    TEST_RUN(test_search_finds_errors);
    return test_result();
}
