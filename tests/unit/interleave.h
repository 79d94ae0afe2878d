/* interleave.h: visits every interleaving of a few processes that run production code with kill points
 * (base/kill_point.h). A process runs from one kill point to the next without interruption; at each kill
 * point another process may continue, and the process may die. A death is reported some time later. A
 * state that was reached before is not explored again: it consists of the shared memory and, for each
 * process, its kill point and one word (`local`) that must determine all its further actions.
 *
 * Processes are coroutines; a state is reached again by repeating the choices that led to it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_INTERLEAVE_H
#define FP_TESTS_INTERLEAVE_H

#include <ucontext.h>

#include "base/kill_point.h"
#include "net/explore.h"

enum { INTERLEAVE_MAX = 4, INTERLEAVE_STACK = 64 * 1024, INTERLEAVE_WORDS = 16 };
enum { CHOOSE_STEP, CHOOSE_DEATH, CHOOSE_DECLARE, CHOICES };

struct interleave_state {
    uint32_t shared[INTERLEAVE_WORDS];
    struct {
        uint8_t point, local, done, dead, declared;
    } process[INTERLEAVE_MAX];
};

static struct {
    int processes, deaths;
    void (*body)(int who);
    void (*reset)(void);            /* initialises the shared memory before each run */
    void (*share)(uint32_t *words); /* copies the shared memory to words */
    const char *(*check)(void);     /* the violated invariant of this state, or NULL */
    const char *wrong;              /* the first violated invariant */
    struct interleave_state now;
    ucontext_t scheduler, context[INTERLEAVE_MAX];
    int running;
} explorer;
static char interleave_stacks[INTERLEAVE_MAX][INTERLEAVE_STACK];

static const char *const interleave_events[INTERLEAVE_MAX * CHOICES] = {
    "process 0 goes on", "process 0 dies", "process 0 is declared dead",
    "process 1 goes on", "process 1 dies", "process 1 is declared dead",
    "process 2 goes on", "process 2 dies", "process 2 is declared dead",
    "process 3 goes on", "process 3 dies", "process 3 is declared dead"};

static void interleave_pause(uint8_t point)
{
    const int who = explorer.running;
    explorer.now.process[who].point = point;
    swapcontext(&explorer.context[who], &explorer.scheduler);
}

void kill_point_open(uint32_t rank)
{
    (void)rank;
}

void kill_point_reach(enum kill_point point)
{
    interleave_pause((uint8_t)(point + 3));
}

/* Pauses the process until another process has changed the shared memory. */
static inline void interleave_wait(void)
{
    interleave_pause(2);
}

/* A kill point of the test itself. */
static inline void interleave_point(void)
{
    interleave_pause(1);
}

static inline void interleave_set_local(int who, int value)
{
    explorer.now.process[who].local = (uint8_t)value;
}

static inline bool interleave_is_declared(void *unused, uint32_t who)
{
    (void)unused;
    return explorer.now.process[who].declared;
}

static void interleave_main(void)
{
    explorer.body(explorer.running);
    explorer.now.process[explorer.running].done = 1;
    explorer.now.process[explorer.running].point = 0;
    swapcontext(&explorer.context[explorer.running], &explorer.scheduler);
}

static void interleave_start(void)
{
    memset(&explorer.now, 0, sizeof(explorer.now));
    explorer.reset();
    for (int i = 0; i < explorer.processes; i++) {
        getcontext(&explorer.context[i]);
        explorer.context[i].uc_stack.ss_sp = interleave_stacks[i];
        explorer.context[i].uc_stack.ss_size = INTERLEAVE_STACK;
        explorer.context[i].uc_link = NULL;
        makecontext(&explorer.context[i], interleave_main, 0);
    }
}

static bool interleave_choice_is_possible(int choice)
{
    const int who = choice / CHOICES;
    int dead = 0;
    for (int i = 0; i < explorer.processes; i++)
        dead += explorer.now.process[i].dead;
    if (choice % CHOICES == CHOOSE_DECLARE)
        return explorer.now.process[who].dead && !explorer.now.process[who].declared;
    return !explorer.now.process[who].dead && !explorer.now.process[who].done &&
           (choice % CHOICES == CHOOSE_STEP || dead < explorer.deaths);
}

static void interleave_execute_choice(int choice)
{
    const int who = choice / CHOICES;
    if (choice % CHOICES == CHOOSE_DEATH) {
        explorer.now.process[who].dead = 1;
    } else if (choice % CHOICES == CHOOSE_DECLARE) {
        explorer.now.process[who].declared = 1;
    } else {
        explorer.running = who;
        swapcontext(&explorer.scheduler, &explorer.context[who]);
    }
    explorer.share(explorer.now.shared);
}

static void interleave_replay(const struct explore *e, uint32_t at)
{
    if (at == 0) {
        interleave_start();
        explorer.share(explorer.now.shared);
        return;
    }
    interleave_replay(e, e->predecessor[at]);
    for (int choice = 0; choice < INTERLEAVE_MAX * CHOICES; choice++)
        if (interleave_events[choice] == e->event[at])
            interleave_execute_choice(choice);
}

static bool interleave_expand_state(struct explore *e, const void *state)
{
    bool goes_on = false, wants = false;
    for (int choice = 0; choice < explorer.processes * CHOICES; choice++) {
        interleave_replay(e, e->current);
        if (memcmp(&explorer.now, state, sizeof(explorer.now)) != 0) {
            explorer.wrong = "a replay of the same choices led to another state";
            return false;
        }
        explorer.wrong = explorer.check();
        if (explorer.wrong)
            return false;
        if (!interleave_choice_is_possible(choice))
            continue;
        wants = wants || choice % CHOICES == CHOOSE_STEP;
        interleave_execute_choice(choice);
        goes_on = goes_on || (choice % CHOICES != CHOOSE_DEATH &&
                              memcmp(&explorer.now, state, sizeof(explorer.now)) != 0);
        explore_add(e, &explorer.now, interleave_events[choice]);
    }
    if (wants && !goes_on)
        explorer.wrong = "no process can continue";
    return !explorer.wrong;
}

static bool interleave_expect_correct;
static bool interleave_has_unexpected_violation(void)
{
    return interleave_expect_correct && explorer.wrong;
}

/* Explores all states and returns their number. explorer.wrong is the violated invariant; if `right` (the
 * code under test should be correct), its trail is printed. */
static uint32_t interleave_explore(bool right)
{
    interleave_expect_correct = right;
    explorer.wrong = NULL;
    interleave_start();
    explorer.share(explorer.now.shared);
    struct interleave_state first = explorer.now;
    const uint32_t states = explore_all_states(sizeof(first), &first, interleave_expand_state,
                                               interleave_has_unexpected_violation);
    printf("%u states%s%s\n", states, explorer.wrong ? ": " : "", explorer.wrong ? explorer.wrong : "");
    return states;
}

#endif
