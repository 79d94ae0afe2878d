/* test_ib_pollset.c: which connections are polled by RDMA ring: admission in order of arrival and by
 * traffic, replacement without thrashing, the three polling orders, members that leave, limits of 0, 1 and
 * the maximum; and a long random run with checked invariants.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/pollset.h"

#include "test.h"

enum { PEERS = 1000 };

/* A receiver and the state that the transport keeps for each of its connections. */
struct receiver {
    struct pollset set;
    uint32_t traffic[PEERS];
    bool is_member[PEERS], is_leaving[PEERS];
    uint32_t added, removed;
};

static struct receiver r;

static void open_pollset(enum pollset_policy policy, enum pollset_order order, uint32_t limit)
{
    memset(&r, 0, sizeof(r));
    pollset_open(&r.set, policy, order, limit);
}

static uint32_t find_member_index(uint32_t id)
{
    for (uint32_t i = 0; i < r.set.count; i++)
        if (r.set.members[i].id == id)
            return i;
    return POLLSET_NONE;
}

static void complete_removal(uint32_t id)
{
    pollset_remove_member(&r.set, id);
    r.is_member[id] = r.is_leaving[id] = false;
    EXPECT_EQ(find_member_index(id), POLLSET_NONE);
}

/* Receives a frame through the completion queue. `prompt`: the removal of a replaced member is complete at
 * once. */
static struct pollset_change receive_by_queue(uint32_t id, bool prompt)
{
    struct pollset_change change = pollset_count_frame(&r.set, id, &r.traffic[id]);
    if (change.add != POLLSET_NONE) {
        EXPECT_EQ(change.add, id);
        EXPECT(!r.is_member[id]);
        EXPECT_EQ(r.set.members[r.set.count - 1].id, id);
        r.is_member[id] = true;
        r.added++;
    }
    if (change.remove != POLLSET_NONE) {
        EXPECT(r.is_member[change.remove] && !r.is_leaving[change.remove] && change.remove != id);
        r.is_leaving[change.remove] = true;
        r.removed++;
        if (prompt)
            complete_removal(change.remove);
    }
    return change;
}

/* Receives a frame by ring if the connection is a member, else through the completion queue. */
static void receive_frame(uint32_t id)
{
    if (r.is_member[id])
        pollset_count_hit(&r.set, find_member_index(id));
    else
        receive_by_queue(id, true);
}

static void receive_frames(uint32_t first, uint32_t last, int each)
{
    for (int i = 0; i < each; i++)
        for (uint32_t id = first; id <= last; id++)
            receive_frame(id);
}

static uint32_t count_members(uint32_t first, uint32_t last)
{
    uint32_t n = 0;
    for (uint32_t id = first; id <= last; id++)
        n += r.is_member[id];
    return n;
}

/* ---- admission ---- */

static void test_limit_zero_admits_none(void)
{
    for (int policy = POLLSET_FIRST; policy <= POLLSET_TRAFFIC; policy++) {
        open_pollset(policy, POLLSET_CIRCULAR, 0);
        receive_frames(0, 9, 1000);
        EXPECT_EQ(r.added + r.removed + r.set.count, 0);
        pollset_end_round(&r.set);
        EXPECT_EQ(r.set.next, 0);
    }
}

static void test_limit_one(void)
{
    open_pollset(POLLSET_FIRST, POLLSET_SEQUENTIAL, 1);
    receive_frames(3, 9, 1000);
    EXPECT_EQ(r.added, 1);
    EXPECT(r.is_member[3]);
    open_pollset(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 1);
    receive_frames(3, 9, 1000);
    EXPECT_EQ(r.added, 1);
    EXPECT_EQ(r.removed, 0);
}

static void test_limit_above_maximum(void)
{
    for (int policy = POLLSET_FIRST; policy <= POLLSET_TRAFFIC; policy++) {
        open_pollset(policy, POLLSET_PRIORITISED, UINT32_MAX);
        EXPECT_EQ(r.set.limit, POLLSET_MAX);
        receive_frames(0, PEERS - 1, 2 * POLLSET_WORTH);
        EXPECT_EQ(r.set.count, POLLSET_MAX);
        EXPECT_EQ(r.added, POLLSET_MAX);
        EXPECT_EQ(r.removed, 0);
    }
}

static void test_first_come_first_served(void)
{
    open_pollset(POLLSET_FIRST, POLLSET_SEQUENTIAL, 4);
    for (uint32_t id = 10; id < 20; id++)
        for (int i = 0; i < 3; i++) {
            struct pollset_change change = receive_by_queue(id, true); /* no sender uses its ring yet */
            EXPECT_EQ(change.add, id < 14 && i == 0 ? id : POLLSET_NONE);
        }
    receive_frames(19, 19, 100000); /* under POLLSET_FIRST a non-member never replaces a member */
    EXPECT_EQ(r.removed, 0);
    for (uint32_t k = 0; k < 4; k++)
        EXPECT_EQ(r.set.members[pollset_round_place(&r.set, k)].id, 10 + k);
    complete_removal(11); /* a member closes */
    complete_removal(15); /* a connection closes that was no member */
    EXPECT_EQ(r.set.count, 3);
    EXPECT_EQ(receive_by_queue(17, true).add, 17);
    EXPECT_EQ(receive_by_queue(18, true).add, POLLSET_NONE);
}

static void test_few_frames_make_a_member(void)
{
    open_pollset(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 4);
    for (int i = 1; i < POLLSET_WORTH; i++)
        EXPECT_EQ(receive_by_queue(1, true).add, POLLSET_NONE);
    EXPECT_EQ(receive_by_queue(1, true).add, 1);
    EXPECT_EQ(receive_by_queue(1, true).add, POLLSET_NONE);
    /* Old traffic does not count: 15 frames, then frames of other connections, then one more. */
    for (int i = 1; i < POLLSET_WORTH; i++)
        receive_by_queue(2, true);
    receive_frames(1, 1, 5 * (int)r.set.window);
    EXPECT_EQ(receive_by_queue(2, true).add, POLLSET_NONE);
    EXPECT(!r.is_member[2]);
}

/* Twice as many connections as places, with the same number of frames each, in turn and in random order. */
static void test_equal_traffic_replaces_nobody(void)
{
    static const uint32_t limits[] = {1, 4, 32, POLLSET_MAX};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        uint32_t limit = limits[i];
        open_pollset(POLLSET_TRAFFIC, POLLSET_PRIORITISED, limit);
        receive_frames(0, 2 * limit - 1, (int)(100000 / limit));
        EXPECT_EQ(r.added, limit);
        EXPECT_EQ(r.removed, 0);
    }
    open_pollset(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 4);
    uint64_t seed = 1;
    for (int i = 0; i < 400000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        receive_frame((uint32_t)(seed >> 33) % 8);
    }
    EXPECT_EQ(r.set.count, 4);
    EXPECT_EQ(r.removed, 0);
}

/* A third more than the members is not clearly more; three times is. */
static void test_replacement_needs_clearly_more_traffic(void)
{
    open_pollset(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 1);
    receive_frames(0, 0, 3 * POLLSET_WORTH);
    for (int i = 0; i < 100000; i++) {
        receive_frames(0, 0, 3);
        receive_frames(1, 1, 4);
    }
    EXPECT(r.is_member[0] && r.removed == 0);
    for (int i = 0; i < 10000 && !r.is_member[1]; i++) {
        receive_frames(0, 0, 1);
        receive_frames(1, 1, 3);
    }
    EXPECT(r.is_member[1] && !r.is_member[0] && r.removed == 1);
    for (int i = 0; i < 100000; i++) {
        receive_frames(0, 0, 1);
        receive_frames(1, 1, 3);
    }
    EXPECT_EQ(r.removed, 1);
}

/* Phases of a program with different senders. All senders become members soon; each change of phase
 * replaces each member once, and no member is replaced within a phase. */
static void test_phases_of_traffic(void)
{
    enum { LIMIT = 8, PHASES = 6 };
    open_pollset(POLLSET_TRAFFIC, POLLSET_CIRCULAR, LIMIT);
    for (uint32_t phase = 0; phase < PHASES; phase++) {
        uint32_t first = phase % 3 * LIMIT, last = first + LIMIT - 1;
        int rounds = 0;
        while (count_members(first, last) < LIMIT && rounds < 8 * (int)r.set.window / LIMIT) {
            receive_frames(first, last, 1);
            rounds++;
        }
        EXPECT_EQ(count_members(first, last), LIMIT);
        EXPECT_EQ(r.removed, phase * LIMIT);
        receive_frames(first, last, 20000);
        EXPECT_EQ(r.removed, phase * LIMIT);
        EXPECT_EQ(r.added, (phase + 1) * LIMIT);
    }
}

/* ---- leaving ---- */

static void test_leaving_member_keeps_its_place(void)
{
    open_pollset(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 2);
    receive_frames(0, 1, POLLSET_WORTH);
    receive_frames(1, 1, 100);
    EXPECT_EQ(r.set.count, 2);
    struct pollset_change change = {POLLSET_NONE, POLLSET_NONE};
    int n = 0;
    for (; n < 1000 && change.remove == POLLSET_NONE; n++)
        change = receive_by_queue(5, false);
    EXPECT_EQ(change.remove, 0); /* connection 0, the member with the least traffic */
    EXPECT_EQ(change.add, POLLSET_NONE);
    /* 2 * WORTH frames equal twice the traffic of connection 0; WORTH + 1 more replace that connection. */
    EXPECT_EQ(n, 3 * POLLSET_WORTH + 1);
    EXPECT_EQ(r.set.count, 2);
    EXPECT(r.set.members[0].leaving && !r.set.members[1].leaving);
    /* While a place is becoming free, no further member is removed, and none is removed twice. */
    for (int i = 0; i < 100000; i++)
        receive_by_queue(5, false);
    EXPECT_EQ(r.removed, 1);
    EXPECT_EQ(pollset_count_hit(&r.set, 0), 0); /* the last frames of the leaving member */
    complete_removal(0);
    EXPECT_EQ(r.set.leaving, 0);
    EXPECT_EQ(receive_by_queue(5, false).add, 5);
}

static void test_several_members_leave_at_once(void)
{
    enum { LIMIT = 16 };
    open_pollset(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, LIMIT);
    receive_frames(0, LIMIT - 1, POLLSET_WORTH);
    EXPECT_EQ(r.set.count, LIMIT);
    for (int i = 0; i < 1000; i++)
        receive_by_queue(100, false);
    EXPECT_EQ(r.removed, 1); /* one connection replaces one member */
    for (int i = 0; i < 1000; i++)
        for (uint32_t id = 100; id < 120; id++)
            receive_by_queue(id, false);
    EXPECT_EQ(r.removed, LIMIT / 4 + 1);
    EXPECT_EQ(r.set.leaving, LIMIT / 4 + 1);
    for (uint32_t id = 0; id < LIMIT; id++)
        if (r.is_leaving[id])
            complete_removal(id);
    EXPECT_EQ(r.set.leaving, 0);
    for (uint32_t id = 100; id < 120; id++)
        receive_by_queue(id, false);
    EXPECT_EQ(r.set.count, LIMIT);
}

static void test_removed_member_needs_new_traffic(void)
{
    open_pollset(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 1);
    receive_frames(0, 0, POLLSET_WORTH);
    receive_frames(1, 1, 100);
    EXPECT(r.is_member[1] && r.removed == 1);
    receive_frames(0, 0, POLLSET_WORTH);
    EXPECT(!r.is_member[0]);
}

/* Frames of a member that arrive through the completion queue count as its traffic. */
static void test_full_ring_counts_as_traffic(void)
{
    open_pollset(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, 2);
    receive_frames(0, 1, POLLSET_WORTH);
    for (int i = 0; i < 100; i++)
        receive_by_queue(0, true);
    receive_frames(5, 5, 3 * POLLSET_WORTH + 1);
    EXPECT(r.is_member[0] && !r.is_member[1]);
    EXPECT_EQ(r.removed, 1);
}

/* Twice as many connections as places begin to send, and the old members leave slowly. Each old member
 * leaves once, and the new members are not removed for their low counts. */
static void test_newcomers_are_not_replaced(void)
{
    enum { LIMIT = 4 };
    open_pollset(POLLSET_TRAFFIC, POLLSET_SEQUENTIAL, LIMIT);
    receive_frames(0, LIMIT - 1, 200);
    for (int i = 0; i < 200000; i++) {
        uint32_t id = 10 + (uint32_t)i % (2 * LIMIT);
        if (r.is_member[id])
            pollset_count_hit(&r.set, find_member_index(id));
        else
            receive_by_queue(id, false);
        if (i % 500 == 499)
            for (uint32_t old = 0; old < LIMIT; old++)
                if (r.is_leaving[old])
                    complete_removal(old);
    }
    EXPECT_EQ(r.removed, LIMIT);
    EXPECT_EQ(count_members(0, LIMIT - 1), 0);
    EXPECT_EQ(r.set.count, LIMIT);
}

/* ---- orders ---- */

/* Polls each member once; bit i of `with_frame`: connection i has a frame. Returns the member that was
 * polled first. */
static uint32_t poll_all_members(uint64_t with_frame)
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

static void test_sequential_order(void)
{
    open_pollset(POLLSET_FIRST, POLLSET_SEQUENTIAL, 5);
    receive_frames(0, 4, 1);
    for (int i = 0; i < 12; i++)
        EXPECT_EQ(poll_all_members(0x1c), 0);
}

static void test_circular_order(void)
{
    open_pollset(POLLSET_FIRST, POLLSET_CIRCULAR, 5);
    receive_frames(0, 4, 1);
    for (uint32_t i = 0; i < 13; i++)
        EXPECT_EQ(poll_all_members(0x1c), i % 5);
    EXPECT_EQ(r.set.next, 3);
    complete_removal(1); /* the next member to poll stays the same */
    EXPECT_EQ(poll_all_members(0), 3);
    EXPECT_EQ(r.set.next, 3);
    complete_removal(4); /* removes the next member to poll, the last of the list */
    EXPECT_EQ(poll_all_members(0), 0);
    complete_removal(0);
    complete_removal(3);
    EXPECT_EQ(poll_all_members(0), 2);
    EXPECT_EQ(poll_all_members(0), 2);
    complete_removal(2);
    EXPECT_EQ(poll_all_members(0), POLLSET_NONE);
    receive_frames(7, 8, 1);
    EXPECT_EQ(poll_all_members(0), 7);
    EXPECT_EQ(poll_all_members(0), 8);
}

static void test_prioritised_order(void)
{
    open_pollset(POLLSET_FIRST, POLLSET_PRIORITISED, 6);
    receive_frames(0, 5, 1);
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(poll_all_members(0x3f), 0); /* members with equal traffic keep their places */
    for (uint32_t id = 0; id < 6; id++)
        EXPECT_EQ(find_member_index(id), id);
    for (int i = 0; i < 10; i++)
        poll_all_members(UINT64_C(1) << 4 | UINT64_C(1) << 2);
    EXPECT_EQ(find_member_index(2) + find_member_index(4), 0 + 1);
    for (int i = 0; i < 100; i++)
        poll_all_members(UINT64_C(1) << 5);
    EXPECT_EQ(find_member_index(5), 0);
    EXPECT_EQ(poll_all_members(0x3f), 5);
    /* A member that was busy long ago ranks behind one that is busy now. */
    for (int i = 0; i < 3 * (int)r.set.window; i++)
        poll_all_members(1);
    EXPECT_EQ(find_member_index(0), 0);
    for (int i = 0; i < 2 * (int)r.set.window; i++)
        poll_all_members(UINT64_C(1) << 3);
    EXPECT_EQ(find_member_index(3), 0);
}

/* ---- random events ---- */

static void check_invariants(void)
{
    const struct pollset *s = &r.set;
    uint32_t leaving = 0, in = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct pollset_member *m = &s->members[i];
        EXPECT(r.is_member[m->id]);
        EXPECT_EQ(m->leaving, r.is_leaving[m->id]);
        EXPECT(m->leaving || m->traffic >= s->least);
        leaving += m->leaving;
    }
    for (uint32_t id = 0; id < 40; id++)
        in += r.is_member[id];
    EXPECT_EQ(in, s->count);
    EXPECT(s->count <= s->limit);
    EXPECT_EQ(leaving, s->leaving);
    EXPECT(s->next < s->count || s->next == 0);
    EXPECT(s->events < s->window);
}

static void run_random_events(enum pollset_policy policy, enum pollset_order order, uint32_t limit)
{
    uint64_t seed = 42;
    uint32_t favourite = 0;
    int before = test_failures;
    open_pollset(policy, order, limit);
    for (int i = 0; i < 30000 && test_failures == before; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t random_bits = (uint32_t)(seed >> 33), id = random_bits / 64 % 40;
        if (i % 3000 == 0)
            favourite = id;
        switch (random_bits % 16) {
        case 0:
            if (r.is_leaving[id] || random_bits / 4096 % 64 == 0)
                complete_removal(id);
            break;
        case 1:
            pollset_end_round(&r.set);
            break;
        case 2: /* the ring of a member was full */
            receive_by_queue(id, false);
            break;
        default:
            id = random_bits % 3 ? favourite : id;
            if (r.is_member[id])
                pollset_count_hit(&r.set, find_member_index(id));
            else
                receive_by_queue(id, false);
        }
        check_invariants();
    }
    EXPECT_EQ(r.added > 0, limit > 0);
    EXPECT(policy == POLLSET_TRAFFIC || r.removed == 0);
    EXPECT(policy == POLLSET_FIRST || limit == 0 || limit >= 40 || r.removed > 0);
}

static void test_random_events(void)
{
    static const uint32_t limits[] = {0, 1, 7, POLLSET_MAX};
    for (int policy = POLLSET_FIRST; policy <= POLLSET_TRAFFIC; policy++)
        for (int order = POLLSET_SEQUENTIAL; order <= POLLSET_PRIORITISED; order++)
            for (size_t i = 0; i < COUNT_OF(limits); i++)
                run_random_events(policy, order, limits[i]);
}

int main(void)
{
    TEST_RUN(test_limit_zero_admits_none);
    TEST_RUN(test_limit_one);
    TEST_RUN(test_limit_above_maximum);
    TEST_RUN(test_first_come_first_served);
    TEST_RUN(test_few_frames_make_a_member);
    TEST_RUN(test_equal_traffic_replaces_nobody);
    TEST_RUN(test_replacement_needs_clearly_more_traffic);
    TEST_RUN(test_phases_of_traffic);
    TEST_RUN(test_leaving_member_keeps_its_place);
    TEST_RUN(test_several_members_leave_at_once);
    TEST_RUN(test_removed_member_needs_new_traffic);
    TEST_RUN(test_full_ring_counts_as_traffic);
    TEST_RUN(test_newcomers_are_not_replaced);
    TEST_RUN(test_sequential_order);
    TEST_RUN(test_circular_order);
    TEST_RUN(test_prioritised_order);
    TEST_RUN(test_random_events);
    return test_result();
}
