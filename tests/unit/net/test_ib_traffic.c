/* test_ib_traffic.c: every state that the machine of traffic.h can get into, by every order of events. What it permits is compared with
 * the conditions stated one by one: the connection is open, nothing has failed, nothing of before waits. Also the four states of leave.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/traffic.h"

#include "net/ib/policy/leave.h"
#include "test.h"

enum { COUNT = 2, EVENTS = 11, STATES = 6 * 2 * (COUNT + 1) * 2 * 2 * 2 };

/* The machine, and the conditions. */
struct both {
    struct traffic t;
    bool open, resend, failed;
};

static unsigned number_of(const struct both *b)
{
    unsigned n = b->t.state;
    n = n * 2 + b->t.pairs;
    n = n * (COUNT + 1) + b->t.counted;
    return ((n * 2 + b->open) * 2 + b->resend) * 2 + b->failed;
}

static void ib_traffic_follow(struct both *b, bool open, bool resend)
{
    traffic_follow_connection(&b->t, open, resend);
    b->open = open && !b->failed;
    b->resend = resend && b->open;
}

/* What is reported while the queue pairs are failing is reported again once they are made anew. */
static void ib_traffic_reset(struct both *b)
{
    traffic_reset(&b->t);
    b->open = b->resend = b->failed = false;
}

static void ib_traffic_happen(struct both *b, unsigned event)
{
    uint8_t counted = b->t.counted;
    switch (event) {
    case 0:
    case 1:
    case 2:
        ib_traffic_follow(b, event > 0, event == 2);
        break;
    case 3:
        traffic_resend_finished(&b->t);
        b->resend = false;
        break;
    case 4:
        traffic_set_failing(&b->t);
        b->failed = true;
        b->open = b->resend = false;
        break;
    case 5:
        ib_traffic_reset(b);
        break;
    case 6:
    case 7:
        traffic_set_pairs(&b->t, event == 7);
        EXPECT_EQ(b->t.pairs, event == 7);
        break;
    case 8:
    case 9:
        traffic_set_counted(&b->t, event == 9 ? COUNT : 0);
        break;
    default:
        EXPECT_EQ(traffic_count(&b->t), counted == 1);
        EXPECT_EQ(b->t.counted, counted > 0 ? counted - 1 : 0);
    }
}

static void ib_traffic_judge(const struct both *b)
{
    const struct traffic *t = &b->t;
    EXPECT_EQ(traffic_is_ready(t), b->open && !b->resend && !b->failed);
    EXPECT_EQ(t->state == TRAFFIC_FAILING, b->failed);
    EXPECT_EQ(t->state == TRAFFIC_RESENDING, b->open && b->resend && !b->failed);
    EXPECT_EQ(t->state == TRAFFIC_SPREAD, traffic_is_ready(t) && t->pairs);
    EXPECT_EQ(t->state == TRAFFIC_COUNTED, traffic_is_ready(t) && !t->pairs && t->counted > 0);
    EXPECT_EQ(t->state == TRAFFIC_PRIMARY, traffic_is_ready(t) && !t->pairs && t->counted == 0);
}

static void ib_traffic_explore(void)
{
    static struct both queue[STATES];
    static bool seen[STATES];
    unsigned head = 0, tail = 0;
    queue[tail++] = (struct both){0};
    seen[0] = true;
    while (head < tail) {
        const struct both from = queue[head++];
        ib_traffic_judge(&from);
        for (unsigned e = 0; e < EVENTS; e++) {
            struct both to = from;
            ib_traffic_happen(&to, e);
            if (!seen[number_of(&to)]) {
                seen[number_of(&to)] = true;
                queue[tail++] = to;
            }
        }
    }
    printf("%u states\n", tail);
    EXPECT_EQ(tail, 6u * (COUNT + 1) * 2 -
                        2 * 2 * (COUNT + 1)); /* three that send share one condition of pairs and count */
}

static void ib_traffic_leave(void)
{
    for (int sent = 0; sent < 3; sent++)
        for (int received = 0; received < 3; received++) {
            enum leave_state a = LEAVE_NONE, b = LEAVE_NONE; /* in the two orders */
            for (int i = 0; i < sent; i++)
                a = leave_send(a);
            for (int i = 0; i < received; i++) {
                a = leave_receive(a);
                b = leave_receive(b);
            }
            for (int i = 0; i < sent; i++)
                b = leave_send(b);
            EXPECT_EQ(a, b);
            EXPECT_EQ(leave_is_sent(a), sent > 0);
            EXPECT_EQ(leave_is_received(a), received > 0);
        }
}

int main(void)
{
    ib_traffic_explore();
    ib_traffic_leave();
    return test_result();
}
