/* test_change.c: the exclusion of single and bulk changes (rma/change.h) in every interleaving of four
 * processes, of which up to two die at any kill point: a bulk change runs alone, and no process waits
 * forever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define FISHPLATE_KILL_POINTS
#include "rma/change.h"

#include "interleave.h"
#include "test.h"

enum { TARGET = 0 }; /* rank whose memory is changed */
enum variant { CORRECT, NO_FLAG, NO_WAIT, WAIT_FOR_DEAD };

static struct {
    struct change target;
    _Atomic uint32_t word[INTERLEAVE_MAX];
    uint32_t single[INTERLEAVE_MAX], bulk[INTERLEAVE_MAX]; /* 1: the process is inside such a change */
} mem;
static enum variant variant;
static int singles; /* number of processes that change single elements; the others make bulk changes */

static enum shlock_result lock_target(int who, uint32_t *owner)
{
    const struct shlock_user user = {.number = (uint32_t)who, .is_dead = interleave_is_declared};
    enum shlock_result got;
    while ((got = shlock_try(&mem.target.lock, &user, owner)) == SHLOCK_BUSY)
        interleave_wait();
    if (got == SHLOCK_TAKEN_OVER)
        shlock_break(&mem.target.lock, *owner);
    return got;
}

static void mark_change(int who, uint32_t *mark)
{
    *mark = 1;
    interleave_set_local(who, 128 | explorer.now.process[who].local);
    interleave_point();
    *mark = 0;
}

static void change_single(int who)
{
    uint32_t owner;
    if (change_single_begin(&mem.word[who], &mem.target, TARGET)) {
        mark_change(who, &mem.single[who]);
        change_single_end(&mem.word[who]);
    } else if (lock_target(who, &owner) == SHLOCK_ACQUIRED) {
        interleave_set_local(who, 64 | explorer.now.process[who].local);
        mark_change(who, &mem.single[who]);
        shlock_release(&mem.target.lock);
    }
}

static void change_bulk(int who)
{
    uint32_t owner;
    if (lock_target(who, &owner) != SHLOCK_ACQUIRED)
        return;
    if (variant != NO_FLAG)
        change_bulk_announce(&mem.target);
    for (int i = 0; i < explorer.processes && variant != NO_WAIT; i++) {
        interleave_set_local(who, 16 + i);
        while (i != who && change_is_single(&mem.word[i], TARGET) &&
               (variant == WAIT_FOR_DEAD || !explorer.now.process[i].declared))
            interleave_wait();
    }
    mark_change(who, &mem.bulk[who]);
    change_bulk_end(&mem.target);
    shlock_release(&mem.target.lock);
}

static void run_process(int who)
{
    for (int round = 0; round < (explorer.processes > 2 && explorer.deaths > 0 ? 1 : 2); round++) {
        interleave_set_local(who, round);
        (who < singles ? change_single : change_bulk)(who);
        interleave_point();
    }
}

static void reset_memory(void)
{
    memset(&mem, 0, sizeof(mem));
}

static void copy_shared_words(uint32_t *words)
{
    words[0] = atomic_load(&mem.target.lock.word);
    words[1] = atomic_load(&mem.target.bulk);
    for (int i = 0; i < INTERLEAVE_MAX; i++)
        words[2 + i] = atomic_load(&mem.word[i]) | mem.single[i] << 8 | mem.bulk[i] << 16;
}

/* A bulk change whose process died still excludes all others: no process changes the half-changed data. */
static const char *check_invariants(void)
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

static const char *explore_variant(enum variant chosen, int nsingles, int nbulks, int deaths)
{
    variant = chosen;
    singles = nsingles;
    explorer.processes = nsingles + nbulks;
    explorer.deaths = deaths;
    explorer.body = run_process;
    explorer.reset = reset_memory;
    explorer.share = copy_shared_words;
    explorer.check = check_invariants;
    interleave_explore(chosen == CORRECT);
    return explorer.wrong;
}

static void test_without_deaths(void)
{
    EXPECT(explore_variant(CORRECT, 2, 1, 0) == NULL);
    EXPECT(explore_variant(CORRECT, 1, 2, 0) == NULL);
    EXPECT(explore_variant(CORRECT, 1, 1, 0) == NULL);
}

static void test_deaths_at_every_point(void)
{
    EXPECT(explore_variant(CORRECT, 1, 1, 1) == NULL);
    EXPECT(explore_variant(CORRECT, 2, 1, 2) == NULL);
    EXPECT(explore_variant(CORRECT, 1, 2, 2) == NULL);
    EXPECT(explore_variant(CORRECT, 2, 2, 1) == NULL);
}

static void test_search_finds_errors(void)
{
    EXPECT(explore_variant(NO_FLAG, 1, 1, 0) != NULL);
    EXPECT(explore_variant(NO_WAIT, 1, 1, 0) != NULL);
    EXPECT(explore_variant(WAIT_FOR_DEAD, 1, 1, 1) != NULL);
}

int main(void)
{
    TEST_RUN(test_without_deaths);
    TEST_RUN(test_deaths_at_every_point);
    TEST_RUN(test_search_finds_errors);
    return test_result();
}
