/* trial_list.c: the barriers that may be worth trying on a shape, with the time that the LogP model predicts for each.
 * The parameters are round numbers near those that `fishplate bench logp --quick` and `bench barrier` measured on two
 * x86-64 cores: they only have to rank the candidates. Where ranks share processors, a round takes until every rank has
 * been scheduled, which is far longer than any message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "coll/model.h"
#include "coll/trial.h"

static const struct model_logp message = {.send = 0.40, .receive = 0.30, .gap = 0.30, .latency = 0.80},
                               message_turns = {.send = 1.0, .receive = 1.0, .gap = 1.0, .latency = 15},
                               write = {.send = 0.15, .receive = 0.10, .gap = 0.15, .latency = 0.40},
                               write_turns = {.send = 0.5, .receive = 0.2, .gap = 0.5, .latency = 15};
#define SWITCH_US       3.0
#define SWITCH_US_TURNS 18.0
#define WIRES_US        1.0
#define WIRES_US_TURNS  16.0
#define NODE_US         0.4 /* flags of one node, to its leader and back */
#define NODE_US_TURNS   10.0

static const struct candidate {
    const char *algorithm;
    int n;
    bool by_node, named;
} list[] = {
    {"rdma", 0, false, false}, /* the rules' choice */
    {"rdma", 1, false, true},   {"rdma", 2, false, true},          {"rdma", 3, false, true},
    {"switch", 0, false, true}, {"dissemination", 0, true, true},  {"nway", 2, true, true},
    {"nway", 3, true, true},    {"dissemination", 0, false, true}, {"nway", 2, false, true},
    {"nway", 3, false, true},   {"nwise", 3, false, true},         {"wires", 0, false, true},
};
_Static_assert(COUNT_OF(list) <= PICK_CANDIDATES, "more candidates than can be picked from");

/* Without being told to, nodes whose ranks take turns meet in the switch if there is one (written_open.c). */
static bool rule_switches(const struct trial_shape *s)
{
    return s->turns && s->can_switch;
}

static double predict(const struct trial_shape *s, const struct candidate *c, const struct coll_algorithm *a)
{
    const bool flat = !c->by_node && !(a->needs & NEED_NODES);
    const double within = flat || s->most == 1 ? 0 : s->turns ? NODE_US_TURNS : NODE_US;
    const int parameter[COLL_PARAMETERS] = {c->n};
    if (strcmp(c->algorithm, "wires") == 0)
        return within + (s->turns ? WIRES_US_TURNS : WIRES_US);
    if (strcmp(c->algorithm, "switch") == 0 || (!c->named && rule_switches(s)))
        return within + (s->turns ? SWITCH_US_TURNS : SWITCH_US);
    /* ... and by messages if there is none. */
    const bool writes = (a->needs & NEED_NODES) && (c->named || !s->turns);
    const struct model_logp *m =
        writes ? (s->turns ? &write_turns : &write) : (s->turns ? &message_turns : &message);
    return within + model_barrier_logp(m, a, parameter, flat ? s->ranks : s->nodes);
}

static bool is_worth(const struct trial_shape *s, const struct candidate *c, bool first)
{
    if (first)
        return true;
    if (strcmp(c->algorithm, "switch") == 0)
        return s->can_switch && !rule_switches(s);
    if (strcmp(c->algorithm, "wires") == 0)
        return s->can_wire;
    if (strcmp(c->algorithm, "rdma") == 0 && c->n == 1 && !s->turns)
        return false; /* the rules' choice again */
    const int meet = c->by_node || strcmp(c->algorithm, "rdma") == 0 ? s->nodes : s->ranks;
    return c->n < meet; /* more partners than there are */
}

int trial_candidates(const struct trial_shape *s, struct trial_candidate *out)
{
    int n = 0;
    for (size_t i = 0; i < COUNT_OF(list); i++) {
        const struct candidate *c = &list[i];
        const struct coll_algorithm *a = algorithm_find(COLL_BARRIER, c->algorithm);
        if (!a || !is_worth(s, c, i == 0))
            continue;
        out[n].choice = (struct coll_choice){
            .algorithm = a, .parameter = {c->n}, .named = c->named, .by_node = c->by_node};
        out[n++].predicted = predict(s, c, a);
    }
    return n;
}

const char *trial_rule_name(const struct trial_shape *s)
{
    return rule_switches(s) ? "switch" : s->turns ? "node+dissemination" : "rdma";
}

void trial_name(const struct coll_choice *choice, char *out, size_t size)
{
    const struct coll_algorithm *a = choice->algorithm;
    int used = snprintf(out, size, "%s%s", choice->by_node ? "node+" : "", a->name);
    if (choice->parameter[0] && a->parameter[0].name && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, ":%s=%d", a->parameter[0].name, choice->parameter[0]);
}
