/* test_ib_end_all.c: connections that break, that are closed, and both at once: everything that two sides can get into, on a network
 * that delivers any datagram ever sent, at any time, as often as it likes, or never. What a side sends is a list of frames, CLOSE, AGREE and
 * KEEP, numbered through all generations. What its adapter has reported is forgotten, all else is sent again in the next generation, if
 * the other side's HELLO reports it missing; but of what was about the old connection only the place is left. So nothing may come
 * twice or be missing, and a network that has become fair must bring both sides to the same end, with all frames there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/conn.h"

#include "base/util.h"
#include "explore.h"
#include "test.h"

enum { GENERATIONS = 4, LATER = 8, ENOUGH = 14, LIST = 23 };
enum { NO_QP, CREATED, CONNECTED };
enum item { FRAME, CLOSE, AGREE, KEEP, PLACE };

/* Numbers of the datagrams there can be: mine 1..4, yours 0..4, ready. The search ends there, since old datagrams can always
 * make one generation more; what a fair network makes of it may take some more. */
enum { HELLOS = GENERATIONS * (GENERATIONS + 1) * 2 };
_Static_assert(HELLOS <= 64, "a set of datagrams is a word");

struct one {
    uint64_t datagrams; /* every one that was ever sent to this side */
    uint8_t state, mine, yours, seen;
    uint8_t qp, qp_mine, qp_yours; /* the queue pair, and which two generations it joins */
    uint8_t failed;                /* it has failed, or the peer reports it: not yet noticed */
    uint8_t said;                  /* items in the list */
    uint8_t next, arrived; /* the first that was not sent, and that has not arrived, in this generation */
    uint8_t known;         /* the first that is not known to have arrived */
    uint8_t completed, expected; /* items of the other side: arrived and not handled; handled */
    uint8_t later, queued, come; /* frames: not requested yet, waiting, arrived from the other side */
    uint8_t closes, breaks;      /* that may still happen */
    uint8_t keep;                /* KEEP is to be said, when what was lost has been sent again */
    uint8_t
        reported[GENERATIONS + LATER + 1]; /* the expected item in the HELLOs of each generation of mine */
    uint8_t list[LIST];                    /* enum item */
};
_Static_assert(sizeof(struct one) == 64, "no padding: states are compared by their bytes");

struct both {
    struct one side[2];
};

static uint8_t the_frames[2];
static uint8_t the_generations; /* the search ends there */
static bool fair;               /* datagrams are few then, and each arrives once */
struct hello {
    uint32_t mine, yours;
    bool ready;
};
static struct hello fair_hello[2][64];
static int fair_count[2];

static bool joined(const struct both *now, int me)
{
    const struct one *mine = &now->side[me], *other = &now->side[!me];
    return mine->qp == CONNECTED && other->qp == CONNECTED && mine->qp_mine == other->qp_yours &&
           mine->qp_yours == other->qp_mine && !mine->failed && !other->failed;
}

static void send_hello(struct both *now, int me, const struct conn *c)
{
    uint32_t number = ((c->mine - 1) * (GENERATIONS + 1) + c->yours) * 2 + conn_ready(c);
    if (fair && fair_count[!me] < (int)COUNT_OF(fair_hello[0]))
        fair_hello[!me][fair_count[!me]++] = (struct hello){c->mine, c->yours, conn_ready(c)};
    else if (!fair && c->mine <= GENERATIONS && c->yours <= GENERATIONS)
        now->side[!me].datagrams |= UINT64_C(1) << number;
}

static void say(struct one *o, enum item item)
{
    EXPECT_EQ(o->next, o->said); /* what was lost goes first */
    EXPECT(o->said < LIST);
    if (o->said == LIST)
        return;
    o->list[o->said++] = (uint8_t)item;
    o->next = o->said;
}

static void destroy(struct one *o)
{
    EXPECT(o->qp != NO_QP);
    EXPECT_EQ(o->completed, 0); /* every arrival was handled */
    o->qp = NO_QP;
    o->qp_mine = o->qp_yours = o->failed = o->keep = 0;
    for (uint8_t i = o->known; i < o->said; i++)
        if (o->list[i] != FRAME)
            o->list[i] = PLACE;
}

static void connect_to(struct one *o, const struct one *other)
{
    EXPECT_EQ(o->qp, CREATED);
    EXPECT(!o->failed);
    o->qp = CONNECTED;
    o->qp_yours = o->yours;
    uint8_t expected = other->reported[o->yours];
    EXPECT(expected >= o->known); /* nothing is missing that is forgotten */
    EXPECT(expected <= o->said);
    o->next = o->arrived = expected;
    o->known = MAX(o->known, expected);
}

/* Carries out the actions of an event, as the transport does. */
static void act(struct both *now, int me, const struct conn *c, unsigned actions)
{
    struct one *o = &now->side[me];
    o->state = (uint8_t)c->state;
    o->mine = (uint8_t)c->mine;
    o->yours = (uint8_t)c->yours;
    o->seen = (uint8_t)c->seen;
    if (actions & CONN_DO_BREAK)
        o->failed = true;
    if (actions & CONN_DO_DESTROY)
        destroy(o);
    if (actions & CONN_DO_CREATE) {
        EXPECT_EQ(o->qp, NO_QP);
        o->qp = CREATED;
        o->qp_mine = o->mine;
        o->reported[o->mine] = o->expected;
    }
    if (actions & CONN_DO_CONNECT)
        connect_to(o, &now->side[!me]);
    if (actions & CONN_DO_HELLO)
        send_hello(now, me, c);
    if (actions & CONN_DO_CLOSE)
        say(o, CLOSE);
    if (actions & CONN_DO_AGREE)
        say(o, AGREE);
    if (actions & CONN_DO_KEEP)
        o->keep = true;
}

static struct conn thaw(const struct one *o)
{
    return (struct conn){.state = o->state, .mine = o->mine, .yours = o->yours, .seen = o->seen};
}

/* True if everything lost has been sent again, and frames may be sent (struct traffic). */
static bool ready(const struct one *o)
{
    return o->state == CONN_OPEN && o->next == o->said;
}

static void look_at_one(struct both *now, int me)
{
    struct one *o = &now->side[me], *other = &now->side[!me];
    enum item item = (enum item)other->list[o->expected];
    struct conn c = thaw(o);
    o->completed--;
    o->expected++;
    act(now, me, &c, conn_frame_received(&c));
    switch (item) {
    case FRAME:
        o->come++;
        break;
    case CLOSE:
        act(now, me, &c, conn_close(&c, o->queued || o->keep || o->next != o->said));
        break;
    case AGREE:
        act(now, me, &c, conn_close_accepted(&c));
        break;
    case KEEP:
        act(now, me, &c, conn_close_refused(&c));
        break;
    case PLACE:
        break;
    }
}

/* ---- the events; each returns false where it cannot happen ---- */

static bool sends_query(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (!o->later)
        return false;
    o->later--;
    o->queued++;
    return true;
}

static bool wants(struct both *now, int me)
{
    struct conn c = thaw(&now->side[me]);
    if (c.state != CONN_IDLE || !now->side[me].queued)
        return false;
    act(now, me, &c, conn_request_open(&c));
    return true;
}

static bool sends_again(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (o->state != CONN_OPEN || o->failed || o->next == o->said)
        return false;
    o->next++;
    return true;
}

static bool keeps(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (!ready(o) || !o->keep)
        return false;
    o->keep = false;
    say(o, KEEP);
    return true;
}

static bool sends(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (!ready(o) || !o->queued || o->keep)
        return false;
    o->queued--;
    say(o, FRAME);
    return true;
}

static bool arrives(struct both *now, int me)
{
    struct one *o = &now->side[me], *other = &now->side[!me];
    if (!joined(now, me) || o->arrived == o->next)
        return false;
    EXPECT_EQ(o->arrived, other->expected + other->completed); /* neither lost nor twice */
    o->arrived++;
    other->completed++;
    return true;
}

/* The adapter's acknowledgement arrives, or is lost with the connection. */
static bool learns(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (o->failed || o->known >= o->arrived)
        return false;
    o->known++;
    return true;
}

static bool looks(struct both *now, int me)
{
    if (!now->side[me].completed)
        return false;
    look_at_one(now, me);
    return true;
}

static bool closes(struct both *now, int me)
{
    struct one *o = &now->side[me];
    struct conn c = thaw(o);
    if (!o->closes || !ready(o) || o->failed || o->queued || o->keep)
        return false;
    o->closes--;
    act(now, me, &c, conn_idle(&c));
    return true;
}

static bool has_left(struct both *now, int me)
{
    struct one *o = &now->side[me];
    struct conn c = thaw(o);
    if (o->state != CONN_AGREED || o->known != o->said)
        return false;
    act(now, me, &c, conn_peer_disconnected(&c));
    return true;
}

static bool breaks(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (!o->breaks || o->qp == NO_QP || o->failed)
        return false;
    o->breaks--;
    o->failed = true;
    return true;
}

/* A request of this end has failed. After AGREE only the notification of the end is missing. */
static void fails(struct both *now, int me)
{
    struct one *o = &now->side[me];
    struct conn c = thaw(o);
    bool news = true;
    for (uint8_t i = o->known; i < o->next; i++)
        news = news && o->list[i] != FRAME;
    if (o->state == CONN_AGREED && news)
        act(now, me, &c, conn_peer_disconnected(&c));
    else
        o->failed = true;
}

/* The network loses what was sent, repeatedly. */
static bool loses(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (!o->breaks || o->qp != CONNECTED || o->failed || o->known == o->next)
        return false;
    o->breaks--;
    fails(now, me);
    return true;
}

/* What was sent to a queue pair that has failed, or is gone, fails too, whether it had arrived or not; and an end that only waits sends a query now and
 * then. */
static bool fails_too(struct both *now, int me)
{
    const struct one *o = &now->side[me];
    bool queries_now = o->state == CONN_OPEN || o->state == CONN_CLOSING;
    if (!(queries_now || o->state == CONN_AGREED) || o->failed || joined(now, me) ||
        (!queries_now && o->known == o->next))
        return false;
    fails(now, me);
    return true;
}

static bool notices(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (!o->failed)
        return false;
    while (o->completed)
        look_at_one(now, me);
    struct conn c = thaw(o);
    unsigned actions = conn_queue_pair_failed(&c);
    EXPECT_EQ(!(actions & CONN_DO_DESTROY), c.state == CONN_IDLE); /* what had arrived was the end of it */
    o->failed = false;
    act(now, me, &c, actions);
    return true;
}

static bool timer(struct both *now, int me)
{
    struct conn c = thaw(&now->side[me]);
    if (conn_has_no_pending_hello(&c))
        return false;
    act(now, me, &c, conn_timer(&c, UINT32_MAX));
    return true;
}

/* The end receives a HELLO, but not while its queue pair is to be dropped. */
static void hears(struct both *now, int me, const struct hello *h)
{
    if (now->side[me].failed)
        return;
    struct conn c = thaw(&now->side[me]);
    act(now, me, &c, conn_hello(&c, h->mine, h->yours, h->ready));
}

static bool (*const events[])(struct both *, int) = {sends_query, wants,  sends, keeps,     sends_again,
                                                     arrives,     learns, looks, closes,    has_left,
                                                     breaks,      loses,  timer, fails_too, notices};
static const char *const names[2][COUNT_OF(events) + 1] = {
    {"a queries", "a wants", "a sends", "a sends KEEP", "a sends again", "what a sent arrives", "a learns",
     "a looks", "a closes", "a's has left", "a breaks", "what a sent is lost", "a's timer", "a fails too",
     "a notices", "a hears"},
    {"b queries", "b wants", "b sends", "b sends KEEP", "b sends again", "what b sent arrives", "b learns",
     "b looks", "b closes", "b's has left", "b breaks", "what b sent is lost", "b's timer", "b fails too",
     "b notices", "b hears"}};

/* ---- what a fair network makes of it ---- */

static void settle(struct both *now)
{
    for (bool more = true; more;) {
        more = false;
        for (int me = 0; me < 2; me++) {
            for (unsigned e = 0; e < COUNT_OF(events); e++)
                if (events[e] != breaks && events[e] != loses && events[e] != timer && events[e] != closes)
                    more |= events[e](now, me);
            if (fair_count[me] == 0)
                continue;
            struct hello h = fair_hello[me][0];
            memmove(fair_hello[me], fair_hello[me] + 1, (size_t)--fair_count[me] * sizeof(h));
            hears(now, me, &h);
            more = true;
        }
    }
}

static void ends_well(const struct both *from)
{
    struct both now = *from;
    fair = true;
    fair_count[0] = fair_count[1] = 0;
    settle(&now);
    for (int rounds = 0; rounds < ENOUGH; rounds++) {
        timer(&now, 0);
        timer(&now, 1);
        settle(&now);
    }
    EXPECT_EQ(now.side[0].state, now.side[1].state);
    for (int me = 0; me < 2; me++) {
        EXPECT_EQ(now.side[me].come, the_frames[!me]);
        EXPECT(now.side[me].state == CONN_OPEN || now.side[me].state == CONN_IDLE);
        EXPECT(!now.side[me].failed);
    }
    fair = false;
}

static void add(struct explore *e, const struct both *next, const char *event)
{
    if (next->side[0].mine <= the_generations && next->side[1].mine <= the_generations)
        explore_add(e, next, event);
}

static bool look(struct explore *e, const void *state)
{
    const struct both *now = state;
    int before = test_failures;
    ends_well(now);
    for (int me = 0; me < 2; me++) {
        for (unsigned event = 0; event < COUNT_OF(events); event++) {
            struct both next = *now;
            if (events[event](&next, me))
                add(e, &next, names[me][event]);
        }
        for (uint8_t number = 0; number < HELLOS; number++) {
            if (!(now->side[me].datagrams >> number & 1))
                continue;
            struct both next = *now;
            struct hello h = {number / 2 / (GENERATIONS + 1) + 1, number / 2 % (GENERATIONS + 1), number & 1};
            hears(&next, me, &h);
            add(e, &next, names[me][COUNT_OF(events)]);
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
    struct both begin;
    struct explore e;
    memset(&begin, 0, sizeof(begin));
    the_generations = generations;
    for (int me = 0; me < 2; me++) {
        the_frames[me] = budgets[me].frames;
        /* Only who has closed may find out later that there is something to send. */
        *(ends ? &begin.side[me].later : &begin.side[me].queued) = budgets[me].frames;
        begin.side[me].closes = budgets[me].closes;
        begin.side[me].breaks = budgets[me].breaks;
    }
    explore_open(&e, sizeof(begin));
    if (!explore_run(&e, &begin, look))
        explore_trail(&e, e.at);
    bool lost = false, agreed_breaks = false, repeated = false;
    for (uint32_t i = 0; i < e.count; i++) {
        const struct both *s = explore_state(&e, i);
        for (int me = 0; me < 2; me++) {
            const struct one *o = &s->side[me];
            agreed_breaks |= o->failed && o->state == CONN_AGREED;
            for (uint8_t k = o->known; k < o->said; k++)
                lost |= o->list[k] == PLACE;
            repeated |= o->qp_mine > 1 && o->next > o->reported[1];
        }
    }
    printf("closes %u and %u, breaks %u and %u: %u states\n", a.closes, b.closes, a.breaks, b.breaks,
           e.count);
    EXPECT(repeated && lost == ends && agreed_breaks == ends); /* it went where it was meant to go */
    explore_close(&e);
}

static void one_side_breaks(void)
{
    explore_ends(GENERATIONS, (struct budget){2, 0, 1}, (struct budget){2, 0, 0});
}

static void both_sides_break(void)
{
    explore_ends(GENERATIONS, (struct budget){1, 0, 1}, (struct budget){1, 0, 1});
}

static void one_side_closes_and_breaks(void)
{
    explore_ends(GENERATIONS - 1, (struct budget){1, 1, 1}, (struct budget){1, 0, 0});
}

static void one_side_closes_the_other_breaks(void)
{
    explore_ends(GENERATIONS - 1, (struct budget){1, 1, 0}, (struct budget){1, 0, 1});
}

static void both_sides_close_and_one_breaks(void)
{
    explore_ends(GENERATIONS, (struct budget){1, 1, 1}, (struct budget){0, 1, 0});
}

static void both_sides_close_and_break(void)
{
    explore_ends(GENERATIONS - 1, (struct budget){0, 1, 1}, (struct budget){1, 1, 1});
}

int main(void)
{
    TEST_RUN(one_side_breaks);
    TEST_RUN(both_sides_break);
    TEST_RUN(one_side_closes_and_breaks);
    TEST_RUN(one_side_closes_the_other_breaks);
    TEST_RUN(both_sides_close_and_one_breaks);
    TEST_RUN(both_sides_close_and_break);
    return test_result();
}
