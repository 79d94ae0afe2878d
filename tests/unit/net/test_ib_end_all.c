/* test_ib_end_all.c: visits every state of two sides whose connection breaks, closes, or both at once, on
 * a network that delivers any datagram ever sent at any time, any number of times, or never. Each side
 * sends a list of items (frames, CLOSE, AGREE, KEEP) numbered through all generations. Items that the
 * adapter acknowledged are forgotten; the next generation resends the others if the HELLO of the other
 * side reports them missing, with CLOSE, AGREE and KEEP of the old connection replaced by placeholders. No
 * item may arrive twice or be missing, and once the network is fair both sides must reach the same final
 * state with all frames delivered.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/conn.h"

#include "base/util.h"
#include "explore.h"
#include "test.h"

enum { GENERATIONS = 4, GENERATIONS_LATER = 8, TIMERS_MAX = 14, ITEMS_MAX = 23 };
enum { NO_QP, CREATED, CONNECTED };
enum item { FRAME, CLOSE, AGREE, KEEP, PLACEHOLDER };

/* Number of possible HELLO datagrams: mine 1..4, yours 0..4, ready. The search ends at generation 4, since
 * old datagrams can always cause one more generation; completion on a fair network may use later ones. */
enum { HELLOS = GENERATIONS * (GENERATIONS + 1) * 2 };
_Static_assert(HELLOS <= 64, "a set of datagrams is a word");

struct side_state {
    uint64_t datagrams; /* every one that was ever sent to this side */
    uint8_t state, mine, yours, seen;
    uint8_t qp, qp_mine, qp_yours; /* state of the queue pair, and the two generations that it connects */
    uint8_t failed;                /* the queue pair has failed; this side has not handled the failure yet */
    uint8_t nitems;                /* length of `list` */
    uint8_t next, arrived;         /* first item not sent, and first item not arrived, in this generation */
    uint8_t acknowledged;          /* first item not known to have arrived */
    uint8_t completed, expected;   /* items of the other side: arrived and not handled; handled */
    uint8_t later, queued,
        received;           /* frames: not requested yet, waiting to be sent, received from the other side */
    uint8_t closes, breaks; /* events that may still happen */
    uint8_t keep;           /* KEEP is to be sent after lost items have been sent again */
    uint8_t reported[GENERATIONS + GENERATIONS_LATER +
                     1];     /* the expected item that the HELLO of each own generation reports */
    uint8_t list[ITEMS_MAX]; /* this side's items (enum item) */
};
_Static_assert(sizeof(struct side_state) == 64, "no padding: states are compared by their bytes");

struct pair_state {
    struct side_state side[2];
};

static uint8_t the_frames[2];
static uint8_t the_generations; /* last generation that the search visits */
static bool fair;               /* the network queues datagrams and delivers each once */
struct hello {
    uint32_t mine, yours;
    bool can_send_frames;
};
static struct hello fair_hello[2][64];
static int fair_count[2];

static bool is_joined(const struct pair_state *now, int me)
{
    const struct side_state *mine = &now->side[me], *other = &now->side[!me];
    return mine->qp == CONNECTED && other->qp == CONNECTED && mine->qp_mine == other->qp_yours &&
           mine->qp_yours == other->qp_mine && !mine->failed && !other->failed;
}

static void send_hello(struct pair_state *now, int me, const struct conn *c)
{
    uint32_t number = ((c->mine - 1) * (GENERATIONS + 1) + c->yours) * 2 + conn_is_open(c);
    if (fair && fair_count[!me] < (int)COUNT_OF(fair_hello[0]))
        fair_hello[!me][fair_count[!me]++] = (struct hello){c->mine, c->yours, conn_is_open(c)};
    else if (!fair && c->mine <= GENERATIONS && c->yours <= GENERATIONS)
        now->side[!me].datagrams |= UINT64_C(1) << number;
}

static void add_item(struct side_state *o, enum item item)
{
    EXPECT_EQ(o->next, o->nitems); /* lost items are sent before new ones */
    EXPECT(o->nitems < ITEMS_MAX);
    if (o->nitems == ITEMS_MAX)
        return;
    o->list[o->nitems++] = (uint8_t)item;
    o->next = o->nitems;
}

static void drop_queue_pair(struct side_state *o)
{
    EXPECT(o->qp != NO_QP);
    EXPECT_EQ(o->completed, 0); /* every arrival was handled */
    o->qp = NO_QP;
    o->qp_mine = o->qp_yours = o->failed = o->keep = 0;
    for (uint8_t i = o->acknowledged; i < o->nitems; i++)
        if (o->list[i] != FRAME)
            o->list[i] = PLACEHOLDER;
}

static void connect_qp(struct side_state *o, const struct side_state *other)
{
    EXPECT_EQ(o->qp, CREATED);
    EXPECT(!o->failed);
    o->qp = CONNECTED;
    o->qp_yours = o->yours;
    uint8_t expected = other->reported[o->yours];
    EXPECT(expected >= o->acknowledged); /* no forgotten item is missing */
    EXPECT(expected <= o->nitems);
    o->next = o->arrived = expected;
    o->acknowledged = MAX(o->acknowledged, expected);
}

/* Carries out the actions of an event, as the transport does. */
static void apply_actions(struct pair_state *now, int me, const struct conn *c, unsigned actions)
{
    struct side_state *o = &now->side[me];
    o->state = (uint8_t)c->state;
    o->mine = (uint8_t)c->mine;
    o->yours = (uint8_t)c->yours;
    o->seen = (uint8_t)c->seen;
    if (actions & CONN_DO_BREAK)
        o->failed = true;
    if (actions & CONN_DO_DESTROY)
        drop_queue_pair(o);
    if (actions & CONN_DO_CREATE) {
        EXPECT_EQ(o->qp, NO_QP);
        o->qp = CREATED;
        o->qp_mine = o->mine;
        o->reported[o->mine] = o->expected;
    }
    if (actions & CONN_DO_CONNECT)
        connect_qp(o, &now->side[!me]);
    if (actions & CONN_DO_HELLO)
        send_hello(now, me, c);
    if (actions & CONN_DO_CLOSE)
        add_item(o, CLOSE);
    if (actions & CONN_DO_AGREE)
        add_item(o, AGREE);
    if (actions & CONN_DO_KEEP)
        o->keep = true;
}

static struct conn unpack_conn(const struct side_state *o)
{
    return (struct conn){.state = o->state, .mine = o->mine, .yours = o->yours, .seen = o->seen};
}

/* True if all lost items have been sent again and frames may be sent. */
static bool can_send_frames(const struct side_state *o)
{
    return o->state == CONN_OPEN && o->next == o->nitems;
}

static void handle_next_item(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me], *other = &now->side[!me];
    enum item item = (enum item)other->list[o->expected];
    struct conn c = unpack_conn(o);
    o->completed--;
    o->expected++;
    apply_actions(now, me, &c, conn_frame_received(&c));
    switch (item) {
    case FRAME:
        o->received++;
        break;
    case CLOSE:
        apply_actions(now, me, &c, conn_close_received(&c, o->queued || o->keep || o->next != o->nitems));
        break;
    case AGREE:
        apply_actions(now, me, &c, conn_close_accepted(&c));
        break;
    case KEEP:
        apply_actions(now, me, &c, conn_close_refused(&c));
        break;
    case PLACEHOLDER:
        break;
    }
}

/* ---- the events; each returns false if the present state does not permit the event ---- */

static bool request_frame(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    if (!o->later)
        return false;
    o->later--;
    o->queued++;
    return true;
}

static bool request_open(struct pair_state *now, int me)
{
    struct conn c = unpack_conn(&now->side[me]);
    if (c.state != CONN_IDLE || !now->side[me].queued)
        return false;
    apply_actions(now, me, &c, conn_request_open(&c));
    return true;
}

static bool resend_item(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    if (o->state != CONN_OPEN || o->failed || o->next == o->nitems)
        return false;
    o->next++;
    return true;
}

static bool send_keep_item(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    if (!can_send_frames(o) || !o->keep)
        return false;
    o->keep = false;
    add_item(o, KEEP);
    return true;
}

static bool send_frame(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    if (!can_send_frames(o) || !o->queued || o->keep)
        return false;
    o->queued--;
    add_item(o, FRAME);
    return true;
}

static bool deliver_item(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me], *other = &now->side[!me];
    if (!is_joined(now, me) || o->arrived == o->next)
        return false;
    EXPECT_EQ(o->arrived, other->expected + other->completed); /* the item is neither lost nor duplicated */
    o->arrived++;
    other->completed++;
    return true;
}

/* The adapter acknowledges the oldest item, unless the connection has failed. */
static bool acknowledge_item(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    if (o->failed || o->acknowledged >= o->arrived)
        return false;
    o->acknowledged++;
    return true;
}

static bool handle_completion(struct pair_state *now, int me)
{
    if (!now->side[me].completed)
        return false;
    handle_next_item(now, me);
    return true;
}

static bool close_connection(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    struct conn c = unpack_conn(o);
    if (!o->closes || !can_send_frames(o) || o->failed || o->queued || o->keep)
        return false;
    o->closes--;
    apply_actions(now, me, &c, conn_request_close(&c));
    return true;
}

static bool finish_close(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    struct conn c = unpack_conn(o);
    if (o->state != CONN_AGREED || o->acknowledged != o->nitems)
        return false;
    apply_actions(now, me, &c, conn_peer_disconnected(&c));
    return true;
}

static bool break_qp(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    if (!o->breaks || o->qp == NO_QP || o->failed)
        return false;
    o->breaks--;
    o->failed = true;
    return true;
}

/* A request of this end fails. After AGREE, with all frames acknowledged, the failure means that the peer
 * has disconnected. */
static void fail_request(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    struct conn c = unpack_conn(o);
    bool frames_acknowledged = true;
    for (uint8_t i = o->acknowledged; i < o->next; i++)
        frames_acknowledged = frames_acknowledged && o->list[i] != FRAME;
    if (o->state == CONN_AGREED && frames_acknowledged)
        apply_actions(now, me, &c, conn_peer_disconnected(&c));
    else
        o->failed = true;
}

/* The network loses the items in flight, retries included. */
static bool lose_items(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    if (!o->breaks || o->qp != CONNECTED || o->failed || o->acknowledged == o->next)
        return false;
    o->breaks--;
    fail_request(now, me);
    return true;
}

/* Requests to a queue pair that has failed or is closed fail too, whether they had arrived or not. An end
 * that only waits probes the peer from time to time. */
static bool fail_after_peer(struct pair_state *now, int me)
{
    const struct side_state *o = &now->side[me];
    bool queries_now = o->state == CONN_OPEN || o->state == CONN_CLOSING;
    if (!(queries_now || o->state == CONN_AGREED) || o->failed || is_joined(now, me) ||
        (!queries_now && o->acknowledged == o->next))
        return false;
    fail_request(now, me);
    return true;
}

static bool handle_failure(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    if (!o->failed)
        return false;
    while (o->completed)
        handle_next_item(now, me);
    struct conn c = unpack_conn(o);
    unsigned actions = conn_queue_pair_failed(&c);
    /* If all items had arrived, they completed the close. */
    EXPECT_EQ(!(actions & CONN_DO_DESTROY), c.state == CONN_IDLE);
    o->failed = false;
    apply_actions(now, me, &c, actions);
    return true;
}

static bool fire_timer(struct pair_state *now, int me)
{
    struct conn c = unpack_conn(&now->side[me]);
    if (conn_has_no_pending_hello(&c))
        return false;
    apply_actions(now, me, &c, conn_timer_expired(&c, UINT32_MAX));
    return true;
}

/* The end receives a HELLO, but not while its queue pair is to be dropped. */
static void receive_hello(struct pair_state *now, int me, const struct hello *h)
{
    if (now->side[me].failed)
        return;
    struct conn c = unpack_conn(&now->side[me]);
    apply_actions(now, me, &c, conn_hello_received(&c, h->mine, h->yours, h->can_send_frames));
}

static bool (*const events[])(struct pair_state *, int) = {
    request_frame, request_open,     send_frame,        send_keep_item,   resend_item,
    deliver_item,  acknowledge_item, handle_completion, close_connection, finish_close,
    break_qp,      lose_items,       fire_timer,        fail_after_peer,  handle_failure};
static const char *const names[2][COUNT_OF(events) + 1] = {
    {"a requests a frame", "a opens", "a sends a frame", "a sends KEEP", "a resends an item",
     "a's item arrives", "a's item is acknowledged", "a handles an item", "a closes", "a's close is complete",
     "a's queue pair breaks", "a's items are lost", "a's timer fires", "a fails after b",
     "a handles the failure", "a receives HELLO"},
    {"b requests a frame", "b opens", "b sends a frame", "b sends KEEP", "b resends an item",
     "b's item arrives", "b's item is acknowledged", "b handles an item", "b closes", "b's close is complete",
     "b's queue pair breaks", "b's items are lost", "b's timer fires", "b fails after a",
     "b handles the failure", "b receives HELLO"}};

/* ---- completion on a fair network ---- */

static void run_without_timers(struct pair_state *now)
{
    for (bool more = true; more;) {
        more = false;
        for (int me = 0; me < 2; me++) {
            for (unsigned e = 0; e < COUNT_OF(events); e++)
                if (events[e] != break_qp && events[e] != lose_items && events[e] != fire_timer &&
                    events[e] != close_connection)
                    more |= events[e](now, me);
            if (fair_count[me] == 0)
                continue;
            struct hello h = fair_hello[me][0];
            memmove(fair_hello[me], fair_hello[me] + 1, (size_t)--fair_count[me] * sizeof(h));
            receive_hello(now, me, &h);
            more = true;
        }
    }
}

static void check_fair_completion(const struct pair_state *from)
{
    struct pair_state now = *from;
    fair = true;
    fair_count[0] = fair_count[1] = 0;
    run_without_timers(&now);
    for (int rounds = 0; rounds < TIMERS_MAX; rounds++) {
        fire_timer(&now, 0);
        fire_timer(&now, 1);
        run_without_timers(&now);
    }
    EXPECT_EQ(now.side[0].state, now.side[1].state);
    for (int me = 0; me < 2; me++) {
        EXPECT_EQ(now.side[me].received, the_frames[!me]);
        EXPECT(now.side[me].state == CONN_OPEN || now.side[me].state == CONN_IDLE);
        EXPECT(!now.side[me].failed);
    }
    fair = false;
}

static void add_checked_state(struct explore *e, const struct pair_state *next, const char *event)
{
    if (next->side[0].mine <= the_generations && next->side[1].mine <= the_generations)
        explore_add(e, next, event);
}

static bool expand_state(struct explore *e, const void *state)
{
    const struct pair_state *now = state;
    int before = test_failures;
    check_fair_completion(now);
    for (int me = 0; me < 2; me++) {
        for (unsigned event = 0; event < COUNT_OF(events); event++) {
            struct pair_state next = *now;
            if (events[event](&next, me))
                add_checked_state(e, &next, names[me][event]);
        }
        for (uint8_t number = 0; number < HELLOS; number++) {
            if (!(now->side[me].datagrams >> number & 1))
                continue;
            struct pair_state next = *now;
            struct hello h = {number / 2 / (GENERATIONS + 1) + 1, number / 2 % (GENERATIONS + 1), number & 1};
            receive_hello(&next, me, &h);
            add_checked_state(e, &next, names[me][COUNT_OF(events)]);
        }
    }
    return test_failures == before;
}

struct budget {
    uint8_t frames, closes, breaks;
};

static void explore_ends(uint8_t generations, struct budget a, struct budget b)
{
    const struct budget budgets[2] = {a, b};
    const bool ends = a.closes + b.closes > 0;
    struct pair_state begin;
    struct explore e;
    memset(&begin, 0, sizeof(begin));
    the_generations = generations;
    for (int me = 0; me < 2; me++) {
        the_frames[me] = budgets[me].frames;
        /* Only a side that has closed may have frames to send later. */
        *(ends ? &begin.side[me].later : &begin.side[me].queued) = budgets[me].frames;
        begin.side[me].closes = budgets[me].closes;
        begin.side[me].breaks = budgets[me].breaks;
    }
    explore_open(&e, sizeof(begin));
    if (!explore_run(&e, &begin, expand_state))
        explore_print_trail(&e, e.current);
    bool lost = false, agreed_breaks = false, repeated = false;
    for (uint32_t i = 0; i < e.count; i++) {
        const struct pair_state *s = explore_state(&e, i);
        for (int me = 0; me < 2; me++) {
            const struct side_state *o = &s->side[me];
            agreed_breaks |= o->failed && o->state == CONN_AGREED;
            for (uint8_t k = o->acknowledged; k < o->nitems; k++)
                lost |= o->list[k] == PLACEHOLDER;
            repeated |= o->qp_mine > 1 && o->next > o->reported[1];
        }
    }
    printf("closes %u and %u, breaks %u and %u: %u states\n", a.closes, b.closes, a.breaks, b.breaks,
           e.count);
    /* The search reached the states that the test is about. */
    EXPECT(repeated && lost == ends && agreed_breaks == ends);
    explore_close(&e);
}

static void test_one_side_breaks(void)
{
    explore_ends(GENERATIONS, (struct budget){2, 0, 1}, (struct budget){2, 0, 0});
}

static void test_both_sides_break(void)
{
    explore_ends(GENERATIONS, (struct budget){1, 0, 1}, (struct budget){1, 0, 1});
}

static void test_one_side_closes_and_breaks(void)
{
    explore_ends(GENERATIONS - 1, (struct budget){1, 1, 1}, (struct budget){1, 0, 0});
}

static void test_one_side_closes_other_breaks(void)
{
    explore_ends(GENERATIONS - 1, (struct budget){1, 1, 0}, (struct budget){1, 0, 1});
}

static void test_both_close_one_breaks(void)
{
    explore_ends(GENERATIONS, (struct budget){1, 1, 1}, (struct budget){0, 1, 0});
}

static void test_both_close_and_break(void)
{
    explore_ends(GENERATIONS - 1, (struct budget){0, 1, 1}, (struct budget){1, 1, 1});
}

int main(void)
{
    TEST_RUN(test_one_side_breaks);
    TEST_RUN(test_both_sides_break);
    TEST_RUN(test_one_side_closes_and_breaks);
    TEST_RUN(test_one_side_closes_other_breaks);
    TEST_RUN(test_both_close_one_breaks);
    TEST_RUN(test_both_close_and_break);
    return test_result();
}
