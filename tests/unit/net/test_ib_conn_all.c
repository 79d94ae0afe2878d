/* test_ib_conn_all.c: everything that two sides of a connection can get into over three generations, on a network
 * that delivers any datagram ever sent, at any time, as often as it likes, or never; and from each of those states,
 * what a network that has become fair makes of it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/conn.h"

#include "base/util.h"
#include "explore.h"
#include "test.h"

enum { FOR_EVER = 1000 };

/* ---- everything that can happen ---- */

enum { GENERATIONS = 3, FRAMES = 2, QUEUE = 6 };
enum item { NOTHING, FRAME, CLOSE, AGREE, KEEP };
enum { NO_QP, CREATED, CONNECTED };

/* Numbers of the datagrams there can be: mine 1..3, yours 0..3, ready. */
enum { HELLOS = GENERATIONS * (GENERATIONS + 1) * 2 };
_Static_assert(HELLOS <= 32, "a set of datagrams is a word");

struct one {
    uint32_t datagrams; /* every one that was ever sent to this side */
    uint8_t state, mine, yours, seen, tries;
    uint8_t later, queued, used; /* frames: not requested yet, waiting, arrived at the other side */
    uint8_t qp : 7, counted : 1; /* the queue pair; OPENED was said of it */
    uint8_t qp_mine, qp_yours;   /* which two generations it joins */
    uint8_t unanswered;          /* HELLOs by the timer, counted apart from the code under test */
    uint8_t posted[QUEUE], completed[QUEUE]; /* sent and not arrived yet; arrived and not handled yet */
};
_Static_assert(sizeof(struct one) == 4 + 12 + 2 * QUEUE, "no padding: states are compared by their bytes");

struct both {
    struct one side[2];
};

struct limits {
    uint8_t frames, generations;
    uint32_t tries_max; /* FOR_EVER: tries are not part of the state */
    bool held; /* XRC: a side that is half open cannot answer, and handles no frame before a HELLO opens it */
};
static struct limits the_limits;

/* A network that is fair again: a short queue of datagrams instead of the set. */
struct fair {
    bool on;
    uint8_t hello[2][64];
    int n[2], delivered;
};
static struct fair the_net;

static uint8_t hello_number(uint32_t mine, uint32_t yours, bool ready)
{
    return (uint8_t)(((mine - 1) * (GENERATIONS + 1) + yours) * 2 + ready);
}

static int length(const uint8_t *queue)
{
    int n = 0;
    while (n < QUEUE && queue[n])
        n++;
    return n;
}

static void push(uint8_t *queue, enum item item)
{
    int n = length(queue);
    EXPECT(n < QUEUE);
    if (n < QUEUE)
        queue[n] = item;
}

static enum item pop(uint8_t *queue)
{
    enum item item = queue[0];
    memmove(queue, queue + 1, QUEUE - 1);
    queue[QUEUE - 1] = NOTHING;
    return item;
}

/* True if messages of this side arrive in the queue pair of the other. */
static bool joined(const struct both *now, int me)
{
    const struct one *mine = &now->side[me], *other = &now->side[!me];
    return mine->qp == CONNECTED && other->qp == CONNECTED && mine->qp_mine == other->qp_yours &&
           mine->qp_yours == other->qp_mine;
}

static void post(struct both *now, int me, enum item item)
{
    EXPECT(joined(now, me)); /* the peer is ready to receive */
    push(now->side[me].posted, item);
}

static void send_hello(struct both *now, int me, uint8_t number)
{
    if (!the_net.on)
        now->side[!me].datagrams |= 1u << number;
    else if (the_net.n[!me] < (int)COUNT_OF(the_net.hello[0]))
        the_net.hello[!me][the_net.n[!me]++] = number;
}

/* Carries out the action of an event, as the transport does. */
static void act(struct both *now, int me, const struct conn *c, unsigned actions)
{
    struct one *o = &now->side[me];
    o->state = (uint8_t)c->state;
    o->mine = (uint8_t)c->mine;
    o->yours = (uint8_t)c->yours;
    o->seen = (uint8_t)c->seen;
    o->tries = the_limits.tries_max == FOR_EVER ? 0 : (uint8_t)c->tries;
    if (actions & CONN_DO_DESTROY) {
        EXPECT(o->qp != NO_QP);
        EXPECT_EQ(length(o->posted), 0);    /* all that I sent is there */
        EXPECT_EQ(length(o->completed), 0); /* every arrival was handled */
        o->qp = NO_QP;
        o->qp_mine = o->qp_yours = 0;
        EXPECT(o->counted); /* or more would be closed than were opened */
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
        send_hello(now, me, hello_number(c->mine, c->yours, conn_ready(c)));
    if (actions & CONN_DO_OPENED) {
        EXPECT(o->state == CONN_OPEN || actions & CONN_DO_AGREE);
        EXPECT(!o->counted);
        o->counted = true;
    }
    if (actions & CONN_DO_RESUME)
        EXPECT(o->state == CONN_OPEN && o->counted);
    if (actions & CONN_DO_CLOSE)
        post(now, me, CLOSE);
    if (actions & CONN_DO_AGREE)
        post(now, me, AGREE);
    if (actions & CONN_DO_KEEP)
        post(now, me, KEEP);
    if (actions & CONN_DO_FAIL)
        EXPECT_EQ(o->unanswered, the_limits.tries_max);
}

static struct conn thaw(const struct one *o)
{
    return (struct conn){
        .state = o->state, .mine = o->mine, .yours = o->yours, .seen = o->seen, .tries = o->tries};
}

/* The events. Each does nothing and returns false where it cannot happen. */

static bool requests_send(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (!o->later)
        return false;
    o->later--;
    o->queued++;
    return true;
}

/* The side opens because something waits, or because all connections are requested and there is nothing to send. */
static bool wants(struct both *now, int me, bool anyway)
{
    struct one *o = &now->side[me];
    struct conn c = thaw(o);
    if (o->state != CONN_IDLE || !(o->queued || (anyway && o->mine < the_limits.generations)))
        return false;
    act(now, me, &c, conn_request_open(&c));
    return true;
}

static bool sends(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (!o->queued || o->state != CONN_OPEN)
        return false;
    o->queued--;
    post(now, me, FRAME);
    return true;
}

static bool arrives(struct both *now, int me)
{
    if (!now->side[me].posted[0])
        return false;
    EXPECT(joined(now, me)); /* or it would be lost */
    push(now->side[!me].completed, pop(now->side[me].posted));
    return true;
}

/* The side handles the next completion. It counts as busy if it is, and if acknowledgements are late. */
static bool looks(struct both *now, int me, bool late)
{
    struct one *o = &now->side[me];
    struct conn c = thaw(o);
    if (!o->completed[0] || (the_limits.held && o->state == CONN_HALF))
        return false;
    bool busy = late || o->queued || o->posted[0];
    switch (pop(o->completed)) {
    case FRAME:
        EXPECT(c.state == CONN_HALF || c.state == CONN_OPEN || c.state == CONN_CLOSING);
        now->side[!me].used++;
        act(now, me, &c, conn_frame_received(&c));
        break;
    case CLOSE:
        EXPECT(c.state == CONN_HALF || c.state == CONN_OPEN || c.state == CONN_CLOSING);
        act(now, me, &c, conn_close(&c, busy));
        break;
    case AGREE:
        EXPECT_EQ(c.state, CONN_CLOSING);
        act(now, me, &c, conn_close_accepted(&c));
        break;
    case KEEP:
        EXPECT_EQ(c.state, CONN_CLOSING);
        act(now, me, &c, conn_close_refused(&c));
        break;
    case NOTHING:
        break;
    }
    return true;
}

static bool timer(struct both *now, int me)
{
    struct one *o = &now->side[me];
    struct conn c = thaw(o);
    bool gives_up = c.tries >= the_limits.tries_max;
    if (conn_has_no_pending_hello(&c) || (gives_up && o->completed[0])) /* it looks before it gives up */
        return false;
    unsigned actions = conn_timer(&c, the_limits.tries_max);
    if (the_limits.tries_max != FOR_EVER && !(actions & CONN_DO_FAIL))
        o->unanswered++;
    act(now, me, &c, actions);
    return true;
}

static bool idles(struct both *now, int me)
{
    struct one *o = &now->side[me];
    struct conn c = thaw(o);
    if (o->state != CONN_OPEN || o->queued || o->posted[0] || o->mine >= the_limits.generations)
        return false;
    act(now, me, &c, conn_idle(&c));
    return true;
}

static bool has_left(struct both *now, int me)
{
    struct one *o = &now->side[me];
    struct conn c = thaw(o);
    if (o->state != CONN_AGREED || o->posted[0])
        return false;
    act(now, me, &c, conn_peer_disconnected(&c));
    return true;
}

static void hears(struct both *now, int me, uint8_t number)
{
    struct one *o = &now->side[me];
    struct conn c = thaw(o);
    bool ready = number & 1;
    uint32_t yours = number / 2 % (GENERATIONS + 1), mine = number / 2 / (GENERATIONS + 1) + 1;
    bool waiting = !conn_has_no_pending_hello(&c);
    unsigned actions = conn_hello(&c, mine, yours, ready);
    if (waiting && mine == c.yours)
        o->unanswered = 0;
    act(now, me, &c, actions);
}

/* ---- what must hold in every state ---- */

static int count(const uint8_t *queue, enum item item)
{
    int n = 0;
    for (int i = 0; i < QUEUE; i++)
        n += queue[i] == item;
    return n;
}

static void check(const struct both *now, int me)
{
    const struct one *mine = &now->side[me], *other = &now->side[!me];
    /* What an open side sends can arrive at the other; so no address of a connection that is gone is ever used. */
    if (mine->state == CONN_OPEN)
        EXPECT(joined(now, me));
    EXPECT((mine->state == CONN_IDLE) == (mine->qp == NO_QP));
    if (mine->state == CONN_ASKING)
        EXPECT_EQ(mine->qp, CREATED);
    else if (mine->qp != NO_QP && mine->state != CONN_FAILED)
        EXPECT_EQ(mine->qp, CONNECTED);
    /* No frame is lost or doubled. */
    EXPECT_EQ(mine->later + mine->queued + count(mine->posted, FRAME) + count(other->completed, FRAME) +
                  mine->used,
              the_limits.frames);
    /* The last frame is the last. */
    for (int i = 0; i + 1 < QUEUE; i++) {
        if (mine->posted[i] == CLOSE || mine->posted[i] == AGREE)
            EXPECT_EQ(mine->posted[i + 1], NOTHING);
    }
    EXPECT(mine->mine <= the_limits.generations);
}

/* ---- what a fair network makes of it ---- */

static bool quiet(const struct both *now)
{
    for (int me = 0; me < 2; me++) {
        const struct one *o = &now->side[me];
        if (o->queued || o->posted[0] || o->completed[0] || the_net.n[me])
            return false;
    }
    return now->side[0].state == now->side[1].state &&
           (now->side[0].state == CONN_OPEN || now->side[0].state == CONN_IDLE);
}

/* All that can happen without a timer; each datagram arrives twice. */
static void settle(struct both *now)
{
    bool more = true;
    while (more && the_net.delivered < 64) {
        more = false;
        for (int me = 0; me < 2; me++) {
            more |= wants(now, me, false);
            more |= sends(now, me);
            more |= arrives(now, me);
            more |= looks(now, me, false);
            more |= has_left(now, me);
            if (!the_net.n[me])
                continue;
            uint8_t number = the_net.hello[me][0];
            memmove(the_net.hello[me], the_net.hello[me] + 1, (size_t)--the_net.n[me]);
            hears(now, me, number);
            hears(now, me, number);
            the_net.delivered++;
            more = true;
        }
    }
}

static int worst_rounds, worst_delivered;

/* Everything under way on the network is lost, and from then on nothing is. Two sides that have something to
 * send must get it across, and come to the same end, after few timers and few datagrams. */
static void ends_well(const struct both *from)
{
    struct both now = *from;
    the_net = (struct fair){.on = true};
    now.side[0].datagrams = now.side[1].datagrams = 0;
    int rounds = 0;
    settle(&now);
    for (; !quiet(&now) && rounds < 8; rounds++) {
        timer(&now, 0);
        timer(&now, 1);
        settle(&now);
    }
    EXPECT(quiet(&now));
    worst_rounds = MAX(worst_rounds, rounds);
    worst_delivered = MAX(worst_delivered, the_net.delivered);
    the_net.on = false;
}

/* ---- the search ---- */

static const char *const names[2][9] = {
    {"a requests a send", "a wants", "a sends", "what a sent arrives", "a looks", "a's timer", "a closes",
     "a's has left", "a looks, busy"},
    {"b requests a send", "b wants", "b sends", "what b sent arrives", "b looks", "b's timer", "b closes",
     "b's has left", "b looks, busy"},
};

static const char *hello_name(int me, uint8_t number)
{
    static char text[2][32][48];
    char *name = text[me][number];
    snprintf(name, sizeof(text[0][0]), "%c hears HELLO {%d, %d%s}", me ? 'b' : 'a',
             number / 2 / (GENERATIONS + 1) + 1, number / 2 % (GENERATIONS + 1), number & 1 ? ", ready" : "");
    return name;
}

static bool happens(struct both *now, int me, int event)
{
    switch (event) {
    case 0:
        return requests_send(now, me);
    case 1:
        return wants(now, me, true);
    case 2:
        return sends(now, me);
    case 3:
        return arrives(now, me);
    case 4:
        return looks(now, me, false);
    case 5:
        return timer(now, me);
    case 6:
        return idles(now, me);
    case 7:
        return has_left(now, me);
    default:
        return now->side[me].completed[0] == CLOSE && looks(now, me, true);
    }
}

static bool look(struct explore *e, const void *state)
{
    const struct both *now = state;
    int before = test_failures;
    if (now->side[0].state == CONN_FAILED || now->side[1].state == CONN_FAILED)
        return true; /* the end of the job: nothing more is promised */
    check(now, 0);
    check(now, 1);
    for (int me = 0; me < 2; me++) {
        for (int event = 0; event < 9; event++) {
            struct both next = *now;
            if (happens(&next, me, event))
                explore_add(e, &next, names[me][event]);
            if (test_failures != before)
                printf("after: %s\n", names[me][event]);
        }
        for (uint8_t number = 0; number < HELLOS; number++) {
            if (!(now->side[me].datagrams >> number & 1))
                continue;
            struct both next = *now;
            hears(&next, me, number);
            explore_add(e, &next, hello_name(me, number));
        }
    }
    if (the_limits.tries_max == FOR_EVER)
        ends_well(now);
    return test_failures == before;
}

static void explore_limits(struct limits limits)
{
    struct both begin;
    memset(&begin, 0, sizeof(begin));
    begin.side[0].later = begin.side[1].later = limits.frames;
    the_limits = limits;
    worst_rounds = worst_delivered = 0;
    struct explore e;
    explore_open(&e, sizeof(begin));
    if (!explore_run(&e, &begin, look))
        explore_trail(&e, e.at);
    bool state_seen[2][CONN_FAILED + 1] = {{false}};
    uint32_t newest = 0;
    for (uint32_t i = 0; i < e.count; i++) {
        const struct both *b = explore_state(&e, i);
        for (int me = 0; me < 2; me++) {
            state_seen[me][b->side[me].state] = true;
            newest = MAX(newest, b->side[me].mine);
        }
    }
    /* The search went where it was meant to go. */
    for (int state = CONN_IDLE; state < CONN_FAILED; state++)
        EXPECT((state_seen[0][state] && state_seen[1][state]) ||
               (limits.generations == 1 && state >= CONN_CLOSING));
    EXPECT_EQ(state_seen[0][CONN_FAILED], limits.tries_max != FOR_EVER);
    EXPECT_EQ(newest, limits.generations);
    printf("%u frames a side, %u generations: %u states, at most %d timers and %d datagrams to the end\n",
           limits.frames, limits.generations, e.count, worst_rounds, worst_delivered);
    EXPECT(worst_rounds <= 2);
    explore_close(&e);
}

static void everything_over_three_generations(void)
{
    explore_limits((struct limits){.frames = 1, .generations = 3, .tries_max = FOR_EVER});
}

static void everything_with_more_frames(void)
{
    explore_limits((struct limits){.frames = 2, .generations = 2, .tries_max = FOR_EVER});
}

static void nobody_gives_up_too_soon(void)
{
    explore_limits((struct limits){.frames = 1, .generations = 2, .tries_max = 2});
}

static void frames_wait_for_a_hello(void)
{
    explore_limits((struct limits){.frames = 1, .generations = 3, .tries_max = FOR_EVER, .held = true});
    explore_limits((struct limits){.frames = 2, .generations = 2, .tries_max = FOR_EVER, .held = true});
}

int main(void)
{
    TEST_RUN(everything_over_three_generations);
    TEST_RUN(everything_with_more_frames);
    TEST_RUN(frames_wait_for_a_hello);
    TEST_RUN(nobody_gives_up_too_soon);
    return test_result();
}
