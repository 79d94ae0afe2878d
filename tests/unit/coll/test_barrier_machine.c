/* test_barrier_machine.c: every order of events of a few barriers in a row: ranks on nodes, writes between leaders that arrive late. Nobody
 * leaves a barrier that somebody has not entered, and nobody waits for ever. The numbers of barriers begin again meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "coll/barrier/barrier_machine.h"

#include "net/explore.h"
#include "test.h"

enum { RANKS = 6, LEADERS = 4, PLACES = 4, FLYING = 2, BARRIERS = 3, FIRST_TURN = 254 };

struct one {
    uint8_t stage, round, turn;
    uint8_t entered, left; /* barriers */
};

/* A byte for everything, so that states compare. */
struct state {
    struct one rank[RANKS];
    uint8_t report[RANKS], release[LEADERS]; /* flags in a node's memory */
    uint8_t crossed[LEADERS][PLACES];        /* flags that are written from other nodes */
    uint8_t flying[LEADERS][PLACES][FLYING]; /* writes to them under way, ... */
    uint8_t flights[LEADERS][PLACES];        /* ... their number, in order */
};

static struct {
    int ranks, leaders, n;
    int node_of[RANKS], leader_of[LEADERS]; /* by node */
    struct barrier_partner partner[LEADERS][PLACES];
    int partners, rounds;
    bool disordered; /* a wrong network: writes of one rank to one flag overtake each other */
    const char *wrong;
} job;

static bool barrier_machine_leads(int r)
{
    return job.leader_of[job.node_of[r]] == r;
}

/* Places `per_node` ranks on each node. */
static void job_make(const char *per_node, int n)
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
        job.partners = barrier_partners(l, job.leaders, n, job.partner[l], PLACES, &job.rounds);
}

static bool barrier_machine_ready(const struct state *s, int r)
{
    const int node = job.node_of[r];
    const struct one *me = &s->rank[r];
    bool all = true;
    if (me->stage == BARRIER_GATHER)
        for (int i = 0; i < job.ranks; i++)
            all &= job.node_of[i] != node || i == r || barrier_flag_is_set(s->report[i], me->turn);
    else if (me->stage == BARRIER_LEADERS)
        for (int p = 0; p < job.partners; p++)
            all &=
                job.partner[node][p].round != me->round || barrier_flag_is_set(s->crossed[node][p], me->turn);
    else
        all = barrier_flag_is_set(s->release[node], me->turn);
    return all;
}

static void barrier_machine_fly(struct state *s, int r)
{
    const int node = job.node_of[r];
    for (int p = 0; p < job.partners; p++) {
        const int to = job.partner[node][p].to;
        if (job.partner[node][p].round != s->rank[r].round)
            continue;
        if (s->flights[to][p] == FLYING)
            job.wrong = "more writes under way to one flag than there can be";
        else
            s->flying[to][p][s->flights[to][p]++] = s->rank[r].turn;
    }
}

static bool somebody_is_missing(const struct state *s, int barrier)
{
    for (int r = 0; r < job.ranks; r++)
        if (s->rank[r].entered < barrier)
            return true;
    return false;
}

/* One step of rank r; false when it waits. */
static bool barrier_machine_step(struct state *s, int r)
{
    struct one *me = &s->rank[r];
    bool alone = true;
    for (int i = 0; i < job.ranks; i++)
        alone &= i == r || job.node_of[i] != job.node_of[r];
    const struct barrier_machine_shape shape = {
        .leads = barrier_machine_leads(r), .alone = alone, .rounds = job.rounds};
    if (me->stage == BARRIER_IDLE) {
        if (me->left == BARRIERS)
            return false;
        me->entered++;
    }
    struct barrier_machine m = {(enum barrier_machine_stage)me->stage, (int8_t)me->round, me->turn};
    const enum barrier_machine_action action = barrier_machine_next(&m, &shape, barrier_machine_ready(s, r));
    me->stage = (uint8_t)m.stage;
    me->round = (uint8_t)m.round;
    me->turn = m.turn;
    if (action == BARRIER_REPORT)
        s->report[r] = m.turn;
    else if (action == BARRIER_RELEASE_NODE)
        s->release[job.node_of[r]] = m.turn;
    else if (action == BARRIER_ROUND)
        barrier_machine_fly(s, r);
    else if (action == BARRIER_DONE && somebody_is_missing(s, ++me->left))
        job.wrong = "a rank left a barrier that another has not entered";
    return action != BARRIER_WAIT;
}

static void barrier_machine_land(struct state *s, int to, int p, int which)
{
    uint8_t *queue = s->flying[to][p];
    s->crossed[to][p] = queue[which];
    for (int i = which; i + 1 < FLYING; i++)
        queue[i] = queue[i + 1];
    queue[FLYING - 1] = 0;
    s->flights[to][p]--;
}

static bool barrier_machine_poll(struct explore *e, const void *at)
{
    bool moved = false, over = true;
    for (int r = 0; r < job.ranks; r++) {
        struct state s = *(const struct state *)at;
        over &= s.rank[r].left == BARRIERS;
        if (!barrier_machine_step(&s, r))
            continue;
        moved = true;
        explore_add(e, &s, "a rank goes on");
    }
    for (int to = 0; to < job.leaders; to++)
        for (int p = 0; p < job.partners; p++) {
            struct state s = *(const struct state *)at;
            const int flights = s.flights[to][p];
            for (int i = 0; i < (job.disordered ? flights : flights > 0);
                 i++, s = *(const struct state *)at) {
                barrier_machine_land(&s, to, p, i);
                moved = true;
                explore_add(e, &s, "a write arrives");
            }
        }
    if (!job.wrong && !moved && !over)
        job.wrong = "everybody waits";
    return !job.wrong;
}

static bool barrier_machine_unexpected(void)
{
    if (job.wrong && !job.disordered)
        printf("%s:\n", job.wrong);
    return job.wrong && !job.disordered;
}

static uint32_t explore_job(void)
{
    struct state first;
    memset(&first, 0, sizeof(first));
    for (int r = 0; r < job.ranks; r++)
        first.rank[r].turn = first.report[r] = FIRST_TURN;
    memset(first.release, FIRST_TURN, sizeof(first.release));
    memset(first.crossed, FIRST_TURN, sizeof(first.crossed));
    return explore_every(sizeof(first), &first, barrier_machine_poll, barrier_machine_unexpected);
}

static void nobody_is_early_or_stuck(void)
{
    static const struct {
        const char *per_node;
        int n;
    } jobs[] = {{"11", 1},  {"111", 1}, {"111", 2}, {"22", 1},  {"31", 1},
                {"211", 1}, {"211", 2}, {"3", 1},   {"1111", 1}};
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        job_make(jobs[i].per_node, jobs[i].n);
        uint32_t states = explore_job();
        EXPECT(!job.wrong);
        EXPECT(states > 20);
    }
}

/* Writes of one rank to another must arrive in order: if they did not, a flag could go back. */
static void the_search_finds_what_is_wrong(void)
{
    job_make("1111", 1);
    job.disordered = true;
    explore_job();
    job.disordered = false;
    EXPECT(job.wrong != NULL);
}

static void partners_are_mutual(void)
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

enum { PLAN_LEADERS = 20 };

/* Runs the rounds `from` to before `to` of a plan: who has received of whom. Every flag has one writer, in the same round. */
static void run_plan(struct barrier_partner plan[][64], const int *count, int leaders, int from, int to,
                     uint32_t *known)
{
    for (int round = from; round < to; round++) {
        uint32_t before[PLAN_LEADERS];
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

static void begin_plan(uint32_t *known)
{
    for (int l = 0; l < PLAN_LEADERS; l++)
        known[l] = 1u << l;
}

static void plans_hear_of_all(void)
{
    struct barrier_partner plan[PLAN_LEADERS][64], few[1];
    int count[PLAN_LEADERS], rounds = 0;
    uint32_t known[PLAN_LEADERS];
    for (int leaders = 2; leaders <= PLAN_LEADERS; leaders++) {
        const uint32_t all = (1u << leaders) - 1;
        for (int l = 0; l < leaders; l++)
            count[l] = barrier_partners_pairs(l, leaders, plan[l], 64, &rounds);
        begin_plan(known);
        run_plan(plan, count, leaders, 0, rounds, known);
        for (int l = 0; l < leaders; l++)
            EXPECT_EQ(known[l], all);
        for (int l = 0; l < leaders; l++)
            count[l] = barrier_partners_star(l, leaders, 0, plan[l], 64);
        begin_plan(known);
        known[0] = all;
        run_plan(plan, count, leaders, 0, 1, known);
        for (int l = 0; l < leaders; l++)
            EXPECT_EQ(known[l], all);
    }
    EXPECT_EQ(barrier_partners_pairs(0, 8, few, 1, &rounds), -1);
    EXPECT_EQ(barrier_partners_star(0, 8, 0, few, 1), -1);
}

/* A parent sets its flag one round after its children set theirs; runs are repeated as often as the tree is deep. */
static void trees_hear_of_all(void)
{
    struct barrier_partner plan[PLAN_LEADERS][64], few[1];
    int count[PLAN_LEADERS];
    uint32_t known[PLAN_LEADERS];
    for (int leaders = 2; leaders <= PLAN_LEADERS; leaders++)
        for (int fan = 1; fan <= 8; fan++) {
            begin_plan(known);
            for (int l = 0; l < leaders; l++) {
                count[l] = barrier_tree(l, leaders, fan, 3, plan[l], 64);
                EXPECT(count[l] >= 1);
                for (int p = 0; p < count[l]; p++)
                    EXPECT_EQ(plan[l][p].round, plan[l][p].from >= 0 ? 3 : 4);
            }
            for (int l = leaders - 1; l > 0; l--) { /* children have higher numbers */
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
    TEST_RUN(nobody_is_early_or_stuck);
    TEST_RUN(the_search_finds_what_is_wrong);
    TEST_RUN(partners_are_mutual);
    TEST_RUN(plans_hear_of_all);
    TEST_RUN(trees_hear_of_all);
    return test_result();
}
