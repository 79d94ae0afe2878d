/* hub_logic.c: the hub of the barrier network alone: every order in which three hosts can enter, look and leave. Nobody leaves a
 * barrier before all have entered it, and somebody can always go on. Hosts that are not plugged in do not count.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "softib/barrier.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS  3
#define ROUNDS 2

static const uint32_t port[HOSTS] = {1, 63, 640}; /* in three words */

struct state {
    struct softib_hub hub;
    int round[HOSTS];
    bool inside[HOSTS], gone[HOSTS];
};

static unsigned long steps;

static void hub_logic_fail(const char *what)
{
    printf("FAILED after %lu steps: %s\n", steps, what);
    exit(1);
}

/* One action of a host: it enters, finds that all have entered, or leaves. False: it can only wait. */
static bool hub_logic_step(struct state *s, int h)
{
    const bool level = s->round[h] % 2 == 0; /* that it waits for */
    if (s->gone[h])
        return false;
    if (!s->inside[h] && s->round[h] == ROUNDS) {
        softib_hub_wire(&s->hub, port[h], false);
        s->gone[h] = true;
        return true;
    }
    if (!s->inside[h]) {
        softib_hub_level(&s->hub, port[h], level);
        return s->inside[h] = true;
    }
    if (s->hub.released != level)
        return false;
    for (int k = 0; k < HOSTS; k++)
        if (s->round[k] < s->round[h] || (s->round[k] == s->round[h] && !s->inside[k]))
            hub_logic_fail("a host left a barrier that another had not entered");
    s->inside[h] = false;
    s->round[h]++;
    return true;
}

static void hub_logic_explore(const struct state *s)
{
    int moved = 0, gone = 0;
    for (int h = 0; h < HOSTS; h++) {
        struct state next = *s;
        steps++;
        gone += s->gone[h];
        if (!hub_logic_step(&next, h))
            continue;
        moved++;
        hub_logic_explore(&next);
    }
    if (!moved && gone < HOSTS)
        hub_logic_fail("nobody can go on");
    if (gone == HOSTS && (s->hub.job || s->hub.released))
        hub_logic_fail("the hub is not free when all have left it");
}

int main(void)
{
    struct state s = {.hub.job = 5};
    for (int h = 0; h < HOSTS; h++)
        softib_hub_wire(&s.hub, port[h], true);
    hub_logic_explore(&s);
    printf("%d hosts, %d barriers, every order (%lu steps): right\n", HOSTS, ROUNDS, steps);
    return 0;
}
