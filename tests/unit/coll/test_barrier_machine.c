/* test_barrier_machine.c: every order of events of consecutive barriers of ranks on several nodes, with
 * delayed writes between node leaders, while barrier numbers wrap around: no rank leaves a barrier before
 * every rank has entered it, and no rank waits forever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "coll/barrier/barrier_machine.h"

#include "net/explore.h"
#include "test.h"

enum { RANKS = 6, LEADERS = 4, PARTNERS_MAX = 4, IN_FLIGHT_MAX = 2, BARRIERS = 3, FIRST_TURN = 254 };

struct rank_state {
    uint8_t stage, round, turn;
    uint8_t entered, departed; /* number of barriers entered and left */
};

/* All members are bytes, so that states compare byte by byte. */
struct state {
    struct rank_state rank[RANKS];
    uint8_t report[RANKS], release[LEADERS];                 /* flags in a node's memory */
    uint8_t remote_flag[LEADERS][PARTNERS_MAX];              /* flags that leaders of other nodes write */
    uint8_t in_flight[LEADERS][PARTNERS_MAX][IN_FLIGHT_MAX]; /* values in flight to each flag, oldest first */
    uint8_t nin_flight[LEADERS][PARTNERS_MAX];               /* number of values in flight */
};

static struct {
    int ranks, leaders, n;
    int node_of[RANKS], leader_of[LEADERS]; /* node by rank; leading rank by node */
    struct barrier_partner partner[LEADERS][PARTNERS_MAX];
    int partners, rounds;
    bool reorders_writes; /* defective network: writes of one rank to one flag overtake each other */
    const char *wrong;
} job;

static bool is_leader(int r)
{
    return job.leader_of[job.node_of[r]] == r;
}

/* Places per_node[i] - '0' ranks on node i. */
static void place_ranks_on_nodes(const char *per_node, int n)
{
    job.ranks = job.leaders = 0;
    job.n = n;
    job.wrong = NULL;
    for (; *per_node; per_node++, job.leaders++) {
        job.leader_of[job.leaders] = job.ranks;
        for (int i = 0; i < *per_node - '0'; i++)
            job.node_of[job.ranks++] = job.leaders;
    }
    for (int l = 0; l < job.leaders; l++)
        job.partners = barrier_partners(l, job.leaders, n, job.partner[l], PARTNERS_MAX, &job.rounds);
}

static bool can_step(const struct state *s, int r)
{
    const int node = job.node_of[r];
    const struct rank_state *me = &s->rank[r];
    bool all = true;
    if (me->stage == BARRIER_GATHER)
        for (int i = 0; i < job.ranks; i++)
            all &= job.node_of[i] != node || i == r || barrier_flag_is_set(s->report[i], me->turn);
    else if (me->stage == BARRIER_LEADERS)
        for (int p = 0; p < job.partners; p++)
            all &= job.partner[node][p].round != me->round ||
                   barrier_flag_is_set(s->remote_flag[node][p], me->turn);
    else
        all = barrier_flag_is_set(s->release[node], me->turn);
    return all;
}

static void start_flag_writes(struct state *s, int r)
{
    const int node = job.node_of[r];
    for (int p = 0; p < job.partners; p++) {
        const int to = job.partner[node][p].to;
        if (job.partner[node][p].round != s->rank[r].round)
            continue;
        if (s->nin_flight[to][p] == IN_FLIGHT_MAX)
            job.wrong = "more than IN_FLIGHT_MAX writes in flight to one flag";
        else
            s->in_flight[to][p][s->nin_flight[to][p]++] = s->rank[r].turn;
    }
}

static bool rank_is_missing(const struct state *s, int barrier)
{
    for (int r = 0; r < job.ranks; r++)
        if (s->rank[r].entered < barrier)
            return true;
    return false;
}

/* Executes one step of rank r; returns false if the rank waits. */
static bool step_rank(struct state *s, int r)
{
    struct rank_state *me = &s->rank[r];
    bool alone = true;
    for (int i = 0; i < job.ranks; i++)
        alone &= i == r || job.node_of[i] != job.node_of[r];
    const struct barrier_machine_shape shape = {.leads = is_leader(r), .alone = alone, .rounds = job.rounds};
    if (me->stage == BARRIER_IDLE) {
        if (me->departed == BARRIERS)
            return false;
        me->entered++;
    }
    struct barrier_machine m = {(enum barrier_machine_stage)me->stage, (int8_t)me->round, me->turn};
    const enum barrier_machine_action action = barrier_machine_next(&m, &shape, can_step(s, r));
    me->stage = (uint8_t)m.stage;
    me->round = (uint8_t)m.round;
    me->turn = m.turn;
    if (action == BARRIER_REPORT)
        s->report[r] = m.turn;
    else if (action == BARRIER_RELEASE_NODE)
        s->release[job.node_of[r]] = m.turn;
    else if (action == BARRIER_ROUND)
        start_flag_writes(s, r);
    else if (action == BARRIER_DONE && rank_is_missing(s, ++me->departed))
        job.wrong = "a rank left a barrier that another rank has not entered";
    return action != BARRIER_WAIT;
}

static void deliver_flag_write(struct state *s, int to, int p, int which)
{
    uint8_t *queue = s->in_flight[to][p];
    s->remote_flag[to][p] = queue[which];
    for (int i = which; i + 1 < IN_FLIGHT_MAX; i++)
        queue[i] = queue[i + 1];
    queue[IN_FLIGHT_MAX - 1] = 0;
    s->nin_flight[to][p]--;
}

static bool expand_state(struct explore *e, const void *at)
{
    bool moved = false, over = true;
    for (int r = 0; r < job.ranks; r++) {
        struct state s = *(const struct state *)at;
        over &= s.rank[r].departed == BARRIERS;
        if (!step_rank(&s, r))
            continue;
        moved = true;
        explore_add(e, &s, "a rank continues");
    }
    for (int to = 0; to < job.leaders; to++)
        for (int p = 0; p < job.partners; p++) {
            struct state s = *(const struct state *)at;
            const int nin_flight = s.nin_flight[to][p];
            for (int i = 0; i < (job.reorders_writes ? nin_flight : nin_flight > 0);
                 i++, s = *(const struct state *)at) {
                deliver_flag_write(&s, to, p, i);
                moved = true;
                explore_add(e, &s, "a write arrives");
            }
        }
    if (!job.wrong && !moved && !over)
        job.wrong = "all ranks wait forever";
    return !job.wrong;
}

static bool report_violation(void)
{
    if (job.wrong && !job.reorders_writes)
        printf("%s:\n", job.wrong);
    return job.wrong && !job.reorders_writes;
}

static uint32_t explore_job(void)
{
    struct state first;
    memset(&first, 0, sizeof(first));
    for (int r = 0; r < job.ranks; r++)
        first.rank[r].turn = first.report[r] = FIRST_TURN;
    memset(first.release, FIRST_TURN, sizeof(first.release));
    memset(first.remote_flag, FIRST_TURN, sizeof(first.remote_flag));
    return explore_all_states(sizeof(first), &first, expand_state, report_violation);
}

static void test_no_early_exit_or_deadlock(void)
{
    static const struct {
        const char *per_node;
        int n;
    } jobs[] = {{"11", 1},  {"111", 1}, {"111", 2}, {"22", 1},  {"31", 1},
                {"211", 1}, {"211", 2}, {"3", 1},   {"1111", 1}};
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        place_ranks_on_nodes(jobs[i].per_node, jobs[i].n);
        uint32_t states = explore_job();
        EXPECT(!job.wrong);
        EXPECT(states > 20);
    }
}

/* Writes of one rank to another must arrive in order; otherwise a flag could return to an old value. */
static void test_search_finds_reordering(void)
{
    place_ranks_on_nodes("1111", 1);
    job.reorders_writes = true;
    explore_job();
    job.reorders_writes = false;
    EXPECT(job.wrong != NULL);
}

static void test_partners_are_mutual(void)
{
    struct barrier_partner all[16][64], few[1];
    int rounds, count = 0;
    for (int leaders = 1; leaders <= 16; leaders++)
        for (int n = 1; n <= 8; n++) {
            for (int l = 0; l < leaders; l++)
                count = barrier_partners(l, leaders, n, all[l], 64, &rounds);
            for (int l = 0; l < leaders; l++)
                for (int p = 0; p < count; p++)
                    EXPECT_EQ(all[all[l][p].to][p].from, l);
        }
    EXPECT_EQ(barrier_partners(0, 3, 1, few, 1, &rounds), -1);
}

enum { PLAN_LEADERS_MAX = 20 };

/* Simulates rounds `from` to `to` - 1 of a plan. Bit k of known[l]: leader l knows that leader k has
 * entered. Checks that every flag has one writer, in the same round. */
static void simulate_plan_rounds(struct barrier_partner plan[][64], const int *count, int leaders, int from,
                                 int to, uint32_t *known)
{
    for (int round = from; round < to; round++) {
        uint32_t before[PLAN_LEADERS_MAX];
        memcpy(before, known, sizeof(before));
        for (int l = 0; l < leaders; l++)
            for (int p = 0; p < count[l]; p++) {
                const struct barrier_partner *at = &plan[l][p];
                int writers = 0;
                if (at->round != round || at->from < 0)
                    continue;
                for (int q = 0; q < count[at->from]; q++)
                    writers += plan[at->from][q].to == l && plan[at->from][q].round == round;
                EXPECT_EQ(writers, 1);
                known[l] |= before[at->from];
            }
    }
}

static void init_known_leaders(uint32_t *known)
{
    for (int l = 0; l < PLAN_LEADERS_MAX; l++)
        known[l] = 1u << l;
}

static void test_plans_reach_all_leaders(void)
{
    struct barrier_partner plan[PLAN_LEADERS_MAX][64], few[1];
    int count[PLAN_LEADERS_MAX], rounds = 0;
    uint32_t known[PLAN_LEADERS_MAX];
    for (int leaders = 2; leaders <= PLAN_LEADERS_MAX; leaders++) {
        const uint32_t all = (1u << leaders) - 1;
        for (int l = 0; l < leaders; l++)
            count[l] = barrier_partners_pairs(l, leaders, plan[l], 64, &rounds);
        init_known_leaders(known);
        simulate_plan_rounds(plan, count, leaders, 0, rounds, known);
        for (int l = 0; l < leaders; l++)
            EXPECT_EQ(known[l], all);
        for (int l = 0; l < leaders; l++)
            count[l] = barrier_partners_star(l, leaders, 0, plan[l], 64);
        init_known_leaders(known);
        known[0] = all;
        simulate_plan_rounds(plan, count, leaders, 0, 1, known);
        for (int l = 0; l < leaders; l++)
            EXPECT_EQ(known[l], all);
    }
    EXPECT_EQ(barrier_partners_pairs(0, 8, few, 1, &rounds), -1);
    EXPECT_EQ(barrier_partners_star(0, 8, 0, few, 1), -1);
}

/* A parent sets its flag one round after its children set theirs; the simulation is repeated as often as
 * the tree is deep. */
static void test_trees_reach_all_leaders(void)
{
    struct barrier_partner plan[PLAN_LEADERS_MAX][64], few[1];
    int count[PLAN_LEADERS_MAX];
    uint32_t known[PLAN_LEADERS_MAX];
    for (int leaders = 2; leaders <= PLAN_LEADERS_MAX; leaders++)
        for (int fan = 1; fan <= 8; fan++) {
            init_known_leaders(known);
            for (int l = 0; l < leaders; l++) {
                count[l] = barrier_tree(l, leaders, fan, 3, plan[l], 64);
                EXPECT(count[l] >= 1);
                for (int p = 0; p < count[l]; p++)
                    EXPECT_EQ(plan[l][p].round, plan[l][p].from >= 0 ? 3 : 4);
            }
            for (int l = leaders - 1; l > 0; l--) { /* children have higher numbers than their parents */
                const int parent = (l - 1) / fan;
                int flags = 0;
                for (int p = 0; p < count[parent]; p++)
                    flags += plan[parent][p].from == l;
                EXPECT_EQ(flags, 1);
                known[parent] |= known[l];
            }
            EXPECT_EQ(known[0], (1u << leaders) - 1);
        }
    EXPECT_EQ(barrier_tree(0, 8, 4, 0, few, 1), -1);
}

int main(void)
{
    TEST_RUN(test_no_early_exit_or_deadlock);
    TEST_RUN(test_search_finds_reordering);
    TEST_RUN(test_partners_are_mutual);
    TEST_RUN(test_plans_reach_all_leaders);
    TEST_RUN(test_trees_reach_all_leaders);
    return test_result();
}
