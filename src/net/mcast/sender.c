/* sender.c: the send window: handles acknowledgements and lists packets to send again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/mcast/sender.h"

#include "base/util.h"

#define REORDERED 3 /* later packets that must arrive before a missing packet is considered lost */
#define STALLED   3 /* timeouts without progress after which multicast is assumed not to work (port down?) */

void mcast_sender_open(struct mcast_sender *s, const struct mcast_rules *rules, struct mcast_child *child,
                       uint32_t children, uint64_t *sent)
{
    *s = (struct mcast_sender){.rules = rules,
                               .child = child,
                               .sent = sent,
                               .children = children,
                               .acking = children,
                               .limit = rules->window,
                               .at_base = children,
                               .at_limit = children,
                               .deadline = MCAST_NEVER};
    for (uint32_t i = 0; i < children; i++)
        child[i] = (struct mcast_child){.limit = rules->window};
}

void mcast_sender_set_first_coroot(struct mcast_sender *s, uint32_t first)
{
    s->acking = first;
}

/* True at half a window, and for the last packet for which there is room: the next packets will need the
 * acknowledgements. */
static bool should_request_ack(const struct mcast_sender *s)
{
    const uint32_t half = MAX(s->rules->window / 2, 1u);
    return (s->rules->aggregate > 1 || s->rules->piggyback) &&
           ((s->next - s->base) % half == 0 || s->next == s->limit);
}

/* Finds the lowest acknowledgement and the lowest limit of all children. */
static void find_slowest(struct mcast_sender *s)
{
    uint32_t base = s->next, limit = s->base + s->rules->window + s->rules->ring;
    s->ahead = false;
    s->at_base = s->at_limit = 0;
    for (uint32_t i = 0; i < s->children; i++) {
        const struct mcast_child *c = &s->child[i];
        s->ahead = s->ahead || mcast_seq_is_before(s->next, c->next);
        if (mcast_seq_is_before(c->next, base)) {
            base = c->next;
            s->at_base = 0;
        }
        if (mcast_seq_is_before(c->limit, limit)) {
            limit = c->limit;
            s->at_limit = 0;
        }
        s->at_base += c->next == base;
        s->at_limit += c->limit == limit;
    }
    s->base = base;
    s->limit = limit;
}

uint32_t mcast_sender_add_packet(struct mcast_sender *s, uint64_t now, bool *ask)
{
    const uint32_t seq = s->next++;
    s->sent[seq % s->rules->window] = now;
    *ask = should_request_ack(s);
    if (s->children == 0)
        s->base = s->next;
    else if (s->ahead)
        find_slowest(s);
    if (!mcast_sender_is_idle(s) && s->deadline == MCAST_NEVER)
        s->deadline = now + s->rules->timeout;
    return seq;
}

void mcast_sender_window_full(struct mcast_sender *s, uint64_t now)
{
    if (s->deadline == MCAST_NEVER)
        s->deadline = now + s->rules->timeout;
}

static uint32_t sender_set_child(struct mcast_sender *s, uint32_t child, const struct mcast_ack *ack,
                                 uint64_t now)
{
    struct mcast_child *c = &s->child[child];
    const struct mcast_child was = *c;
    const uint32_t base = s->base;
    if (mcast_seq_is_before(s->base + 2 * s->rules->window, ack->next) ||
        mcast_seq_is_before(ack->next, c->next))
        return 0; /* the acknowledgement is invalid, or older than the last one */
    c->early = ack->next == c->next ? c->early | ack->early : ack->early;
    c->next = ack->next;
    c->limit = mcast_seq_later(c->limit, ack->limit);
    c->answered = true;
    const bool last_at_base = was.next == s->base && c->next != was.next && --s->at_base == 0;
    const bool last_at_limit = was.limit == s->limit && c->limit != was.limit && --s->at_limit == 0;
    if (last_at_base || last_at_limit || mcast_seq_is_before(s->next, c->next))
        find_slowest(s);
    if (s->base != base) {
        s->tries = 0;
        s->deadline = mcast_sender_is_idle(s) ? MCAST_NEVER : now + s->rules->timeout;
    }
    return s->base - base;
}

uint32_t mcast_sender_apply_ack(struct mcast_sender *s, uint32_t child, const struct mcast_ack *ack,
                                uint64_t now)
{
    const struct mcast_ack room = {.next = s->child[child].next, .limit = ack->limit};
    return sender_set_child(s, child, child < s->acking ? ack : &room, now);
}

void mcast_sender_delivered(struct mcast_sender *s, uint32_t child, uint64_t now)
{
    const struct mcast_ack one = {.next = s->child[child].next + 1, .limit = s->child[child].limit};
    sender_set_child(s, child, &one, now);
}

static bool child_lacks_packet(const struct mcast_child *c, uint32_t seq)
{
    const uint32_t ahead = seq - c->next;
    if (mcast_seq_is_before(seq, c->next))
        return false;
    return ahead >= MCAST_SPAN || !(c->early >> ahead & 1);
}

uint32_t mcast_sender_list_resends(struct mcast_sender *s, uint32_t child, uint64_t now,
                                   struct mcast_resend *out, uint32_t room)
{
    const struct mcast_child *c = &s->child[child];
    uint32_t n = 0, ahead = 0;
    for (; n < room && ahead + REORDERED < MCAST_SPAN && c->early >> (ahead + REORDERED) != 0; ahead++) {
        const uint32_t seq = c->next + ahead;
        uint64_t *sent = &s->sent[seq % s->rules->window];
        if (!mcast_seq_is_before(seq, s->next))
            break;
        if (!child_lacks_packet(c, seq) || now - *sent < s->rules->quiet)
            continue;
        *sent = now;
        out[n++] = (struct mcast_resend){.seq = seq, .to = child};
    }
    return n;
}

static bool child_needs_resend(const struct mcast_child *c, uint32_t seq)
{
    return child_lacks_packet(c, seq) && (c->answered || seq == c->next);
}

/* True if a packet that `count` members miss is resent by multicast, not over their connections. */
static bool should_multicast_resend(const struct mcast_sender *s, uint32_t count)
{
    return count > s->rules->few && s->tries < STALLED;
}

/* Lists packet `seq` to be sent again: to each child that misses it if they are few, else to all. Returns the
 * number of entries. */
static uint32_t sender_resend_packet(const struct mcast_sender *s, uint32_t seq, struct mcast_resend *out,
                                     uint32_t room)
{
    uint32_t n = 0, missing = 0;
    for (uint32_t i = 0; i < s->acking; i++)
        missing += child_needs_resend(&s->child[i], seq);
    if (should_multicast_resend(s, missing) && room > 0) {
        out[0] = (struct mcast_resend){.seq = seq, .to = MCAST_ALL};
        return 1;
    }
    for (uint32_t i = 0; i < s->acking && n < room; i++)
        if (child_needs_resend(&s->child[i], seq))
            out[n++] = (struct mcast_resend){.seq = seq, .to = i};
    return n;
}

/* Lists requests for acknowledgements to children that have not acknowledged, or have no room. */
static uint32_t sender_request_acks(const struct mcast_sender *s, struct mcast_resend *out, uint32_t room)
{
    uint32_t n = 0, late = 0;
    for (uint32_t i = 0; i < s->children; i++)
        late += s->child[i].next != s->next || !mcast_seq_is_before(s->next, s->child[i].limit);
    if (should_multicast_resend(s, late) && room > 0) {
        out[0] = (struct mcast_resend){.seq = s->next - 1, .to = MCAST_ALL, .ask = true};
        return 1;
    }
    for (uint32_t i = 0; i < s->children && n < room; i++)
        if (s->child[i].next != s->next || !mcast_seq_is_before(s->next, s->child[i].limit))
            out[n++] = (struct mcast_resend){.seq = s->next - 1, .to = i, .ask = true};
    return n;
}

/* True if acknowledgements may only be late: requesting them costs less than sending the data again. */
static bool should_request_acks(const struct mcast_sender *s)
{
    return mcast_sender_is_idle(s) || ((s->rules->aggregate > 1 || s->rules->piggyback) && s->tries == 0);
}

uint32_t mcast_sender_timeout(struct mcast_sender *s, uint64_t now, struct mcast_resend *out, uint32_t room)
{
    uint32_t n = 0;
    if (now < s->deadline)
        return 0;
    if (should_request_acks(s)) {
        n = sender_request_acks(s, out, room);
    } else {
        const uint32_t most = MIN(s->next - s->base, s->rules->burst);
        for (uint32_t i = 0; i < most && n < room; i++) {
            n += sender_resend_packet(s, s->base + i, out + n, room - n);
            s->sent[(s->base + i) % s->rules->window] = now;
        }
    }
    for (uint32_t i = 0; i < s->children; i++)
        s->child[i].answered = false;
    const uint64_t wait = s->rules->timeout << MIN(s->tries, 20u);
    s->deadline = n == 0 && mcast_sender_is_idle(s) ? MCAST_NEVER : now + MIN(wait, s->rules->timeout_max);
    s->tries++;
    return n;
}
