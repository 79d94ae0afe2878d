/* interleave.h: every interleaving of a few processes that run real code with kill points (base/kill_point.h). A process runs from one
 * point to the next without interruption; at each point another one may go on, and the process may die there. A death is declared
 * some time later. States that were reached before are not explored again: a state is what the processes share, and of each process
 * the point that it has reached and a word of its own (`local`), on which everything it does from then on must depend.
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
    void (*reset)(void);            /* before the first step of each run */
    void (*share)(uint32_t *words); /* what is shared, as words */
    const char *(*check)(void);     /* what is wrong in this state, or NULL */
    const char *wrong;              /* the first mistake that was found */
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

/* The process does nothing until another one has changed what it waits for. */
static inline void interleave_wait(void)
{
    interleave_pause(2);
}

/* A point of the test's own. */
static inline void interleave_point(void)
{
    interleave_pause(1);
}

static inline void interleave_local(int who, int value)
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

static void interleave_begin(void)
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

static bool interleave_may(int choice)
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

static void interleave_do(int choice)
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

static void interleave_repeat(const struct explore *e, uint32_t at)
{
    if (at == 0) {
        interleave_begin();
        explorer.share(explorer.now.shared);
        return;
    }
    interleave_repeat(e, e->from[at]);
    for (int choice = 0; choice < INTERLEAVE_MAX * CHOICES; choice++)
        if (interleave_events[choice] == e->event[at])
            interleave_do(choice);
}

static bool interleave_look(struct explore *e, const void *state)
{
    bool goes_on = false, wants = false;
    for (int choice = 0; choice < explorer.processes * CHOICES; choice++) {
        interleave_repeat(e, e->at);
        if (memcmp(&explorer.now, state, sizeof(explorer.now)) != 0) {
            explorer.wrong = "the same choices led to another state";
            return false;
        }
        explorer.wrong = explorer.check();
        if (explorer.wrong)
            return false;
        if (!interleave_may(choice))
            continue;
        wants = wants || choice % CHOICES == CHOOSE_STEP;
        interleave_do(choice);
        goes_on = goes_on || (choice % CHOICES != CHOOSE_DEATH &&
                              memcmp(&explorer.now, state, sizeof(explorer.now)) != 0);
        explore_add(e, &explorer.now, interleave_events[choice]);
    }
    if (wants && !goes_on)
        explorer.wrong = "nobody can go on";
    return !explorer.wrong;
}

static bool interleave_expected_right;
static bool interleave_unexpected(void)
{
    return interleave_expected_right && explorer.wrong;
}

/* The number of states; explorer.wrong is what was found, whose trail is printed if `right`. */
static uint32_t interleave_all(bool right)
{
    interleave_expected_right = right;
    explorer.wrong = NULL;
    interleave_begin();
    explorer.share(explorer.now.shared);
    struct interleave_state first = explorer.now;
    const uint32_t states = explore_every(sizeof(first), &first, interleave_look, interleave_unexpected);
    printf("%u states%s%s\n", states, explorer.wrong ? ": " : "", explorer.wrong ? explorer.wrong : "");
    return states;
}

#endif
