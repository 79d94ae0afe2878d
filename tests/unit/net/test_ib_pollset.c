/* test_ib_pollset.c: who is polled by RDMA ring: first come and by traffic, sending away without thrashing,
 * the three orders, members that leave, limits of 0, 1 and the most; and a long random run with the
 * invariants checked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/pollset.h"

#include "test.h"

enum { PEERS = 1000 };

/* A receiver with its connections: what the transport would keep. */
struct receiver {
    struct pollset set;
    uint32_t traffic[PEERS];
    bool in[PEERS], leaving[PEERS];
    uint32_t added, removed;
};

static struct receiver r;

static void begin(enum pollset_policy policy, enum pollset_order order, uint32_t limit)
{
    memset(&r, 0, sizeof(r));
    pollset_open(&r.set, policy, order, limit);
}

static uint32_t place_of(uint32_t id)
{
    for (uint32_t i = 0; i < r.set.count; i++)
        if (r.set.members[i].id == id)
            return i;
    return POLLSET_NONE;
}

static void gone(uint32_t id)
{
    pollset_remove_member(&r.set, id);
    r.in[id] = r.leaving[id] = false;
    EXPECT_EQ(place_of(id), POLLSET_NONE);
}

/* A frame through the completion queue. A member that is removed has gone at once when `prompt`. */
static struct pollset_change by_queue(uint32_t id, bool prompt)
{
    struct pollset_change change = pollset_count_frame(&r.set, id, &r.traffic[id]);
    if (change.add != POLLSET_NONE) {
        EXPECT_EQ(change.add, id);
        EXPECT(!r.in[id]);
        EXPECT_EQ(r.set.members[r.set.count - 1].id, id);
        r.in[id] = true;
        r.added++;
    }
    if (change.remove != POLLSET_NONE) {
        EXPECT(r.in[change.remove] && !r.leaving[change.remove] && change.remove != id);
        r.leaving[change.remove] = true;
        r.removed++;
        if (prompt)
            gone(change.remove);
    }
    return change;
}

/* A frame arrives, by ring or by queue. */
static void frame(uint32_t id)
{
    if (r.in[id])
        pollset_count_hit(&r.set, place_of(id));
    else
        by_queue(id, true);
}

static void frames(uint32_t first, uint32_t last, int each)
{
    for (int i = 0; i < each; i++)
        for (uint32_t id = first; id <= last; id++)
            frame(id);
}

static uint32_t members_among(uint32_t first, uint32_t last)
{
    uint32_t n = 0;
    for (uint32_t id = first; id <= last; id++)
        n += r.in[id];
    return n;
}

/* ---- who gets in ---- */

static void limit_of_none(void)
{
    for (int policy = POLLSET_FIRST; policy <= POLLSET_TRAFFIC; policy++) {
        begin(policy, POLLSET_CIRCULAR, 0);
        frames(0, 9, 1000);
        EXPECT_EQ(r.added + r.removed + r.set.count, 0);
        pollset_end_round(&r.set);
        EXPECT_EQ(r.set.next, 0);
    }
}

static void limit_of_one(void)
{
    begin(POLLSET_FIRST, POLLSET_SEQUENTIAL, 1);
    frames(3, 9, 1000);
    EXPECT_EQ(r.added, 1);
    EXPECT(r.in[3]);
    begin(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 1);
    frames(3, 9, 1000);
    EXPECT_EQ(r.added, 1);
    EXPECT_EQ(r.removed, 0);
}

static void more_than_the_most(void)
{
    for (int policy = POLLSET_FIRST; policy <= POLLSET_TRAFFIC; policy++) {
        begin(policy, POLLSET_PRIORITISED, UINT32_MAX);
        EXPECT_EQ(r.set.limit, POLLSET_MAX);
        frames(0, PEERS - 1, 2 * POLLSET_WORTH);
        EXPECT_EQ(r.set.count, POLLSET_MAX);
        EXPECT_EQ(r.added, POLLSET_MAX);
        EXPECT_EQ(r.removed, 0);
    }
}

static void first_come(void)
{
    begin(POLLSET_FIRST, POLLSET_SEQUENTIAL, 4);
    for (uint32_t id = 10; id < 20; id++)
        for (int i = 0; i < 3; i++) {
            struct pollset_change change =
                by_queue(id, true); /* members too: the notification is still on its way */
            EXPECT_EQ(change.add, id < 14 && i == 0 ? id : POLLSET_NONE);
        }
    frames(19, 19, 100000); /* however much another sends */
    EXPECT_EQ(r.removed, 0);
    for (uint32_t k = 0; k < 4; k++)
        EXPECT_EQ(r.set.members[pollset_round_place(&r.set, k)].id, 10 + k);
    gone(11); /* closed */
    gone(15); /* never was one */
    EXPECT_EQ(r.set.count, 3);
    EXPECT_EQ(by_queue(17, true).add, 17);
    EXPECT_EQ(by_queue(18, true).add, POLLSET_NONE);
}

static void a_few_frames_make_a_member(void)
{
    begin(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 4);
    for (int i = 1; i < POLLSET_WORTH; i++)
        EXPECT_EQ(by_queue(1, true).add, POLLSET_NONE);
    EXPECT_EQ(by_queue(1, true).add, 1);
    EXPECT_EQ(by_queue(1, true).add, POLLSET_NONE);
    /* What was long ago does not count: 15 frames, then others', then one more. */
    for (int i = 1; i < POLLSET_WORTH; i++)
        by_queue(2, true);
    frames(1, 1, 5 * (int)r.set.window);
    EXPECT_EQ(by_queue(2, true).add, POLLSET_NONE);
    EXPECT(!r.in[2]);
}

/* Twice as many connections as places, with the same number of frames each, in turn and in random order. */
static void equals_do_not_change_places(void)
{
    static const uint32_t limits[] = {1, 4, 32, POLLSET_MAX};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        uint32_t limit = limits[i];
        begin(POLLSET_TRAFFIC, POLLSET_PRIORITISED, limit);
        frames(0, 2 * limit - 1, (int)(100000 / limit));
        EXPECT_EQ(r.added, limit);
        EXPECT_EQ(r.removed, 0);
    }
    begin(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 4);
    uint64_t seed = 1;
    for (int i = 0; i < 400000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        frame((uint32_t)(seed >> 33) % 8);
    }
    EXPECT_EQ(r.set.count, 4);
    EXPECT_EQ(r.removed, 0);
}

/* A third more than the members is not clearly more; three times is. */
static void clearly_more_is_needed(void)
{
    begin(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 1);
    frames(0, 0, 3 * POLLSET_WORTH);
    for (int i = 0; i < 100000; i++) {
        frames(0, 0, 3);
        frames(1, 1, 4);
    }
    EXPECT(r.in[0] && r.removed == 0);
    for (int i = 0; i < 10000 && !r.in[1]; i++) {
        frames(0, 0, 1);
        frames(1, 1, 3);
    }
    EXPECT(r.in[1] && !r.in[0] && r.removed == 1);
    for (int i = 0; i < 100000; i++) {
        frames(0, 0, 1);
        frames(1, 1, 3);
    }
    EXPECT_EQ(r.removed, 1);
}

/* Phases of a program with different senders. All get a place soon, each change of phase costs one change per place,
 * and nothing moves within a phase. */
static void phases(void)
{
    enum { LIMIT = 8, PHASES = 6 };
    begin(POLLSET_TRAFFIC, POLLSET_CIRCULAR, LIMIT);
    for (uint32_t phase = 0; phase < PHASES; phase++) {
        uint32_t first = phase % 3 * LIMIT, last = first + LIMIT - 1;
        int rounds = 0;
        while (members_among(first, last) < LIMIT && rounds < 8 * (int)r.set.window / LIMIT) {
            frames(first, last, 1);
            rounds++;
        }
        EXPECT_EQ(members_among(first, last), LIMIT);
        EXPECT_EQ(r.removed, phase * LIMIT);
        frames(first, last, 20000);
        EXPECT_EQ(r.removed, phase * LIMIT);
        EXPECT_EQ(r.added, (phase + 1) * LIMIT);
    }
}

/* ---- leaving ---- */

static void who_leaves_keeps_its_place_until_gone(void)
{
    begin(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 2);
    frames(0, 1, POLLSET_WORTH);
    frames(1, 1, 100);
    EXPECT_EQ(r.set.count, 2);
    struct pollset_change change = {POLLSET_NONE, POLLSET_NONE};
    int n = 0;
    for (; n < 1000 && change.remove == POLLSET_NONE; n++)
        change = by_queue(5, false);
    EXPECT_EQ(change.remove, 0); /* the quietest */
    EXPECT_EQ(change.add, POLLSET_NONE);
    EXPECT_EQ(n, 3 * POLLSET_WORTH + 1); /* 2 * 16 + 16, and one more */
    EXPECT_EQ(r.set.count, 2);
    EXPECT(r.set.members[0].leaving && !r.set.members[1].leaving);
    /* Nobody else is sent away for a place that is coming free, and nobody twice. */
    for (int i = 0; i < 100000; i++)
        by_queue(5, false);
    EXPECT_EQ(r.removed, 1);
    EXPECT_EQ(pollset_count_hit(&r.set, 0), 0); /* its last frames */
    gone(0);
    EXPECT_EQ(r.set.leaving, 0);
    EXPECT_EQ(by_queue(5, false).add, 5);
}

static void a_few_may_leave_at_once(void)
{
    enum { LIMIT = 16 };
    begin(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, LIMIT);
    frames(0, LIMIT - 1, POLLSET_WORTH);
    EXPECT_EQ(r.set.count, LIMIT);
    for (int i = 0; i < 1000; i++)
        by_queue(100, false);
    EXPECT_EQ(r.removed, 1); /* one place for one connection */
    for (int i = 0; i < 1000; i++)
        for (uint32_t id = 100; id < 120; id++)
            by_queue(id, false);
    EXPECT_EQ(r.removed, LIMIT / 4 + 1);
    EXPECT_EQ(r.set.leaving, LIMIT / 4 + 1);
    for (uint32_t id = 0; id < LIMIT; id++)
        if (r.leaving[id])
            gone(id);
    EXPECT_EQ(r.set.leaving, 0);
    for (uint32_t id = 100; id < 120; id++)
        by_queue(id, false);
    EXPECT_EQ(r.set.count, LIMIT);
}

static void who_was_sent_away_earns_its_place_anew(void)
{
    begin(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 1);
    frames(0, 0, POLLSET_WORTH);
    frames(1, 1, 100);
    EXPECT(r.in[1] && r.removed == 1);
    frames(0, 0, POLLSET_WORTH);
    EXPECT(!r.in[0]);
}

/* Frames of a member that come through the completion queue keep it from looking quiet. */
static void a_full_ring_is_traffic_too(void)
{
    begin(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 2);
    frames(0, 1, POLLSET_WORTH);
    for (int i = 0; i < 100; i++)
        by_queue(0, true);
    frames(5, 5, 3 * POLLSET_WORTH + 1);
    EXPECT(r.in[0] && !r.in[1]);
    EXPECT_EQ(r.removed, 1);
}

/* Twice as many queues as there are places begin to send, and the old members leave slowly. Each leaves once, and
 * the queues that replace them are not removed in turn for being new. */
static void newcomers_do_not_chase_each_other(void)
{
    enum { LIMIT = 4 };
    begin(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, LIMIT);
    frames(0, LIMIT - 1, 200);
    for (int i = 0; i < 200000; i++) {
        uint32_t id = 10 + (uint32_t)i % (2 * LIMIT);
        if (r.in[id])
            pollset_count_hit(&r.set, place_of(id));
        else
            by_queue(id, false);
        if (i % 500 == 499)
            for (uint32_t old = 0; old < LIMIT; old++)
                if (r.leaving[old])
                    gone(old);
    }
    EXPECT_EQ(r.removed, LIMIT);
    EXPECT_EQ(members_among(0, LIMIT - 1), 0);
    EXPECT_EQ(r.set.count, LIMIT);
}

/* ---- orders ---- */

/* One round; each member is polled once, and those of a mask of ids have a frame. Returns the first one polled.
 */
static uint32_t poll_round(uint64_t with_frame)
{
    uint64_t looked = 0;
    uint32_t first = POLLSET_NONE;
    for (uint32_t k = 0; k < r.set.count; k++) {
        uint32_t place = pollset_round_place(&r.set, k);
        EXPECT(place < r.set.count);
        uint32_t id = r.set.members[place].id;
        EXPECT(!(looked >> id & 1));
        looked |= UINT64_C(1) << id;
        if (k == 0)
            first = id;
        if (with_frame >> id & 1) {
            uint32_t now = pollset_count_hit(&r.set, place);
            EXPECT_EQ(r.set.members[now].id, id);
        }
    }
    EXPECT_EQ(__builtin_popcountll(looked), r.set.count);
    pollset_end_round(&r.set);
    return first;
}

static void sequential_begins_at_the_first(void)
{
    begin(POLLSET_FIRST, POLLSET_SEQUENTIAL, 5);
    frames(0, 4, 1);
    for (int i = 0; i < 12; i++)
        EXPECT_EQ(poll_round(0x1c), 0);
}

static void circular_begins_at_the_next(void)
{
    begin(POLLSET_FIRST, POLLSET_CIRCULAR, 5);
    frames(0, 4, 1);
    for (uint32_t i = 0; i < 13; i++)
        EXPECT_EQ(poll_round(0x1c), i % 5);
    EXPECT_EQ(r.set.next, 3);
    gone(1); /* the same one is next */
    EXPECT_EQ(poll_round(0), 3);
    EXPECT_EQ(r.set.next, 3);
    gone(4); /* the next one has gone, and was the last */
    EXPECT_EQ(poll_round(0), 0);
    gone(0);
    gone(3);
    EXPECT_EQ(poll_round(0), 2);
    EXPECT_EQ(poll_round(0), 2);
    gone(2);
    EXPECT_EQ(poll_round(0), POLLSET_NONE);
    frames(7, 8, 1);
    EXPECT_EQ(poll_round(0), 7);
    EXPECT_EQ(poll_round(0), 8);
}

static void prioritised_brings_the_busy_forward(void)
{
    begin(POLLSET_FIRST, POLLSET_PRIORITISED, 6);
    frames(0, 5, 1);
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(poll_round(0x3f), 0); /* equals stay where they are */
    for (uint32_t id = 0; id < 6; id++)
        EXPECT_EQ(place_of(id), id);
    for (int i = 0; i < 10; i++)
        poll_round(UINT64_C(1) << 4 | UINT64_C(1) << 2);
    EXPECT_EQ(place_of(2) + place_of(4), 0 + 1);
    for (int i = 0; i < 100; i++)
        poll_round(UINT64_C(1) << 5);
    EXPECT_EQ(place_of(5), 0);
    EXPECT_EQ(poll_round(0x3f), 5);
    /* A member that was busy long ago ranks behind one that is busy now. */
    for (int i = 0; i < 3 * (int)r.set.window; i++)
        poll_round(1);
    EXPECT_EQ(place_of(0), 0);
    for (int i = 0; i < 2 * (int)r.set.window; i++)
        poll_round(UINT64_C(1) << 3);
    EXPECT_EQ(place_of(3), 0);
}

/* ---- anything in any order ---- */

static void check(void)
{
    const struct pollset *s = &r.set;
    uint32_t leaving = 0, in = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct pollset_member *m = &s->members[i];
        EXPECT(r.in[m->id]);
        EXPECT_EQ(m->leaving, r.leaving[m->id]);
        EXPECT(m->leaving || m->traffic >= s->least);
        leaving += m->leaving;
    }
    for (uint32_t id = 0; id < 40; id++)
        in += r.in[id];
    EXPECT_EQ(in, s->count);
    EXPECT(s->count <= s->limit);
    EXPECT_EQ(leaving, s->leaving);
    EXPECT(s->next < s->count || s->next == 0);
    EXPECT(s->events < s->window);
}

static void random_run(enum pollset_policy policy, enum pollset_order order, uint32_t limit)
{
    uint64_t seed = 42;
    uint32_t favourite = 0;
    int before = test_failures;
    begin(policy, order, limit);
    for (int i = 0; i < 30000 && test_failures == before; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t dice = (uint32_t)(seed >> 33), id = dice / 64 % 40;
        if (i % 3000 == 0)
            favourite = id;
        switch (dice % 16) {
        case 0:
            if (r.leaving[id] || dice / 4096 % 64 == 0)
                gone(id);
            break;
        case 1:
            pollset_end_round(&r.set);
            break;
        case 2: /* the ring of a member was full */
            by_queue(id, false);
            break;
        default:
            id = dice % 3 ? favourite : id;
            if (r.in[id])
                pollset_count_hit(&r.set, place_of(id));
            else
                by_queue(id, false);
        }
        check();
    }
    EXPECT_EQ(r.added > 0, limit > 0);
    EXPECT(policy == POLLSET_TRAFFIC || r.removed == 0);
    EXPECT(policy == POLLSET_FIRST || limit == 0 || limit >= 40 || r.removed > 0);
}

static void random_runs(void)
{
    static const uint32_t limits[] = {0, 1, 7, POLLSET_MAX};
    for (int policy = POLLSET_FIRST; policy <= POLLSET_TRAFFIC; policy++)
        for (int order = POLLSET_SEQUENTIAL; order <= POLLSET_PRIORITISED; order++)
            for (size_t i = 0; i < COUNT_OF(limits); i++)
                random_run(policy, order, limits[i]);
}

int main(void)
{
    TEST_RUN(limit_of_none);
    TEST_RUN(limit_of_one);
    TEST_RUN(more_than_the_most);
    TEST_RUN(first_come);
    TEST_RUN(a_few_frames_make_a_member);
    TEST_RUN(equals_do_not_change_places);
    TEST_RUN(clearly_more_is_needed);
    TEST_RUN(phases);
    TEST_RUN(who_leaves_keeps_its_place_until_gone);
    TEST_RUN(a_few_may_leave_at_once);
    TEST_RUN(who_was_sent_away_earns_its_place_anew);
    TEST_RUN(a_full_ring_is_traffic_too);
    TEST_RUN(newcomers_do_not_chase_each_other);
    TEST_RUN(sequential_begins_at_the_first);
    TEST_RUN(circular_begins_at_the_next);
    TEST_RUN(prioritised_brings_the_busy_forward);
    TEST_RUN(random_runs);
    return test_result();
}
