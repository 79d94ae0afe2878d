/* test_rails_join.c: both ends of a connection pair their rails alike, and join, lose and rejoin a pair in every order
 * of events.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "explore.h"
#include "net/rails/joint.h"
#include "net/rails/pair.h"
#include "test.h"

static void rails_meet_by_network(void)
{
    struct pair_net a[] = {{1, 0}, {2, 0}, {2, 1}}, b[] = {{1, 0}, {3, 0}, {2, 0}};
    struct pair p[RAILS_MAX];
    EXPECT_EQ(pair_rails(a, 3, b, 3, p), 2);
    EXPECT(p[0].a == 0 && p[0].b == 0 && p[1].a == 1 && p[1].b == 2);
}

/* The end with fewer rails uses them several times. */
static void numbers_may_differ(void)
{
    struct pair_net a[] = {{1, 0}, {1, 0}, {1, 0}}, b[] = {{1, 0}, {1, 0}};
    struct pair p[RAILS_MAX], q[RAILS_MAX];
    EXPECT_EQ(pair_rails(a, 3, b, 2, p), 3);
    EXPECT(p[1].a == 1 && p[1].b == 1 && p[2].a == 2 && p[2].b == 0);
    EXPECT_EQ(pair_rails(b, 1, a, 3, q), 3);
    EXPECT(q[1].a == 0 && q[1].b == 1 && q[2].a == 0 && q[2].b == 2);
}

/* The homes are joined whatever their networks are; no other rail is joined where no networks match. */
static void homes_always(void)
{
    struct pair_net a[] = {{1, 0}, {5, 0}}, b[] = {{2, 0}, {6, 0}};
    struct pair p[RAILS_MAX];
    EXPECT_EQ(pair_rails(a, 2, b, 2, p), 1);
    EXPECT(p[0].a == 0 && p[0].b == 0);
}

static void never_too_many(void)
{
    struct pair_net a[RAILS_MAX] = {{0}}, b[RAILS_MAX] = {{0}};
    struct pair p[RAILS_MAX];
    EXPECT_EQ(pair_rails(a, RAILS_MAX, b, RAILS_MAX, p), RAILS_MAX);
    bool used[RAILS_MAX] = {false};
    for (int k = 0; k < RAILS_MAX; k++)
        used[p[k].a] = true;
    for (int k = 0; k < RAILS_MAX; k++)
        EXPECT(used[k]);
}

/* ---- every order of events ---- */

enum { ENDS = 2, LINE = 12, TROUBLES = 3 };

/* One end: `number` is that of its queue pair, `to` that of the peer's queue pair to which it is connected. */
struct end {
    struct joint joint;
    uint32_t number, to;
};

struct world {
    struct end ends[ENDS];
    struct {
        struct joint_said said;
        uint32_t number;
    } line[ENDS][LINE]; /* on their way to this end */
    uint32_t lines[ENDS];
    uint32_t made; /* queue pairs so far */
    uint32_t troubles;
};

static struct explore space;
static bool sound;

static void rails_join_send(struct world *w, int from)
{
    int to = 1 - from;
    if (w->lines[to] == LINE) {
        sound = false;
        return;
    }
    struct joint_said said = joint_report(&w->ends[from].joint), *line = &w->line[to][w->lines[to]].said;
    line->generation = said.generation; /* not its padding: states compare byte by byte */
    line->made = said.made;
    line->joined = said.joined;
    w->line[to][w->lines[to]].number = w->ends[from].number;
    w->lines[to]++;
}

static void rails_join_act(struct world *w, int who, unsigned actions, uint32_t peer)
{
    struct end *e = &w->ends[who];
    if (actions & JOINT_DO_DROP) {
        EXPECT(e->number != 0);
        e->number = e->to = 0;
    }
    if (actions & JOINT_DO_SETTLE) /* nothing is connected to what this end has dropped */
        EXPECT(w->ends[1 - who].to == 0 || w->ends[1 - who].to == e->number ||
               w->ends[1 - who].joint.generation != e->joint.generation - 1);
    if (actions & JOINT_DO_CREATE) {
        EXPECT(e->number == 0);
        e->number = ++w->made;
    }
    if (actions & JOINT_DO_CONNECT) {
        EXPECT(e->number != 0 && e->to == 0 && peer != 0);
        e->to = peer;
    }
    if (actions &
        JOINT_DO_USE) /* the other end is connected to this one, unless it has been lost meanwhile */
        EXPECT(w->ends[1 - who].to == e->number ||
               (int32_t)(w->ends[1 - who].joint.generation - e->joint.generation) > 0);
    if (actions & JOINT_DO_SAY)
        rails_join_send(w, who);
}

static void test_successors(struct explore *e, const struct world *w)
{
    for (int who = 0; who < ENDS; who++) {
        struct world next = *w;
        if (w->lines[who] > 0) {
            struct joint_said said = w->line[who][0].said;
            uint32_t number = w->line[who][0].number;
            memmove(&next.line[who][0], &next.line[who][1],
                    sizeof(next.line[who]) - sizeof(next.line[who][0]));
            memset(&next.line[who][--next.lines[who]], 0, sizeof(next.line[who][0]));
            rails_join_act(&next, who, joint_receive(&next.ends[who].joint, &said), number);
            explore_add(e, &next, "a message arrives");
        }
        if (w->troubles == TROUBLES)
            continue;
        next = *w;
        next.troubles++;
        rails_join_act(&next, who, joint_separate(&next.ends[who].joint), 0);
        explore_add(e, &next, "a queue pair fails");
        next = *w;
        next.troubles++;
        rails_join_act(&next, who, joint_set_wanted(&next.ends[who].joint, !w->ends[who].joint.wanted), 0);
        explore_add(e, &next, "a port goes down or comes up");
    }
}

static void every_order_ends_joined(void)
{
    struct world first;
    uint32_t rest = 0;
    memset(&first, 0, sizeof(first));
    for (int who = 0; who < ENDS; who++)
        first.ends[who].joint.wanted = true;
    rails_join_send(&first, 0); /* one begins, or both at once */
    sound = true;
    explore_open(&space, sizeof(first));
    explore_add(&space, &first, "one begins");
    rails_join_send(&first, 1);
    explore_add(&space, &first, "both begin");
    for (space.at = 0; space.at < space.count; space.at++) {
        struct world w = *(const struct world *)explore_state(&space, space.at);
        test_successors(&space, &w);
        if (w.lines[0] || w.lines[1])
            continue;
        rest++;
        const struct end *a = &w.ends[0], *b = &w.ends[1];
        bool both = a->joint.wanted && b->joint.wanted;
        if (both) { /* nothing is left to be said: then they are joined */
            EXPECT(a->joint.state == JOINT_USED && b->joint.state == JOINT_USED);
            EXPECT(a->to == b->number && b->to == a->number);
        } else {
            EXPECT(a->joint.state != JOINT_USED && b->joint.state != JOINT_USED);
        }
        EXPECT(!a->joint.unsettled && !b->joint.unsettled);
    }
    EXPECT(sound);
    EXPECT(rest > 4 && space.count > 1000);
    printf("%u states\n", space.count);
    explore_close(&space);
}

int main(void)
{
    TEST_RUN(rails_meet_by_network);
    TEST_RUN(numbers_may_differ);
    TEST_RUN(homes_always);
    TEST_RUN(never_too_many);
    TEST_RUN(every_order_ends_joined);
    return test_result();
}
