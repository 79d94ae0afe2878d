/* test_ib_frame_route.c: visits every state of the state machine of frame_route.h, by every order of events, and
 * compares what each state permits with three separate conditions: the connection is open, nothing has
 * failed, no earlier frame must be resent. Also the states of leave.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/frame_route.h"

#include "net/ib/policy/leave.h"
#include "test.h"

enum { COUNT = 2, EVENTS = 11, STATES = 6 * 2 * (COUNT + 1) * 2 * 2 * 2 };

/* The state machine, and the three conditions. */
struct frame_route_model {
    struct frame_route t;
    bool open, resend, failed;
};

static unsigned state_index(const struct frame_route_model *b)
{
    unsigned n = b->t.state;
    n = n * 2 + b->t.pairs;
    n = n * (COUNT + 1) + b->t.counted;
    return ((n * 2 + b->open) * 2 + b->resend) * 2 + b->failed;
}

static void open_or_close(struct frame_route_model *b, bool open, bool resend)
{
    frame_route_follow_connection(&b->t, open, resend);
    b->open = open && !b->failed;
    b->resend = resend && b->open;
}

/* Creates new queue pairs after a failure; open and resend events during the failure are applied again. */
static void reset_after_failure(struct frame_route_model *b)
{
    frame_route_reset(&b->t);
    b->open = b->resend = b->failed = false;
}

static void apply_event(struct frame_route_model *b, unsigned event)
{
    uint8_t counted = b->t.counted;
    switch (event) {
    case 0:
    case 1:
    case 2:
        open_or_close(b, event > 0, event == 2);
        break;
    case 3:
        frame_route_resend_finished(&b->t);
        b->resend = false;
        break;
    case 4:
        frame_route_set_failing(&b->t);
        b->failed = true;
        b->open = b->resend = false;
        break;
    case 5:
        reset_after_failure(b);
        break;
    case 6:
    case 7:
        frame_route_set_pairs(&b->t, event == 7);
        EXPECT_EQ(b->t.pairs, event == 7);
        break;
    case 8:
    case 9:
        frame_route_set_counted(&b->t, event == 9 ? COUNT : 0);
        break;
    default:
        EXPECT_EQ(frame_route_count_frame(&b->t), counted == 1);
        EXPECT_EQ(b->t.counted, counted > 0 ? counted - 1 : 0);
    }
}

static void check_state(const struct frame_route_model *b)
{
    const struct frame_route *t = &b->t;
    EXPECT_EQ(frame_route_is_ready(t), b->open && !b->resend && !b->failed);
    EXPECT_EQ(t->state == FRAME_ROUTE_FAILING, b->failed);
    EXPECT_EQ(t->state == FRAME_ROUTE_RESENDING, b->open && b->resend && !b->failed);
    EXPECT_EQ(t->state == FRAME_ROUTE_SPREAD, frame_route_is_ready(t) && t->pairs);
    EXPECT_EQ(t->state == FRAME_ROUTE_COUNTED, frame_route_is_ready(t) && !t->pairs && t->counted > 0);
    EXPECT_EQ(t->state == FRAME_ROUTE_PRIMARY, frame_route_is_ready(t) && !t->pairs && t->counted == 0);
}

static void test_all_states(void)
{
    static struct frame_route_model queue[STATES];
    static bool seen[STATES];
    unsigned head = 0, tail = 0;
    queue[tail++] = (struct frame_route_model){0};
    seen[0] = true;
    while (head < tail) {
        const struct frame_route_model from = queue[head++];
        check_state(&from);
        for (unsigned e = 0; e < EVENTS; e++) {
            struct frame_route_model to = from;
            apply_event(&to, e);
            if (!seen[state_index(&to)]) {
                seen[state_index(&to)] = true;
                queue[tail++] = to;
            }
        }
    }
    printf("%u states\n", tail);
    /* Failing, closed and resending states do not depend on pairs and count. */
    EXPECT_EQ(tail, 6u * (COUNT + 1) * 2 - 2 * 2 * (COUNT + 1));
}

/* A failed connection counts LEAVE as delivered only if LEAVE was sent on that connection and the peer's
 * adapter acknowledged all messages. */
static void test_leave_is_delivered_once(void)
{
    for (int bits = 0; bits < 16; bits++) {
        const bool again = bits & 1, first = bits & 2, second = bits & 4, awaited = bits & 8;
        struct leave l = {0};
        EXPECT(!leave_must_be_repeated(&l));
        leave_record_received(&l, awaited);
        EXPECT_EQ(leave_permits_failure(&l, true, true), !awaited);
        leave_record_sent(&l);
        EXPECT(leave_is_complete(&l) && leave_must_be_repeated(&l));
        EXPECT_EQ(leave_permits_failure(&l, false, true), !awaited);
        EXPECT(leave_permits_failure(&l, true, true) && leave_permits_failure(&l, false, false));
        leave_connection_failed(&l, first);
        EXPECT_EQ(l.delivered, first);
        if (again && leave_must_be_repeated(&l))
            leave_record_sent(&l);
        leave_connection_failed(&l, second);
        EXPECT_EQ(l.delivered, first || (again && second));
        EXPECT_EQ(leave_permits_end(&l), l.delivered || !awaited);
    }
}

int main(void)
{
    test_all_states();
    test_leave_is_delivered_once();
    return test_result();
}
