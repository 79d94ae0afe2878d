/* test_rails_join.c: both ends of a connection pair their rails in the same way, and join, lose and rejoin
 * a pair in every order of events.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "explore.h"
#include "net/rails/joint.h"
#include "net/rails/pair.h"
#include "test.h"

static void test_rails_pair_by_network(void)
{
    struct pair_net a[] = {{1, 0}, {2, 0}, {2, 1}}, b[] = {{1, 0}, {3, 0}, {2, 0}};
    struct pair p[RAILS_MAX];
    EXPECT_EQ(pair_rails(a, 3, b, 3, p), 2);
    EXPECT(p[0].a == 0 && p[0].b == 0 && p[1].a == 1 && p[1].b == 2);
}

/* The end with fewer rails uses each of them several times. */
static void test_unequal_rail_counts(void)
{
    struct pair_net a[] = {{1, 0}, {1, 0}, {1, 0}}, b[] = {{1, 0}, {1, 0}};
    struct pair p[RAILS_MAX], q[RAILS_MAX];
    EXPECT_EQ(pair_rails(a, 3, b, 2, p), 3);
    EXPECT(p[1].a == 1 && p[1].b == 1 && p[2].a == 2 && p[2].b == 0);
    EXPECT_EQ(pair_rails(b, 1, a, 3, q), 3);
    EXPECT(q[1].a == 0 && q[1].b == 1 && q[2].a == 0 && q[2].b == 2);
}

/* The primary rails are joined even if their networks differ; other rails are joined only within one
 * network. */
static void test_primary_rails_always_pair(void)
{
    struct pair_net a[] = {{1, 0}, {5, 0}}, b[] = {{2, 0}, {6, 0}};
    struct pair p[RAILS_MAX];
    EXPECT_EQ(pair_rails(a, 2, b, 2, p), 1);
    EXPECT(p[0].a == 0 && p[0].b == 0);
}

static void test_pairs_are_limited(void)
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

enum { ENDS = 2, MESSAGES_MAX = 12, FAILURES_MAX = 3 };

/* One end: `number` is that of its queue pair, `to` that of the peer's queue pair to which it is
 * connected. */
struct end {
    struct joint joint;
    uint32_t number, to;
};

struct world {
    struct end ends[ENDS];
    struct {
        struct joint_said said;
        uint32_t number;
    } in_flight[ENDS][MESSAGES_MAX]; /* messages in flight to this end */
    uint32_t nin_flight[ENDS];
    uint32_t qps_created; /* queue pairs created so far */
    uint32_t failures;
};

static struct explore space;
static bool fits_in_flight;

static void send_report(struct world *w, int from)
{
    int to = 1 - from;
    if (w->nin_flight[to] == MESSAGES_MAX) {
        fits_in_flight = false;
        return;
    }
    struct joint_said said = joint_report(&w->ends[from].joint),
                      *line = &w->in_flight[to][w->nin_flight[to]].said;
    line->generation = said.generation; /* copied by member, without padding: states compare byte by byte */
    line->made = said.made;
    line->joined = said.joined;
    w->in_flight[to][w->nin_flight[to]].number = w->ends[from].number;
    w->nin_flight[to]++;
}

static void apply_actions(struct world *w, int who, unsigned actions, uint32_t peer)
{
    struct end *e = &w->ends[who];
    if (actions & JOINT_DO_DROP) {
        EXPECT(e->number != 0);
        e->number = e->to = 0;
    }
    if (actions & JOINT_DO_SETTLE) /* the peer is not connected to the queue pair that this end dropped */
        EXPECT(w->ends[1 - who].to == 0 || w->ends[1 - who].to == e->number ||
               w->ends[1 - who].joint.generation != e->joint.generation - 1);
    if (actions & JOINT_DO_CREATE) {
        EXPECT(e->number == 0);
        e->number = ++w->qps_created;
    }
    if (actions & JOINT_DO_CONNECT) {
        EXPECT(e->number != 0 && e->to == 0 && peer != 0);
        e->to = peer;
    }
    if (actions &
        JOINT_DO_USE) /* the peer is connected to this end, unless its queue pair failed meanwhile */
        EXPECT(w->ends[1 - who].to == e->number ||
               (int32_t)(w->ends[1 - who].joint.generation - e->joint.generation) > 0);
    if (actions & JOINT_DO_SAY)
        send_report(w, who);
}

static void add_successors(struct explore *e, const struct world *w)
{
    for (int who = 0; who < ENDS; who++) {
        struct world next = *w;
        if (w->nin_flight[who] > 0) {
            struct joint_said said = w->in_flight[who][0].said;
            uint32_t number = w->in_flight[who][0].number;
            memmove(&next.in_flight[who][0], &next.in_flight[who][1],
                    sizeof(next.in_flight[who]) - sizeof(next.in_flight[who][0]));
            memset(&next.in_flight[who][--next.nin_flight[who]], 0, sizeof(next.in_flight[who][0]));
            apply_actions(&next, who, joint_receive(&next.ends[who].joint, &said), number);
            explore_add(e, &next, "a message arrives");
        }
        if (w->failures == FAILURES_MAX)
            continue;
        next = *w;
        next.failures++;
        apply_actions(&next, who, joint_separate(&next.ends[who].joint), 0);
        explore_add(e, &next, "a queue pair fails");
        next = *w;
        next.failures++;
        apply_actions(&next, who, joint_set_wanted(&next.ends[who].joint, !w->ends[who].joint.wanted), 0);
        explore_add(e, &next, "a port goes down or comes up");
    }
}

static void test_every_order_ends_joined(void)
{
    struct world first;
    uint32_t rest = 0;
    memset(&first, 0, sizeof(first));
    for (int who = 0; who < ENDS; who++)
        first.ends[who].joint.wanted = true;
    send_report(&first, 0); /* either one end begins or both at once */
    fits_in_flight = true;
    explore_open(&space, sizeof(first));
    explore_add(&space, &first, "one end begins");
    send_report(&first, 1);
    explore_add(&space, &first, "both ends begin");
    for (space.current = 0; space.current < space.count; space.current++) {
        struct world w = *(const struct world *)explore_state(&space, space.current);
        add_successors(&space, &w);
        if (w.nin_flight[0] || w.nin_flight[1])
            continue;
        rest++;
        const struct end *a = &w.ends[0], *b = &w.ends[1];
        bool both = a->joint.wanted && b->joint.wanted;
        if (both) { /* no message is in flight: both ends must be joined */
            EXPECT(a->joint.state == JOINT_USED && b->joint.state == JOINT_USED);
            EXPECT(a->to == b->number && b->to == a->number);
        } else {
            EXPECT(a->joint.state != JOINT_USED && b->joint.state != JOINT_USED);
        }
        EXPECT(!a->joint.unsettled && !b->joint.unsettled);
    }
    EXPECT(fits_in_flight);
    EXPECT(rest > 4 && space.count > 1000);
    printf("%u states\n", space.count);
    explore_close(&space);
}

int main(void)
{
    TEST_RUN(test_rails_pair_by_network);
    TEST_RUN(test_unequal_rail_counts);
    TEST_RUN(test_primary_rails_always_pair);
    TEST_RUN(test_pairs_are_limited);
    TEST_RUN(test_every_order_ends_joined);
    return test_result();
}
