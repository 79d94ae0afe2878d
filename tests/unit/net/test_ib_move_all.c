/* test_ib_move_all.c: connections that break, at any moment and on either side, and are opened again: everything that two
 * sides can get into, on a network that delivers any datagram ever sent, at any time, as often as it likes, or never. Frames
 * that are known to have arrived are forgotten by their sender; all others it sends again, if the other side's HELLO says that
 * they are missing. So no frame may be lost or come twice, and a network that has become fair must carry all of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/conn.h"

#include "base/util.h"
#include "explore.h"
#include "test.h"

enum { GENERATIONS = 4, ENOUGH = 12, LATER = 8 };
enum { NO_QP, CREATED, CONNECTED };

/* Numbers of the datagrams there can be: mine 1..4, yours 0..4, ready. The search ends there, since old datagrams can always
 * make one generation more; what a fair network makes of it may take some more. */
enum { HELLOS = GENERATIONS * (GENERATIONS + 1) * 2 };
_Static_assert(HELLOS <= 64, "a set of datagrams is a word");

struct one {
    uint64_t datagrams; /* every one that was ever sent to this side */
    uint8_t state, mine, yours, seen;
    uint8_t qp, qp_mine, qp_yours; /* the queue pair, and which two generations it joins */
    uint8_t failed;                /* it has failed, or the peer says so: to be noticed */
    uint8_t next;                  /* frame to post next on this queue pair */
    uint8_t arrived;               /* the first that has not arrived */
    uint8_t known;     /* the first that is not known to have arrived: those before are forgotten */
    uint8_t completed; /* frames that have arrived here and were not looked at */
    uint8_t expected;  /* frames that were looked at */
    uint8_t breaks;    /* that may still happen */
    uint8_t told[GENERATIONS + LATER + 1]; /* what the HELLOs of each generation of mine say is expected */
    uint8_t zero[5];
};
_Static_assert(sizeof(struct one) == 40, "no padding: states are compared by their bytes");

struct both {
    struct one side[2];
};

static uint8_t the_frames; /* of each side */
static bool fair;          /* datagrams are few then, and each arrives once */
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

/* As the transport does it. */
static void act(struct both *now, int me, const struct conn *c, unsigned actions)
{
    struct one *o = &now->side[me];
    const struct one *other = &now->side[!me];
    o->state = (uint8_t)c->state;
    o->mine = (uint8_t)c->mine;
    o->yours = (uint8_t)c->yours;
    o->seen = (uint8_t)c->seen;
    if (actions & CONN_DO_BREAK)
        o->failed = true;
    if (actions & CONN_DO_DESTROY) {
        EXPECT(o->qp != NO_QP);
        EXPECT_EQ(o->completed, 0); /* all that came was looked at */
        o->qp = NO_QP;
        o->qp_mine = o->qp_yours = o->failed = 0;
    }
    if (actions & CONN_DO_CREATE) {
        EXPECT_EQ(o->qp, NO_QP);
        o->qp = CREATED;
        o->qp_mine = o->mine;
        o->told[o->mine] = o->expected;
    }
    if (actions & CONN_DO_CONNECT) {
        EXPECT_EQ(o->qp, CREATED);
        EXPECT(!o->failed);
        o->qp = CONNECTED;
        o->qp_yours = o->yours;
        uint8_t expected = other->told[o->yours];
        EXPECT(expected >= o->known); /* nothing is missing that is forgotten */
        EXPECT(expected <= o->next);
        o->next = o->arrived = expected;
        o->known = MAX(o->known, expected);
    }
    if (actions & CONN_DO_HELLO)
        send_hello(now, me, c);
}

static struct conn thaw(const struct one *o)
{
    return (struct conn){.state = o->state, .mine = o->mine, .yours = o->yours, .seen = o->seen};
}

static void look_at_one(struct both *now, int me)
{
    struct one *o = &now->side[me];
    struct conn c = thaw(o);
    o->completed--;
    o->expected++;
    act(now, me, &c, conn_frame(&c));
}

/* ---- the events; each says false where it cannot happen ---- */

static bool wants(struct both *now, int me)
{
    struct conn c = thaw(&now->side[me]);
    if (c.state != CONN_IDLE || now->side[me].next == the_frames)
        return false;
    act(now, me, &c, conn_want(&c));
    return true;
}

static bool sends(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (o->state != CONN_OPEN || o->next == the_frames)
        return false;
    o->next++;
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

/* The acknowledgement of the adapter; it may be lost with the connection. */
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

static bool breaks(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (!o->breaks || o->qp == NO_QP || o->failed)
        return false;
    o->breaks--;
    o->failed = true;
    return true;
}

/* Sends to a queue pair that has failed, or is gone, fail too. */
static bool fails_too(struct both *now, int me)
{
    struct one *o = &now->side[me];
    if (o->state != CONN_OPEN || o->failed || joined(now, me) || o->arrived == o->next)
        return false;
    o->failed = true;
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
    unsigned actions = conn_broken(&c);
    EXPECT(actions & CONN_DO_DESTROY &&
           conn_goes_on(&c)); /* also when what was just looked at has opened it */
    act(now, me, &c, actions);
    return true;
}

static bool timer(struct both *now, int me)
{
    struct conn c = thaw(&now->side[me]);
    if (conn_settled(&c))
        return false;
    act(now, me, &c, conn_timer(&c, UINT32_MAX));
    return true;
}

/* Not while its queue pair is to be dropped. */
static void hears(struct both *now, int me, const struct hello *h)
{
    if (now->side[me].failed)
        return;
    struct conn c = thaw(&now->side[me]);
    act(now, me, &c, conn_hello(&c, h->mine, h->yours, h->ready));
}

static bool (*const events[])(struct both *, int) = {wants,  sends, arrives,   learns, looks,
                                                     breaks, timer, fails_too, notices};
static const char *const names[2][COUNT_OF(events) + 1] = {
    {"a wants", "a sends", "what a sent arrives", "a learns", "a looks", "a breaks", "a's timer",
     "a fails too", "a notices", "a hears"},
    {"b wants", "b sends", "what b sent arrives", "b learns", "b looks", "b breaks", "b's timer",
     "b fails too", "b notices", "b hears"}};

/* ---- what a fair network makes of it ---- */

static void settle(struct both *now)
{
    for (bool more = true; more;) {
        more = false;
        for (int me = 0; me < 2; me++) {
            for (unsigned e = 0; e < COUNT_OF(events); e++)
                if (events[e] != breaks && events[e] != timer)
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
    for (int me = 0; me < 2; me++) {
        EXPECT_EQ(now.side[me].expected, the_frames);
        EXPECT_EQ(now.side[me].state, CONN_OPEN);
    }
    fair = false;
}

static void add(struct explore *e, const struct both *next, const char *event)
{
    if (next->side[0].mine <= GENERATIONS && next->side[1].mine <= GENERATIONS)
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

static void explore_breaks(uint8_t a, uint8_t b, uint8_t frames)
{
    struct both begin;
    struct explore e;
    the_frames = frames;
    memset(&begin, 0, sizeof(begin));
    begin.side[0].breaks = a;
    begin.side[1].breaks = b;
    explore_open(&e, sizeof(begin));
    if (!explore_run(&e, &begin, look))
        explore_trail(&e, e.at);
    bool repeated = false;
    uint8_t newest = 0;
    for (uint32_t i = 0; i < e.count; i++) {
        const struct both *s = explore_state(&e, i);
        newest = MAX(newest, MAX(s->side[0].mine, s->side[1].mine));
        repeated |= s->side[0].qp_mine > 1 && s->side[0].next > s->side[0].told[1];
    }
    printf("%u breaks at one side, %u at the other: %u states, generation %u\n", a, b, e.count, newest);
    EXPECT(newest >= 2 && repeated);
    explore_close(&e);
}

static void one_side_breaks(void)
{
    explore_breaks(1, 0, 2);
}

static void both_sides_break(void)
{
    explore_breaks(1, 1, 1);
}

int main(void)
{
    TEST_RUN(one_side_breaks);
    TEST_RUN(both_sides_break);
    return test_result();
}
