/* hub_logic.c: the hub of the barrier network in every order in which three hosts can enter, poll and
 * leave: no host leaves a barrier before all have entered it, and some host can always continue. Hosts
 * that are not connected do not count.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "softib/barrier.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS  3
#define ROUNDS 2

static const uint32_t port[HOSTS] = {63, 64, 640}; /* bits in three words of the hub's masks */

struct state {
    struct softib_hub hub;
    int round[HOSTS];
    bool inside[HOSTS], finished[HOSTS];
};

static unsigned long steps;

static void fail_with_message(const char *what)
{
    printf("FAILED after %lu steps: %s\n", steps, what);
    exit(1);
}

/* Executes one action of a host: enters, finds that all have entered, or leaves. Returns false if the host
 * must wait. */
static bool step_host(struct state *s, int h)
{
    const bool level = s->round[h] % 2 == 0; /* level of the wire `released` for which the host waits */
    if (s->finished[h])
        return false;
    if (!s->inside[h] && s->round[h] == ROUNDS) {
        softib_hub_wire(&s->hub, port[h], false);
        s->finished[h] = true;
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
            fail_with_message("a host left a barrier that another host had not entered");
    s->inside[h] = false;
    s->round[h]++;
    return true;
}

static void explore_states(const struct state *s)
{
    int nmoved = 0, nfinished = 0;
    for (int h = 0; h < HOSTS; h++) {
        struct state next = *s;
        steps++;
        nfinished += s->finished[h];
        if (!step_host(&next, h))
            continue;
        nmoved++;
        explore_states(&next);
    }
    if (!nmoved && nfinished < HOSTS)
        fail_with_message("no host can continue");
    if (nfinished == HOSTS && (s->hub.job || s->hub.released))
        fail_with_message("the hub is not free after all hosts have left it");
}

int main(void)
{
    struct state s = {.hub.job = 5};
    for (int h = 0; h < HOSTS; h++)
        softib_hub_wire(&s.hub, port[h], true);
    explore_states(&s);
    printf("%d hosts, %d barriers, every order (%lu steps): no error\n", HOSTS, ROUNDS, steps);
    return 0;
}
