/* test_ib_conn_all.c: visits every state of the two sides of a connection over three generations, on a
 * network that delivers any datagram ever sent at any time, any number of times, or never. From each state
 * the connection must complete once the network is fair.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/conn.h"

#include "base/util.h"
#include "explore.h"
#include "test.h"

enum { UNLIMITED_TRIES = 1000 };

/* ---- the model ---- */

enum { GENERATIONS = 3, FRAMES = 2, QUEUE = 6 };
enum item { NOTHING, FRAME, CLOSE, AGREE, KEEP };
enum { NO_QP, CREATED, CONNECTED };

/* Number of possible HELLO datagrams: mine 1..3, yours 0..3, ready. */
enum { HELLOS = GENERATIONS * (GENERATIONS + 1) * 2 };
_Static_assert(HELLOS <= 32, "a set of datagrams is a word");

struct side_state {
    uint32_t datagrams; /* every one that was ever sent to this side */
    uint8_t state, mine, yours, seen, tries;
    uint8_t later, queued, handled; /* frames: not requested yet, queued, handled by the other side */
    uint8_t qp : 7, counted : 1;    /* state of the queue pair; its action OPENED was executed */
    uint8_t qp_mine, qp_yours;      /* the two generations that the queue pair connects */
    uint8_t unanswered;             /* HELLOs sent by the timer since the last answer */
    uint8_t posted[QUEUE], completed[QUEUE]; /* sent and not arrived yet; arrived and not handled yet */
};
_Static_assert(sizeof(struct side_state) == 4 + 12 + 2 * QUEUE,
               "no padding: states are compared by their bytes");

struct pair_state {
    struct side_state side[2];
};

struct limits {
    uint8_t frames, generations;
    uint32_t tries_max;          /* UNLIMITED_TRIES: tries are not part of the state */
    bool half_open_holds_frames; /* XRC: frames are handled only after a HELLO opens the half-open side */
};
static struct limits the_limits;

/* A fair network: a short queue of datagrams replaces the set of all datagrams ever sent. */
struct fair_network {
    bool on;
    uint8_t hello[2][64];
    int n[2], delivered;
};
static struct fair_network the_net;

static uint8_t get_hello_number(uint32_t mine, uint32_t yours, bool ready)
{
    return (uint8_t)(((mine - 1) * (GENERATIONS + 1) + yours) * 2 + ready);
}

static int queue_length(const uint8_t *queue)
{
    int n = 0;
    while (n < QUEUE && queue[n])
        n++;
    return n;
}

static void queue_push(uint8_t *queue, enum item item)
{
    int n = queue_length(queue);
    EXPECT(n < QUEUE);
    if (n < QUEUE)
        queue[n] = item;
}

static enum item queue_pop(uint8_t *queue)
{
    enum item item = queue[0];
    memmove(queue, queue + 1, QUEUE - 1);
    queue[QUEUE - 1] = NOTHING;
    return item;
}

/* True if messages of this side arrive in the queue pair of the other. */
static bool is_joined(const struct pair_state *now, int me)
{
    const struct side_state *mine = &now->side[me], *other = &now->side[!me];
    return mine->qp == CONNECTED && other->qp == CONNECTED && mine->qp_mine == other->qp_yours &&
           mine->qp_yours == other->qp_mine;
}

static void send_item(struct pair_state *now, int me, enum item item)
{
    EXPECT(is_joined(now, me)); /* the peer is ready to receive */
    queue_push(now->side[me].posted, item);
}

static void send_hello(struct pair_state *now, int me, uint8_t number)
{
    if (!the_net.on)
        now->side[!me].datagrams |= 1u << number;
    else if (the_net.n[!me] < (int)COUNT_OF(the_net.hello[0]))
        the_net.hello[!me][the_net.n[!me]++] = number;
}

/* Carries out the action of an event, as the transport does. */
static void apply_actions(struct pair_state *now, int me, const struct conn *c, unsigned actions)
{
    struct side_state *o = &now->side[me];
    o->state = (uint8_t)c->state;
    o->mine = (uint8_t)c->mine;
    o->yours = (uint8_t)c->yours;
    o->seen = (uint8_t)c->seen;
    o->tries = the_limits.tries_max == UNLIMITED_TRIES ? 0 : (uint8_t)c->tries;
    if (actions & CONN_DO_DESTROY) {
        EXPECT(o->qp != NO_QP);
        EXPECT_EQ(queue_length(o->posted), 0);    /* everything sent has arrived */
        EXPECT_EQ(queue_length(o->completed), 0); /* every arrival was handled */
        o->qp = NO_QP;
        o->qp_mine = o->qp_yours = 0;
        EXPECT(o->counted); /* each close follows one open */
        o->counted = false;
    }
    if (actions & CONN_DO_CREATE) {
        EXPECT_EQ(o->qp, NO_QP);
        o->qp = CREATED;
        o->qp_mine = o->mine;
        o->unanswered = 0;
    }
    if (actions & CONN_DO_CONNECT) {
        EXPECT_EQ(o->qp, CREATED);
        o->qp = CONNECTED;
        o->qp_yours = o->yours;
    }
    if (actions & CONN_DO_HELLO)
        send_hello(now, me, get_hello_number(c->mine, c->yours, conn_is_open(c)));
    if (actions & CONN_DO_OPENED) {
        EXPECT(o->state == CONN_OPEN || actions & CONN_DO_AGREE);
        EXPECT(!o->counted);
        o->counted = true;
    }
    if (actions & CONN_DO_RESUME)
        EXPECT(o->state == CONN_OPEN && o->counted);
    if (actions & CONN_DO_CLOSE)
        send_item(now, me, CLOSE);
    if (actions & CONN_DO_AGREE)
        send_item(now, me, AGREE);
    if (actions & CONN_DO_KEEP)
        send_item(now, me, KEEP);
    if (actions & CONN_DO_FAIL)
        EXPECT_EQ(o->unanswered, the_limits.tries_max);
}

static struct conn unpack_conn(const struct side_state *o)
{
    return (struct conn){
        .state = o->state, .mine = o->mine, .yours = o->yours, .seen = o->seen, .tries = o->tries};
}

/* The events. Each returns false, without an effect, if the present state does not permit the event. */

static bool request_frame(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    if (!o->later)
        return false;
    o->later--;
    o->queued++;
    return true;
}

/* Opens the connection because a frame waits, or (`anyway`) although there is nothing to send. */
static bool request_open(struct pair_state *now, int me, bool anyway)
{
    struct side_state *o = &now->side[me];
    struct conn c = unpack_conn(o);
    if (o->state != CONN_IDLE || !(o->queued || (anyway && o->mine < the_limits.generations)))
        return false;
    apply_actions(now, me, &c, conn_request_open(&c));
    return true;
}

static bool send_frame(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    if (!o->queued || o->state != CONN_OPEN)
        return false;
    o->queued--;
    send_item(now, me, FRAME);
    return true;
}

static bool deliver_item(struct pair_state *now, int me)
{
    if (!now->side[me].posted[0])
        return false;
    EXPECT(is_joined(now, me)); /* otherwise the item would be lost */
    queue_push(now->side[!me].completed, queue_pop(now->side[me].posted));
    return true;
}

/* Handles the next completion. The side refuses a CLOSE while it is busy; `late`: its acknowledgements are
 * late, so it counts as busy. */
static bool handle_completion(struct pair_state *now, int me, bool late)
{
    struct side_state *o = &now->side[me];
    struct conn c = unpack_conn(o);
    if (!o->completed[0] || (the_limits.half_open_holds_frames && o->state == CONN_HALF))
        return false;
    bool busy = late || o->queued || o->posted[0];
    switch (queue_pop(o->completed)) {
    case FRAME:
        EXPECT(c.state == CONN_HALF || c.state == CONN_OPEN || c.state == CONN_CLOSING);
        now->side[!me].handled++;
        apply_actions(now, me, &c, conn_frame_received(&c));
        break;
    case CLOSE:
        EXPECT(c.state == CONN_HALF || c.state == CONN_OPEN || c.state == CONN_CLOSING);
        apply_actions(now, me, &c, conn_close_received(&c, busy));
        break;
    case AGREE:
        EXPECT_EQ(c.state, CONN_CLOSING);
        apply_actions(now, me, &c, conn_close_accepted(&c));
        break;
    case KEEP:
        EXPECT_EQ(c.state, CONN_CLOSING);
        apply_actions(now, me, &c, conn_close_refused(&c));
        break;
    case NOTHING:
        break;
    }
    return true;
}

static bool fire_timer(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    struct conn c = unpack_conn(o);
    bool gives_up = c.tries >= the_limits.tries_max;
    if (conn_has_no_pending_hello(&c) ||
        (gives_up && o->completed[0])) /* completions are handled before the side gives up */
        return false;
    unsigned actions = conn_timer_expired(&c, the_limits.tries_max);
    if (the_limits.tries_max != UNLIMITED_TRIES && !(actions & CONN_DO_FAIL))
        o->unanswered++;
    apply_actions(now, me, &c, actions);
    return true;
}

static bool close_idle_connection(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    struct conn c = unpack_conn(o);
    if (o->state != CONN_OPEN || o->queued || o->posted[0] || o->mine >= the_limits.generations)
        return false;
    apply_actions(now, me, &c, conn_request_close(&c));
    return true;
}

static bool finish_close(struct pair_state *now, int me)
{
    struct side_state *o = &now->side[me];
    struct conn c = unpack_conn(o);
    if (o->state != CONN_AGREED || o->posted[0])
        return false;
    apply_actions(now, me, &c, conn_peer_disconnected(&c));
    return true;
}

static void receive_hello(struct pair_state *now, int me, uint8_t number)
{
    struct side_state *o = &now->side[me];
    struct conn c = unpack_conn(o);
    bool ready = number & 1;
    uint32_t yours = number / 2 % (GENERATIONS + 1), mine = number / 2 / (GENERATIONS + 1) + 1;
    bool waiting = !conn_has_no_pending_hello(&c);
    unsigned actions = conn_hello_received(&c, mine, yours, ready);
    if (waiting && mine == c.yours)
        o->unanswered = 0;
    apply_actions(now, me, &c, actions);
}

/* ---- invariants of every state ---- */

static int count_items(const uint8_t *queue, enum item item)
{
    int n = 0;
    for (int i = 0; i < QUEUE; i++)
        n += queue[i] == item;
    return n;
}

static void check_side(const struct pair_state *now, int me)
{
    const struct side_state *mine = &now->side[me], *other = &now->side[!me];
    /* Messages of an open side can arrive at the other side; so addresses of a closed connection are never
     * used. */
    if (mine->state == CONN_OPEN)
        EXPECT(is_joined(now, me));
    EXPECT((mine->state == CONN_IDLE) == (mine->qp == NO_QP));
    if (mine->state == CONN_ASKING)
        EXPECT_EQ(mine->qp, CREATED);
    else if (mine->qp != NO_QP && mine->state != CONN_FAILED)
        EXPECT_EQ(mine->qp, CONNECTED);
    /* No frame is lost or doubled. */
    EXPECT_EQ(mine->later + mine->queued + count_items(mine->posted, FRAME) +
                  count_items(other->completed, FRAME) + mine->handled,
              the_limits.frames);
    /* No item follows CLOSE or AGREE. */
    for (int i = 0; i + 1 < QUEUE; i++) {
        if (mine->posted[i] == CLOSE || mine->posted[i] == AGREE)
            EXPECT_EQ(mine->posted[i + 1], NOTHING);
    }
    EXPECT(mine->mine <= the_limits.generations);
}

/* ---- completion on a fair network ---- */

static bool is_idle(const struct pair_state *now)
{
    for (int me = 0; me < 2; me++) {
        const struct side_state *o = &now->side[me];
        if (o->queued || o->posted[0] || o->completed[0] || the_net.n[me])
            return false;
    }
    return now->side[0].state == now->side[1].state &&
           (now->side[0].state == CONN_OPEN || now->side[0].state == CONN_IDLE);
}

/* Executes all events that need no timer; each datagram arrives twice. */
static void run_without_timers(struct pair_state *now)
{
    bool more = true;
    while (more && the_net.delivered < 64) {
        more = false;
        for (int me = 0; me < 2; me++) {
            more |= request_open(now, me, false);
            more |= send_frame(now, me);
            more |= deliver_item(now, me);
            more |= handle_completion(now, me, false);
            more |= finish_close(now, me);
            if (!the_net.n[me])
                continue;
            uint8_t number = the_net.hello[me][0];
            memmove(the_net.hello[me], the_net.hello[me] + 1, (size_t)--the_net.n[me]);
            receive_hello(now, me, number);
            receive_hello(now, me, number);
            the_net.delivered++;
            more = true;
        }
    }
}

static int worst_rounds, worst_delivered;

/* Loses everything in flight, and nothing from then on. Both sides must deliver their waiting frames and
 * reach the same final state after few timer events and few datagrams. */
static void check_fair_completion(const struct pair_state *from)
{
    struct pair_state now = *from;
    the_net = (struct fair_network){.on = true};
    now.side[0].datagrams = now.side[1].datagrams = 0;
    int rounds = 0;
    run_without_timers(&now);
    for (; !is_idle(&now) && rounds < 8; rounds++) {
        fire_timer(&now, 0);
        fire_timer(&now, 1);
        run_without_timers(&now);
    }
    EXPECT(is_idle(&now));
    worst_rounds = MAX(worst_rounds, rounds);
    worst_delivered = MAX(worst_delivered, the_net.delivered);
    the_net.on = false;
}

/* ---- the search ---- */

static const char *const names[2][9] = {
    {"a requests a frame", "a opens", "a sends a frame", "a's message arrives", "a handles a completion",
     "a's timer fires", "a closes", "a's close is complete", "a handles CLOSE while busy"},
    {"b requests a frame", "b opens", "b sends a frame", "b's message arrives", "b handles a completion",
     "b's timer fires", "b closes", "b's close is complete", "b handles CLOSE while busy"},
};

static const char *format_hello(int me, uint8_t number)
{
    static char text[2][32][48];
    char *name = text[me][number];
    snprintf(name, sizeof(text[0][0]), "%c receives HELLO {%d, %d%s}", me ? 'b' : 'a',
             number / 2 / (GENERATIONS + 1) + 1, number / 2 % (GENERATIONS + 1), number & 1 ? ", ready" : "");
    return name;
}

static bool execute_event(struct pair_state *now, int me, int event)
{
    switch (event) {
    case 0:
        return request_frame(now, me);
    case 1:
        return request_open(now, me, true);
    case 2:
        return send_frame(now, me);
    case 3:
        return deliver_item(now, me);
    case 4:
        return handle_completion(now, me, false);
    case 5:
        return fire_timer(now, me);
    case 6:
        return close_idle_connection(now, me);
    case 7:
        return finish_close(now, me);
    default:
        return now->side[me].completed[0] == CLOSE && handle_completion(now, me, true);
    }
}

static bool expand_state(struct explore *e, const void *state)
{
    const struct pair_state *now = state;
    int before = test_failures;
    if (now->side[0].state == CONN_FAILED || now->side[1].state == CONN_FAILED)
        return true; /* a failed connection ends the job */
    check_side(now, 0);
    check_side(now, 1);
    for (int me = 0; me < 2; me++) {
        for (int event = 0; event < 9; event++) {
            struct pair_state next = *now;
            if (execute_event(&next, me, event))
                explore_add(e, &next, names[me][event]);
            if (test_failures != before)
                printf("after: %s\n", names[me][event]);
        }
        for (uint8_t number = 0; number < HELLOS; number++) {
            if (!(now->side[me].datagrams >> number & 1))
                continue;
            struct pair_state next = *now;
            receive_hello(&next, me, number);
            explore_add(e, &next, format_hello(me, number));
        }
    }
    if (the_limits.tries_max == UNLIMITED_TRIES)
        check_fair_completion(now);
    return test_failures == before;
}

static void explore_within_limits(struct limits limits)
{
    struct pair_state begin;
    memset(&begin, 0, sizeof(begin));
    begin.side[0].later = begin.side[1].later = limits.frames;
    the_limits = limits;
    worst_rounds = worst_delivered = 0;
    struct explore e;
    explore_open(&e, sizeof(begin));
    if (!explore_run(&e, &begin, expand_state))
        explore_print_trail(&e, e.current);
    bool state_seen[2][CONN_FAILED + 1] = {{false}};
    uint32_t newest = 0;
    for (uint32_t i = 0; i < e.count; i++) {
        const struct pair_state *b = explore_state(&e, i);
        for (int me = 0; me < 2; me++) {
            state_seen[me][b->side[me].state] = true;
            newest = MAX(newest, b->side[me].mine);
        }
    }
    /* The search has reached the states that the test is about. */
    for (int state = CONN_IDLE; state < CONN_FAILED; state++)
        EXPECT((state_seen[0][state] && state_seen[1][state]) ||
               (limits.generations == 1 && state >= CONN_CLOSING));
    EXPECT_EQ(state_seen[0][CONN_FAILED], limits.tries_max != UNLIMITED_TRIES);
    EXPECT_EQ(newest, limits.generations);
    printf("%u frames per side, %u generations: %u states; on a fair network at most %d timer events and %d "
           "datagrams until completion\n",
           limits.frames, limits.generations, e.count, worst_rounds, worst_delivered);
    EXPECT(worst_rounds <= 2);
    explore_close(&e);
}

static void test_three_generations(void)
{
    explore_within_limits((struct limits){.frames = 1, .generations = 3, .tries_max = UNLIMITED_TRIES});
}

static void test_more_frames(void)
{
    explore_within_limits((struct limits){.frames = 2, .generations = 2, .tries_max = UNLIMITED_TRIES});
}

static void test_no_early_give_up(void)
{
    explore_within_limits((struct limits){.frames = 1, .generations = 2, .tries_max = 2});
}

static void test_frames_wait_for_hello(void)
{
    explore_within_limits((struct limits){
        .frames = 1, .generations = 3, .tries_max = UNLIMITED_TRIES, .half_open_holds_frames = true});
    explore_within_limits((struct limits){
        .frames = 2, .generations = 2, .tries_max = UNLIMITED_TRIES, .half_open_holds_frames = true});
}

int main(void)
{
    TEST_RUN(test_three_generations);
    TEST_RUN(test_more_frames);
    TEST_RUN(test_frames_wait_for_hello);
    TEST_RUN(test_no_early_give_up);
    return test_result();
}
