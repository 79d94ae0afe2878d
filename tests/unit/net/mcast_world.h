/* mcast_world.h: a root and two members that run the state machines of the reliable multicast over a
 * network that loses, duplicates and reorders packets. The model is small enough to visit every state.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_MCAST_WORLD_H
#define FP_TESTS_MCAST_WORLD_H

#include "base/util.h"
#include "net/mcast/sender.h"
#include "net/mcast/stream.h"
#include "net/mcast/ack_tree.h"

#define MEMBERS    3
#define WINDOW_MAX 4
#define FLIGHT_MAX 3  /* packets in flight, at most */
#define TIME_DUE   10 /* a time at which every deadline has expired */

enum { DATA = 1, ASK, ACK };

struct flight {
    uint8_t kind, from, to, requests_ack;
    uint32_t seq; /* sequence number; of an acknowledgement: its member `next` */
    uint32_t limit;
    uint32_t early;
};

/* States compare byte by byte: pointers are NULL between two steps, times are one of two. */
struct world {
    struct mcast_sender sender[2]; /* the root's, and that of member 1 when it is a co-root */
    struct mcast_child child[2][MEMBERS];
    uint64_t sent[2][WINDOW_MAX];
    struct mcast_stream stream[MEMBERS];
    uint8_t ring[MEMBERS][WINDOW_MAX]; /* sequence number + 1 of the packet stored in the slot; 0: empty */
    uint8_t from_connection[MEMBERS][WINDOW_MAX]; /* the packet occupies no receive buffer of the adapter */
    uint8_t wants_packet[MEMBERS];                /* the application waits for a packet */
    uint8_t buffers_used[MEMBERS];
    uint8_t departed[MEMBERS]; /* the member has received and acknowledged everything and has closed */
    uint8_t carried;           /* packets that the connection has delivered to the co-root */
    uint8_t pad[3];
    struct flight reliable_ack[MEMBERS]; /* the last acknowledgement of a member until its parent reads it */
    struct flight flight[FLIGHT_MAX];
};

struct setting {
    const char *name;
    struct mcast_rules rules;
    struct mcast_tree tree;
    uint32_t messages, room; /* packets to send; receive buffers of a member */
    int flight;              /* packets in flight at most; further packets are lost */
    bool reliable_acks; /* acknowledgements are never lost, and members close when they have everything */
};

static const struct setting *setting;
static const char *wrong; /* description of the first error; NULL: none */

static inline void world_bind_pointers(struct world *w, bool bind)
{
    for (int i = 0; i < 2; i++) {
        w->sender[i].rules = bind ? &setting->rules : NULL;
        w->sender[i].child = bind ? w->child[i] : NULL;
        w->sender[i].sent = bind ? w->sent[i] : NULL;
    }
}

static inline int compare_packets_in_flight(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct flight));
}

/* Normalises the state, so that states that behave alike compare equal. */
static inline void world_normalise(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        struct mcast_sender *s = &w->sender[i];
        s->deadline = s->deadline == MCAST_NEVER ? MCAST_NEVER : TIME_DUE;
        s->tries = MIN(s->tries, 1u);
        memset(w->sent[i], 0, sizeof(w->sent[i]));
    }
    for (int i = 1; i < MEMBERS; i++)
        w->stream[i].due = w->stream[i].due == MCAST_NEVER ? MCAST_NEVER : TIME_DUE;
    qsort(w->flight, FLIGHT_MAX, sizeof(*w->flight), compare_packets_in_flight);
    world_bind_pointers(w, false);
}

static inline void world_init(struct world *w)
{
    memset(w, 0, sizeof(*w));
    for (uint32_t i = 0; i < 2; i++)
        mcast_sender_open(&w->sender[i], &setting->rules, w->child[i], mcast_tree_children(&setting->tree, i),
                          w->sent[i]);
    for (int i = 0; i < MEMBERS; i++)
        mcast_stream_open(&w->stream[i], &setting->rules);
    if (setting->tree.deliver) {
        mcast_sender_set_first_coroot(&w->sender[0], mcast_tree_leaves(&setting->tree, 0));
        mcast_stream_set_delivered(&w->stream[1]);
    }
    world_normalise(w);
}

static inline void send_packet(struct world *w, struct flight f)
{
    for (int i = FLIGHT_MAX - setting->flight; i < FLIGHT_MAX; i++)
        if (w->flight[i].kind == 0) {
            w->flight[i] = f;
            return;
        }
}

static inline bool is_coroot(uint32_t member)
{
    return member == 1 && mcast_tree_children(&setting->tree, 1) > 0;
}

static inline uint32_t forwarding_window_room(const struct world *w, uint32_t member)
{
    return is_coroot(member) ? setting->rules.window - (w->sender[1].next - w->sender[1].base) : UINT32_MAX;
}

static inline void send_ack(struct world *w, uint32_t member)
{
    const uint32_t relay = forwarding_window_room(w, member);
    const struct mcast_ack a =
        mcast_stream_ack(&w->stream[member], &setting->rules, setting->room - w->buffers_used[member], relay);
    const struct flight f = {.kind = ACK,
                             .from = (uint8_t)member,
                             .to = (uint8_t)mcast_tree_parent(&setting->tree, member),
                             .seq = a.next,
                             .limit = a.limit,
                             .early = (uint32_t)a.early};
    if (setting->reliable_acks)
        w->reliable_ack[member] = f;
    else
        send_packet(w, f);
}

static inline void resend_packets(struct world *w, uint32_t member, const struct mcast_resend *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t c = 0; c < w->sender[member].children; c++)
            if (r[i].to == MCAST_ALL || r[i].to == c)
                send_packet(w, (struct flight){.kind = r[i].ask ? ASK : DATA,
                                               .from = (uint8_t)member,
                                               .to = (uint8_t)mcast_tree_child(&setting->tree, member, c),
                                               .requests_ack = 1,
                                               .seq = r[i].seq});
}

/* The application takes the next packet if the packet has arrived. */
static inline void consume_next_packet(struct world *w, uint32_t m)
{
    struct mcast_stream *s = &w->stream[m];
    if (!w->wants_packet[m] || !mcast_stream_has_packet(s))
        return;
    uint8_t *slot = &w->ring[m][s->taken % setting->rules.ring];
    if (*slot != s->taken + 1)
        wrong = "the application received a packet that is not the next one";
    *slot = 0;
    w->buffers_used[m] -= !w->from_connection[m][s->taken % setting->rules.ring];
    w->from_connection[m][s->taken % setting->rules.ring] = 0;
    w->wants_packet[m] = 0;
    mcast_stream_packet_taken(s);
    mcast_stream_offer_window(s, &setting->rules, forwarding_window_room(w, m));
}

/* Adds all packets that the co-root received in order to the window towards its children. */
static inline void forward_to_window(struct world *w)
{
    bool ask;
    while (is_coroot(1) && w->sender[1].next != w->stream[1].next) {
        if (w->sender[1].next - w->sender[1].base == setting->rules.window)
            wrong = "a co-root accepted more packets than its window holds";
        mcast_sender_add_packet(&w->sender[1], 0, &ask);
    }
}

static inline void receive_data(struct world *w, const struct flight *f, bool sure)
{
    struct mcast_stream *s = &w->stream[f->to];
    const uint32_t before = s->taken;
    const struct mcast_arrival a = {.seq = f->seq,
                                    .wanted = w->wants_packet[f->to],
                                    .ask = f->requests_ack,
                                    .room = sure ? 1 : setting->room - w->buffers_used[f->to],
                                    .relay = forwarding_window_room(w, f->to)};
    const uint32_t skew = mcast_tree_index(&setting->tree, f->to);
    const enum mcast_verdict v = mcast_stream_classify_packet(s, &setting->rules, skew, &a);
    if (v == MCAST_TAKE) {
        if (f->seq != before || s->taken != before + 1)
            wrong = "the application received a packet out of order";
        w->wants_packet[f->to] = 0;
    } else if (v == MCAST_KEEP) {
        uint8_t *slot = &w->ring[f->to][f->seq % setting->rules.ring];
        if (*slot != 0)
            wrong = "a packet was overwritten before the application received it";
        *slot = (uint8_t)(f->seq + 1);
        w->buffers_used[f->to] += !sure;
        w->from_connection[f->to][f->seq % setting->rules.ring] = sure;
    } else if (sure && v == MCAST_REFUSE) {
        wrong = "a co-root refused a packet of the connection";
    }
    if (f->to == 1)
        forward_to_window(w);
    mcast_stream_offer_window(s, &setting->rules, forwarding_window_room(w, f->to));
}

/* Announces the room in the co-root's window after a packet has left it. */
static inline void announce_window_room(struct world *w, uint32_t m)
{
    mcast_stream_offer_window(&w->stream[m], &setting->rules, forwarding_window_room(w, m));
    if (w->stream[m].owe && !w->departed[m])
        send_ack(w, m);
}

static inline void receive_packet(struct world *w, struct flight f)
{
    struct mcast_resend out[4];
    if (f.kind == ACK) {
        struct mcast_sender *s = &w->sender[f.to];
        const uint32_t c = mcast_tree_index(&setting->tree, f.from);
        const struct mcast_ack a = {.next = f.seq, .limit = f.limit, .early = f.early};
        mcast_sender_apply_ack(s, c, &a, 0);
        resend_packets(w, f.to, out, mcast_sender_list_resends(s, c, 0, out, COUNT_OF(out)));
        if (f.to == 1)
            announce_window_room(w, 1);
        return;
    }
    if (w->departed[f.to])
        return;
    if (f.kind == ASK)
        mcast_stream_request_ack(&w->stream[f.to]);
    else
        receive_data(w, &f, false);
    if (w->stream[f.to].owe)
        send_ack(w, f.to);
}

/* The root passes packets to its connection with the co-root (deliver); the connection brings them to the
 * co-root (carry). */
static inline bool can_pass_to_connection(const struct world *w)
{
    uint32_t seq;
    return setting->tree.deliver && mcast_sender_next_undelivered(&w->sender[0], w->sender[0].acking, &seq);
}

static inline void pass_to_connection(struct world *w)
{
    mcast_sender_delivered(&w->sender[0], w->sender[0].acking, 0);
}

static inline bool can_receive_from_connection(const struct world *w)
{
    return setting->tree.deliver && w->carried != w->child[0][w->sender[0].acking].next;
}

static inline void receive_from_connection(struct world *w)
{
    const struct flight f = {.kind = DATA, .to = 1, .seq = w->carried++};
    if (!w->departed[1])
        receive_data(w, &f, true);
    if (w->stream[1].owe)
        send_ack(w, 1);
}

static inline bool can_depart(const struct world *w, uint32_t m)
{
    const struct mcast_stream *s = &w->stream[m];
    return setting->reliable_acks && !w->departed[m] && s->taken == setting->messages && !s->owe &&
           s->due == MCAST_NEVER && (m != 1 || mcast_sender_is_idle(&w->sender[1]));
}

static inline void receive_reliable_ack(struct world *w, uint32_t m)
{
    const struct flight f = w->reliable_ack[m];
    w->reliable_ack[m] = (struct flight){0};
    receive_packet(w, f);
}

static inline bool can_send_new_packet(const struct world *w)
{
    return w->sender[0].next < setting->messages && mcast_sender_free_slots(&w->sender[0]) > 0;
}

static inline void send_new_packet(struct world *w)
{
    bool ask;
    const uint32_t seq = mcast_sender_add_packet(&w->sender[0], 0, &ask);
    for (uint8_t m = 1; m < MEMBERS; m++)
        send_packet(w, (struct flight){.kind = DATA, .to = m, .seq = seq, .requests_ack = ask});
}

static inline void expire_timer(struct world *w, uint32_t member)
{
    struct mcast_resend out[4];
    resend_packets(w, member, out, mcast_sender_timeout(&w->sender[member], TIME_DUE, out, COUNT_OF(out)));
}

static inline void request_packet(struct world *w, uint32_t m)
{
    w->wants_packet[m] = 1;
    consume_next_packet(w, m);
    if (w->stream[m].owe)
        send_ack(w, m);
}

static inline bool is_complete(const struct world *w)
{
    for (int m = 1; m < MEMBERS; m++)
        if (w->stream[m].taken != setting->messages)
            return false;
    return w->sender[0].next == setting->messages && mcast_sender_is_idle(&w->sender[0]) &&
           mcast_sender_is_idle(&w->sender[1]);
}

/* Checks that a packet leaves a window only after all children that acknowledge to the window's owner have
 * received it. */
static inline void check_windows(const struct world *w)
{
    for (uint32_t m = 0; m < 2; m++)
        for (uint32_t c = 0; c < w->sender[m].children; c++)
            if (c < w->sender[m].acking &&
                mcast_seq_is_before(w->stream[mcast_tree_child(&setting->tree, m, c)].next,
                                    w->sender[m].base))
                wrong = "a packet left the window before a member had received it";
    for (int m = 1; m < MEMBERS; m++)
        if (w->buffers_used[m] > setting->room)
            wrong = "a member keeps more packets than it has buffers";
}

#endif
