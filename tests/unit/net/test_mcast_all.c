/* test_mcast_all.c: visits every state of a root and two members over a network that loses, duplicates and
 * reorders packets, with slow applications: data arrives once and in order, no packet is released too
 * early, and from every state all data is delivered once the network loses nothing more.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "explore.h"
#include "test.h"

#include "mcast_world.h"

#define RULES .few = 1, .burst = 4, .timeout = 1, .timeout_max = 4, .delay = 1
static const struct mcast_tree to_root = {.members = MEMBERS, .collectors = 1};
static const struct mcast_tree delivered = {.members = MEMBERS, .collectors = 2, .deliver = true};
static const struct mcast_tree coroot = {.members = MEMBERS, .collectors = 2};

static void receive_flight(struct world *w, int i, bool stays)
{
    const struct flight f = w->flight[i];
    if (!stays)
        w->flight[i] = (struct flight){0};
    receive_packet(w, f);
}

/* Delivers all packets in flight, lets applications request packets and timers fire, until everything is
 * delivered. */
static bool completes_on_reliable_network(const struct world *from)
{
    struct world w = *from;
    world_bind_pointers(&w, true);
    for (int turn = 0; turn < 200 && !is_complete(&w); turn++) {
        for (int i = 0; i < FLIGHT_MAX; i++)
            if (w.flight[i].kind)
                receive_flight(&w, i, false);
        for (uint32_t m = 1; m < MEMBERS; m++) {
            if (w.reliable_ack[m].kind)
                receive_reliable_ack(&w, m);
            if (w.stream[m].taken < setting->messages)
                request_packet(&w, m);
        }
        while (can_pass_to_connection(&w))
            pass_to_connection(&w);
        while (can_receive_from_connection(&w))
            receive_from_connection(&w);
        if (can_send_new_packet(&w))
            send_new_packet(&w);
        else if (w.sender[0].next < setting->messages)
            mcast_sender_window_full(&w.sender[0], 0);
        if (turn % 4 == 3)
            for (uint32_t m = 0; m < 2; m++) {
                w.sender[m].deadline = w.sender[m].deadline == MCAST_NEVER ? MCAST_NEVER : TIME_DUE;
                expire_timer(&w, m);
            }
    }
    return is_complete(&w);
}

static void add_state(struct explore *e, struct world *w, const char *event)
{
    check_windows(w);
    world_normalise(w);
    explore_add(e, w, event);
}

#define TRY(event, ...)                \
    do {                               \
        struct world w = *(from);      \
        world_bind_pointers(&w, true); \
        __VA_ARGS__;                   \
        add_state(e, &w, event);       \
    } while (0)

static bool expand_state(struct explore *e, const void *state)
{
    const struct world *from = state;
    struct world bound = *from;
    world_bind_pointers(&bound, true);
    if (can_send_new_packet(&bound))
        TRY("push", send_new_packet(&w));
    else if (from->sender[0].next < setting->messages)
        TRY("starve", mcast_sender_window_full(&w.sender[0], 0));
    if (can_pass_to_connection(&bound))
        TRY("deliver", pass_to_connection(&w));
    if (can_receive_from_connection(&bound))
        TRY("connection brings", receive_from_connection(&w));
    for (int i = 0; i < FLIGHT_MAX; i++) {
        if (from->flight[i].kind == 0)
            continue;
        TRY("arrive", receive_flight(&w, i, false));
        TRY("arrive twice", receive_flight(&w, i, true));
        TRY("lose", w.flight[i] = (struct flight){0});
    }
    for (uint32_t m = 0; m < 2; m++)
        if (from->sender[m].deadline != MCAST_NEVER)
            TRY("timeout", expire_timer(&w, m));
    for (uint32_t m = 1; m < MEMBERS; m++) {
        if (from->reliable_ack[m].kind)
            TRY("acknowledgement", receive_reliable_ack(&w, m));
        if (can_depart(from, m))
            TRY("leave", w.departed[m] = 1);
        if (!from->wants_packet[m] && from->stream[m].taken < setting->messages)
            TRY("application", request_packet(&w, m));
        if (from->stream[m].due != MCAST_NEVER)
            TRY("late acknowledgement", send_ack(&w, m));
    }
    if (!wrong && !completes_on_reliable_network(from))
        wrong = "packets remain undelivered after 200 rounds on a network without losses";
    return !wrong;
}

static void explore_setting(const struct setting *s)
{
    struct explore e;
    struct world first;
    setting = s;
    wrong = NULL;
    world_init(&first);
    explore_open(&e, sizeof(first));
    explore_run(&e, &first, expand_state);
    if (wrong) {
        printf("%s: %s, after these events:\n", s->name, wrong);
        explore_print_trail(&e, e.current);
    }
    EXPECT(!wrong);
    EXPECT(e.count > 1000);
    printf("%s: %u states\n", s->name, e.count);
    explore_close(&e);
}

static void test_window_sizes(void)
{
    const struct setting s = {"window",  {RULES, .window = 2, .ring = 2, .aggregate = 1},
                              to_root,   .messages = 2,
                              .room = 1, .flight = 2};
    explore_setting(&s);
}

static void test_coroot_forwards(void)
{
    const struct setting s = {"co-roots", {RULES, .window = 1, .ring = 2, .aggregate = 1},
                              coroot,     .messages = 2,
                              .room = 1,  .flight = 3};
    explore_setting(&s);
}

/* The co-root receives every packet over its connection, however many packets and acknowledgements of
 * multicast are lost. */
static void test_coroot_fed_by_connection(void)
{
    struct setting s = {"delivered", {RULES, .window = 1, .ring = 2, .aggregate = 1},
                        delivered,   .messages = 2,
                        .room = 1,   .flight = 2};
    explore_setting(&s);
    s.reliable_acks = true;
    explore_setting(&s);
}

/* Acknowledgements wait for a packet to piggyback on, at most until the delay has passed. */
static void test_delayed_acks(void)
{
    const struct setting s = {"piggyback", {RULES, .window = 4, .ring = 4, .aggregate = 1, .piggyback = true},
                              to_root,     .messages = 2,
                              .room = 1,   .flight = 2};
    explore_setting(&s);
}

/* A member that has received everything may close at once. */
static void test_members_depart_early(void)
{
    const struct setting s = {"leaving",
                              {RULES, .window = 2, .ring = 2, .aggregate = 1},
                              coroot,
                              .messages = 2,
                              .room = 1,
                              .flight = 2,
                              .reliable_acks = true};
    explore_setting(&s);
}

static void test_aggregated_acks(void)
{
    const struct setting s = {"aggregate", {RULES, .window = 2, .ring = 2, .aggregate = 2},
                              coroot,      .messages = 2,
                              .room = 1,   .flight = 2};
    explore_setting(&s);
}

static void test_skewed_acks(void)
{
    const struct setting s = {"skewed",  {RULES, .window = 2, .ring = 2, .aggregate = 2, .skew = true},
                              to_root,   .messages = 2,
                              .room = 1, .flight = 2};
    explore_setting(&s);
}

int main(void)
{
    TEST_RUN(test_window_sizes);
    TEST_RUN(test_coroot_forwards);
    TEST_RUN(test_coroot_fed_by_connection);
    TEST_RUN(test_delayed_acks);
    TEST_RUN(test_members_depart_early);
    TEST_RUN(test_aggregated_acks);
    TEST_RUN(test_skewed_acks);
    return test_result();
}
