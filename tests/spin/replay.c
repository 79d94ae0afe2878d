/* replay.c: compares the code of lab/mechanisms/rails with the model reserve.pml.
 *
 *     replay count NODES RAILS MESSAGES BOUND TO0 TO1 TO2    prints the numbers of reachable states and of final states
 *     replay follow NODES RAILS MESSAGES BOUND TO0 TO1 TO2   reads a trace of the model printed by `spin -T`, executes the same
 *                                                            steps, and compares the state after every step
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/tests/unit/rails_all.h"

static const char *const state_names[] = {[RESERVE_FREE] = "FREE",
                                          [RESERVE_RESERVED] = "RESERVED",
                                          [RESERVE_RECEIVING] = "RECEIVING",
                                          [RESERVE_RECEIVING_OUT] = "RECEIVING_OUT",
                                          [RESERVE_SENDING] = "SENDING"};

/* True if the adapter has the state that the model's trace contains. */
static bool state_agrees(const struct world *w, unsigned node, unsigned rail, const char *name, int priority,
                         int granted_to)
{
    const struct world_nic *n = &w->nic[node][rail];
    int to = n->granted_to ? n->granted_to - 1 : 255;
    if (strcmp(state_names[n->state], name) == 0 && n->priority == priority && to == granted_to)
        return true;
    printf("node %u, rail %u: the model has %s, counter %d, granted to %d; the code is %s, %d, %d\n", node,
           rail, name, priority, granted_to, state_names[n->state], n->priority, to);
    return false;
}

/* Executes one line of the trace; lines that are not of the model are skipped. */
static bool execute_line(struct world *w, const char *line, unsigned *events)
{
    unsigned a, b, c, event = EVENTS;
    int priority, to;
    char name[32];
    if (sscanf(line, " state %u %u %31s %d %d", &a, &b, name, &priority, &to) == 5)
        return a < NODES && b < RAILS && state_agrees(w, a, b, name, priority, to);
    if (sscanf(line, " asks %u", &a) == 1 && a < NODES)
        event = REQUEST + a;
    else if (sscanf(line, " frame %u %u %u", &a, &b, &c) == 3 && a < RAILS && b < NODES && c < NODES)
        event = FRAME + (a * NODES + b) * NODES + c;
    else if (sscanf(line, " data %u %u", &a, &b) == 2 && a < RAILS && b < NODES)
        event = DATA + a * NODES + b;
    else
        return true;
    ++*events;
    if (!world_apply_event(w, event)) {
        printf("the model has '%s', which cannot happen in the code\n", event_name(event));
        return false;
    }
    world_check_reservations(w);
    return test_failures == 0;
}

static int follow_trace(const struct limits *limits)
{
    struct world w = world_init(limits);
    unsigned events = 0, lines = 0;
    char line[256];
    while (fgets(line, sizeof(line), stdin)) {
        lines++;
        if (!execute_line(&w, line, &events)) {
            printf("at line %u: %s", lines, line);
            return 1;
        }
    }
    for (unsigned event = 0; event < EVENTS; event++) {
        struct world next = w;
        if (world_event_is_possible(&next, event) && world_apply_event(&next, event)) {
            printf("the model has ended, and in the code '%s' can still happen\n", event_name(event));
            return 1;
        }
    }
    printf("%u\n", events);
    return world_is_finished(&w) ? 0 : 1;
}

static int count_states(const struct limits *limits)
{
    struct world begin = world_init(limits);
    struct explore e;
    explore_open(&e, sizeof(begin));
    bool good = explore_run(&e, &begin, explore_check_state);
    printf("%u %u\n", e.count, ends);
    explore_close(&e);
    free(the_edges.first), free(the_edges.to), free(the_edges.event);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 9)
        return 2;
    struct limits l = {.nodes = (uint8_t)atoi(argv[2]),
                       .rails = (uint8_t)atoi(argv[3]),
                       .messages = (uint8_t)atoi(argv[4]),
                       .bound = (uint8_t)atoi(argv[5]),
                       .to = {(uint8_t)atoi(argv[6]), (uint8_t)atoi(argv[7]), (uint8_t)atoi(argv[8])}};
    if (l.nodes > NODES || l.rails > RAILS)
        return 2;
    return strcmp(argv[1], "count") == 0 ? count_states(&l) : follow_trace(&l);
}
