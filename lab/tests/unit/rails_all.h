/* rails_all.h: explores every interleaving of a rails_world. It checks each state, that no final state is a
 * deadlock, and that there is no livelock: no endless cycle of events under weak fairness. The file that
 * includes this header has a main and selects the code of reserve.c. Weak fairness: an event that is possible at every
 * moment from some time on happens eventually. A set of states in which each is reachable from each (a
 * strongly connected component) permits an infinite run exactly if, for every class of events, the class
 * happens within it or is impossible in one of its states.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_RAILS_ALL_H
#define FP_TESTS_RAILS_ALL_H

#include "net/explore.h"
#include "rails_world.h"

struct edges {
    uint32_t *first; /* index of the first edge of each state; one entry more than states */
    uint32_t *to;
    uint8_t *event;
    uint32_t count, room, states;
};

static struct edges the_edges;
static uint32_t ends, sends;

static const char *event_name(unsigned event)
{
    static char names[EVENTS][40];
    char *name = names[event];
    unsigned f = event - FRAME, d = event - DATA;
    if (event < TIMEOUT)
        snprintf(name, 40, "%u requests", event);
    else if (event < FRAME)
        snprintf(name, 40, "%u times out", event - TIMEOUT);
    else if (event < DATA)
        snprintf(name, 40, "rail %u: a frame from %u reaches %u", f / (NODES * NODES), f / NODES % NODES,
                 f % NODES);
    else
        snprintf(name, 40, "rail %u: data of %u arrives", d / NODES, d % NODES);
    return name;
}

static void edge_add(uint32_t to, unsigned event)
{
    struct edges *g = &the_edges;
    if (g->count == g->room) {
        g->room = g->room ? 2 * g->room : 1 << 16;
        g->to = realloc(g->to, g->room * sizeof(*g->to));
        g->event = realloc(g->event, g->room);
    }
    g->to[g->count] = to;
    g->event[g->count++] = (uint8_t)event;
}

static bool explore_check_state(struct explore *e, const void *state)
{
    const struct world *now = state;
    struct edges *g = &the_edges;
    int before = test_failures;
    unsigned possible = 0;
    world_check_reservations(now);
    if (e->current >= g->states) {
        g->states = g->states ? 2 * g->states : 1 << 12;
        g->first = realloc(g->first, (g->states + 1) * sizeof(*g->first));
    }
    g->first[e->current] = g->count;
    for (unsigned event = 0; event < EVENTS; event++) {
        if (!world_event_is_possible(now, event))
            continue;
        struct world next = *now;
        if (!world_apply_event(&next, event))
            continue;
        possible++;
        sends += send_was_granted;
        edge_add(explore_add(e, &next, event_name(event)), event);
        if (test_failures != before)
            printf("after: %s\n", event_name(event));
    }
    g->first[e->current + 1] = g->count;
    if (possible == 0) {
        ends++;
        EXPECT(world_is_finished(now));
    }
    return test_failures == before;
}

/* ---- livelocks: strongly connected components by Tarjan's algorithm, without recursion ---- */

struct tarjan {
    uint32_t *number, *low, *edge, *stack,
        *path; /* number 0: not visited; UINT32_MAX in low: its component is closed */
    uint32_t counter, depth, length;
};

/* True if a run may stay in this component for ever. */
static bool component_is_endless(const struct tarjan *t, const uint32_t *members, uint32_t count,
                                 uint32_t mark)
{
    bool taken[EVENTS] = {false}, always[EVENTS], circle = false;
    const struct edges *g = &the_edges;
    memset(always, true, sizeof(always));
    for (uint32_t i = 0; i < count; i++) {
        bool possible[EVENTS] = {false};
        for (uint32_t k = g->first[members[i]]; k < g->first[members[i] + 1]; k++) {
            possible[g->event[k]] = true;
            if (t->low[g->to[k]] == mark)
                taken[g->event[k]] = circle = true;
        }
        for (int c = 0; c < EVENTS; c++)
            always[c] &= possible[c];
    }
    for (int c = 0; c < EVENTS; c++)
        if (always[c] && !taken[c] && (c < TIMEOUT || c >= FRAME)) /* a timeout need not happen */
            return false;
    return circle;
}

static uint32_t *allocate_words(uint32_t count)
{
    uint32_t *all = calloc(count + 1u, sizeof(*all));
    if (!all)
        exit(1);
    return all;
}

/* Closes a component, the last members of the stack. Returns a state of the component if a run may stay in
 * the component for ever, else UINT32_MAX. */
static uint32_t tarjan_close_component(struct tarjan *t, uint32_t root)
{
    uint32_t top = t->length, at = root;
    while (t->stack[--t->length] != root)
        ;
    const uint32_t *members = t->stack + t->length;
    uint32_t count = top - t->length, mark = UINT32_MAX - 1;
    for (uint32_t i = 0; i < count; i++)
        t->low[members[i]] = mark;
    bool bad = component_is_endless(t, members, count, mark);
    for (uint32_t i = 0; i < count; i++)
        t->low[members[i]] = UINT32_MAX;
    return bad ? at : UINT32_MAX;
}

/* A state of a component in which a run may stay for ever, or UINT32_MAX. */
static uint32_t tarjan_find_endless(uint32_t states)
{
    const struct edges *g = &the_edges;
    struct tarjan t = {allocate_words(states),
                       allocate_words(states),
                       allocate_words(states),
                       allocate_words(states),
                       allocate_words(states),
                       0,
                       0,
                       0};
    uint32_t found = UINT32_MAX;
    t.path[t.depth++] = 0;
    while (t.depth && found == UINT32_MAX) {
        uint32_t s = t.path[t.depth - 1];
        if (t.number[s] == 0) {
            t.number[s] = t.low[s] = ++t.counter;
            t.edge[s] = g->first[s];
            t.stack[t.length++] = s;
        }
        if (t.edge[s] < g->first[s + 1]) {
            uint32_t to = g->to[t.edge[s]];
            if (t.number[to] == 0) {
                t.path[t.depth++] = to;
                continue; /* this edge is examined again after the state that it leads to is closed */
            }
            if (t.low[to] != UINT32_MAX && t.low[to] < t.low[s])
                t.low[s] = t.low[to];
            t.edge[s]++;
            continue;
        }
        t.depth--;
        if (t.low[s] == t.number[s])
            found = tarjan_close_component(&t, s);
    }
    free(t.number), free(t.low), free(t.edge), free(t.stack), free(t.path);
    return found;
}

/* Returns true if some interleaving never ends; all other properties are checked by this function. */
static inline bool explore_all_interleavings(struct limits limits)
{
    struct world begin = world_init(&limits);
    struct explore e;
    ends = sends = 0;
    the_edges = (struct edges){0};
    explore_open(&e, sizeof(begin));
    if (!explore_run(&e, &begin, explore_check_state))
        explore_print_trail(&e, e.current);
    uint32_t circle = tarjan_find_endless(e.count);
    printf("%u nodes, %u rails, to %u %u %u, %u messages, %u timeouts, ratio %g: %u states, %u events, %u "
           "ends%s\n",
           limits.nodes, limits.rails, limits.to[0], limits.to[1], limits.to[2], limits.messages,
           limits.timeouts, limits.ratio, e.count, the_edges.count, ends,
           circle == UINT32_MAX ? "" : ", and a circle without end");
    EXPECT(ends >= 1 && sends >= 1);
    if (circle != UINT32_MAX)
        explore_print_trail(&e, circle);
    explore_close(&e);
    free(the_edges.first), free(the_edges.to), free(the_edges.event);
    return circle != UINT32_MAX;
}

#endif
