/* stream.c: orders the packets of one sender and schedules acknowledgements.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/mcast/stream.h"

#include "base/util.h"

void mcast_stream_open(struct mcast_stream *s, const struct mcast_rules *rules)
{
    *s = (struct mcast_stream){.promised = rules->window, .due = MCAST_NEVER};
}

void mcast_stream_set_delivered(struct mcast_stream *s)
{
    s->delivered = true;
}

/* True if this member's turn to acknowledge is among the packets that arrived since the last acknowledgement
 * (rules.skew), or rules.aggregate packets have arrived. */
static bool stream_must_acknowledge(const struct mcast_stream *s, const struct mcast_rules *rules,
                                    uint32_t skew)
{
    const uint32_t m = MAX(rules->aggregate, 1u), news = s->next - s->acked;
    if (!rules->skew || news >= m)
        return news >= m;
    const uint32_t from_acked = (skew % m + m - s->acked % m) % m;
    return from_acked < news;
}

/* Advances over the next packet in order and over later ones that arrived early. */
static void stream_advance(struct mcast_stream *s)
{
    do {
        s->next++;
        s->early >>= 1;
    } while (s->early & 1);
}

static void stream_schedule_ack(struct mcast_stream *s, const struct mcast_rules *rules, uint32_t skew,
                                const struct mcast_arrival *a)
{
    if (a->ask || (!s->delivered && !rules->piggyback && stream_must_acknowledge(s, rules, skew)))
        s->owe = true;
    else if (!s->delivered)
        s->due = MIN(s->due, a->now + rules->delay);
}

enum mcast_verdict mcast_stream_classify_packet(struct mcast_stream *s, const struct mcast_rules *rules,
                                                uint32_t skew, const struct mcast_arrival *a)
{
    const uint32_t ahead = a->seq - s->next;
    if (mcast_seq_is_before(a->seq, s->next) || (ahead < MCAST_SPAN && (s->early >> ahead & 1))) {
        s->owe |= !s->delivered || a->ask; /* the sender does not know that it has arrived */
        return MCAST_DUPLICATE;
    }
    if (ahead >= MCAST_SPAN || ahead >= a->relay || a->seq - s->taken >= rules->ring) {
        s->owe |= !s->delivered;
        return MCAST_REFUSE;
    }
    if (ahead == 0 && a->wanted && !mcast_stream_has_packet(s)) {
        s->taken++;
        stream_advance(s);
        stream_schedule_ack(s, rules, skew, a);
        return MCAST_TAKE;
    }
    if (a->room == 0) {
        s->owe |= !s->delivered;
        return MCAST_REFUSE;
    }
    if (ahead == 0) {
        stream_advance(s);
        stream_schedule_ack(s, rules, skew, a);
    } else {
        s->early |= UINT64_C(1) << ahead;
        s->owe |= !s->delivered; /* reports the missing packets */
    }
    return MCAST_KEEP;
}

void mcast_stream_packet_taken(struct mcast_stream *s)
{
    s->taken++;
    mcast_stream_buffers_freed(s);
}

void mcast_stream_buffers_freed(struct mcast_stream *s)
{
    if (!s->delivered && !mcast_seq_is_before(s->next, s->promised))
        s->owe = true;
}

static uint32_t stream_room(const struct mcast_stream *s, const struct mcast_rules *rules, uint32_t relay)
{
    return MIN(rules->ring - (s->next - s->taken), relay);
}

void mcast_stream_offer_window(struct mcast_stream *s, const struct mcast_rules *rules, uint32_t relay)
{
    const uint32_t worth = s->promised + MAX(rules->window / 2, 1u);
    if (s->delivered && !mcast_seq_is_before(s->next + stream_room(s, rules, relay), worth))
        s->owe = true;
}

void mcast_stream_request_ack(struct mcast_stream *s)
{
    s->owe = true;
}

struct mcast_ack mcast_stream_ack(struct mcast_stream *s, const struct mcast_rules *rules, uint32_t room,
                                  uint32_t relay)
{
    uint32_t more = stream_room(s, rules, relay);
    /* A packet that the application waits for needs no buffer, so one packet can always be accepted. A packet
     * from a connection needs no buffer of the transport. */
    if (!s->delivered)
        more = MIN(more, s->next == s->taken ? MAX(room, 1u) : room);
    s->acked = s->next;
    s->promised = mcast_seq_later(s->promised, s->next + more);
    s->owe = false;
    s->due = MCAST_NEVER;
    return (struct mcast_ack){.next = s->next, .limit = s->promised, .early = s->early};
}
