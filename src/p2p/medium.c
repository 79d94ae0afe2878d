/* medium.c: messages that fit into a frame, but for which two copies may take longer than an announcement and one
 * copy, where the receiver's processor can read the sender's memory (shared memory, softib). The sender measures both. When messages go
 * to and fro, each is waited for, and what counts is how soon it is there. A message that follows another one
 * without an answer is sent at once, so that senders can run ahead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "p2p/engine.h"

#define WAYS_OPEN    (WAY_BIT(WAY_PIECES) | WAY_BIT(WAY_READ))
#define LEASE        15    /* messages that go like the one before them without being measured */
#define SMALLEST     12288 /* classes as in the policy: around 8, 16 and 32 KiB, and above */
#define COPY_SAMPLES 4     /* one copy in so many is timed */
#define UNIT         65536u

static COUNTER(announced, "p2p_medium_announced",
               "Messages that fit into a frame and were announced because that has proved faster.");

static inline int class_of(uint64_t length)
{
    return (length >= SMALLEST) + (length >= 2 * SMALLEST) + (length >= 4 * SMALLEST);
}

static inline uint32_t heard_from(const struct peer *peer)
{
    uint32_t sum = 0;
    for (int i = 0; i < PEER_CLASSES; i++)
        sum += peer->heard[i];
    return sum;
}

/* True: it is not to be measured and not to be announced. */
bool medium_at_once(struct peer *to, uint64_t length)
{
    uint32_t heard = heard_from(to);
    if (to->answered == heard)
        return true;
    int i = class_of(length);
    if (to->medium[i].left == 0 || to->medium[i].announced)
        return false;
    to->medium[i].left--;
    to->answered = heard;
    return true;
}

bool medium_announced(struct p2p *p, struct p2p_request *r)
{
    struct peer *to = r->peer;
    if (likely(r->length <= to->eager_sure) || !r->block || medium_at_once(to, r->length))
        return false;
    int i = class_of(r->length);
    to->answered = heard_from(to);
    bool announce = to->medium[i].announced;
    if (to->medium[i].left > 0) {
        to->medium[i].left--;
    } else {
        announce = choice_ask(&p->sends, r->length, WAYS_OPEN, WAY_PIECES, CHOICE_LONE, clock_ns(),
                              &r->ticket) == WAY_READ;
        to->medium[i].announced = announce;
        to->medium[i].left = choice_settled(&p->sends, &r->ticket, WAYS_OPEN) ? LEASE : 0;
    }
    counter_add(&announced, announce);
    return announce;
}

/* The receiver copies too. How long is known from messages that came the other way. */
void medium_sent(struct p2p *p, struct p2p_request *r, int rc)
{
    uint64_t now = clock_ns(), mine = now - r->ticket.began;
    uint64_t its = p->copy_cost ? p->copy_cost * r->length / UNIT : mine;
    if (rc == 0)
        choice_learn_work(&p->sends, &r->ticket, now, mine + its);
    else
        choice_drop(&p->sends, &r->ticket);
}

void medium_took(struct p2p *p, struct p2p_request *r, uint64_t ns)
{
    if (ns)
        choice_learn_work(&p->sends, &r->ticket, clock_ns(), ns);
    else
        choice_drop(&p->sends, &r->ticket);
}

void medium_copy(struct p2p *p, struct p2p_request *r, const void *payload, size_t len)
{
    if (p->copied++ % COPY_SAMPLES != 0 && p->copy_cost) {
        recv_copy(r, payload, len);
        return;
    }
    uint64_t begun = clock_ns();
    recv_copy(r, payload, len);
    uint64_t cost = (clock_ns() - begun) * UNIT / len, usual = p->copy_cost ? p->copy_cost : cost;
    p->copy_cost = (uint32_t)MAX((usual * 3 + MIN(cost, usual * 2)) / 4, 1);
}
