/* mcast_group_send.c: the send window of this member: its own packets, and those of senders for which it is a co-root. Packets
 * are sent by multicast; a packet that only a few members missed is sent again to each of them over its connection.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "net/mcast_group_part.h"

#define AGAIN 16 /* packets sent again at a time */

static COUNTER(packets, "mcast_packets", "Multicast packets sent for the first time.");
static COUNTER(again_all, "mcast_resent_to_all",
               "Multicast packets sent again to all members because several missed them.");
static COUNTER(again_one, "mcast_resent_to_one",
               "Multicast packets sent again to one member that missed them.");
static COUNTER(delivered, "mcast_delivered",
               "Multicast packets sent to a co-root over its connection besides (deliver=1).");
static COUNTER(ack_requests, "mcast_ack_requests", "Requests sent to members for overdue acknowledgements.");
static COUNTER(
    notes_read, "mcast_acks_by_write",
    "Acknowledgements of multicast packets that members wrote into this process's memory by RDMA.");
static COUNTER(acks_read, "mcast_acks_by_message",
               "Acknowledgements of multicast packets received as messages.");
static COUNTER(waits, "mcast_window_waits",
               "Times a broadcast waited because its send window was full or a member had no free buffer.");

uint64_t group_note_checksum(uint64_t group, const struct mcast_ack *ack)
{
    uint64_t h = (group + 1) * 0x9e3779b97f4a7c15u;
    h = (h ^ ack->next ^ (uint64_t)ack->limit << 32) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 32 ^ ack->early) * 0xff51afd7ed558ccdu;
    return h | 1;
}

/* Opens the window of `root`'s packets that this member sends or relays to its children. `length` has an entry for each packet. */
static int window_open(const struct net_group *g, uint32_t root, const struct mcast_rules *rules,
                       struct mcast_sender *s, uint32_t **length)
{
    const struct mcast_tree tree = group_tree(g, root);
    const uint32_t children = mcast_tree_children(&tree, g->setup.me);
    struct mcast_child *child = calloc(children + 1, sizeof(*child));
    uint64_t *sent = calloc(rules->window, sizeof(*sent));
    *length = calloc(rules->window, sizeof(**length));
    if (!child || !sent || !*length) {
        free(child);
        free(sent);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a multicast group");
    }
    mcast_sender_open(s, rules, child, children, sent);
    if (g->setup.deliver)
        mcast_sender_set_first_coroot(s, mcast_tree_leaves(&tree, g->setup.me));
    return 0;
}

static void window_close(struct mcast_sender *s, uint32_t *length)
{
    free(s->child);
    free(s->sent);
    free(length);
}

int group_send_open(struct net_group *g)
{
    return window_open(g, g->setup.me, &g->setup.rules, &g->sender, &g->length);
}

void group_send_close(struct net_group *g)
{
    window_close(&g->sender, g->length);
}

/* ---- out ---- */

static struct frame_header make_frame_header(const struct net_group *g, uint32_t root, unsigned flags)
{
    return (struct frame_header){.kind = NET_FRAME_GROUP,
                                 .flags = (uint8_t)flags,
                                 .aux = (uint16_t)root,
                                 .context = (uint32_t)g->setup.id,
                                 .source = (int32_t)(g->setup.id >> 32),
                                 .tag = (int32_t)g->setup.me};
}

/* Sends a packet, or with length 0 a request for an acknowledgement, to one member. If it cannot be sent now it counts
 * as lost, and the timer repeats it. */
static void send_packet_to_member(struct net_group *g, uint32_t root, uint32_t member, uint32_t seq,
                                  const void *packet, uint32_t length)
{
    const struct group_head question = {
        .group = g->setup.id, .seq = seq, .from = (uint16_t)root, .flags = GROUP_ASK | GROUP_EMPTY};
    const struct frame_header h = make_frame_header(g, root, GROUP_ASK);
    struct peer *peer;
    if (group_peer(g, member, &peer) != 0)
        return;
    if (peer_send(peer, &h, length ? packet : &question, length ? length : sizeof(question)) == 0)
        counter_add(length ? &again_one : &ack_requests, 1);
}

/* ---- reliable delivery to co-roots ---- */

/* The window of packets that this member sends or relays, of one root. */
struct group_window {
    struct mcast_sender *sender;
    const struct group_relay *relay; /* NULL: the window of this member's own packets */
    uint32_t root;
};

static const void *window_packet(struct net_group *g, const struct group_window *w, uint32_t seq,
                                 uint32_t *length)
{
    const uint32_t slot = seq % g->setup.rules.window;
    *length = w->relay ? w->relay->length[slot] : g->length[slot];
    return w->relay ? w->relay->packets + slot * (g->payload + sizeof(struct group_head))
                    : g->ops->slot(g->member, slot);
}

/* Sends undelivered packets to co-roots over their connections, in order, as far as these have room. Returns
 * the number of packets. */
static int window_send_to_coroots(struct net_group *g, const struct group_window *w)
{
    struct mcast_sender *s = w->sender;
    const struct mcast_tree tree = group_tree(g, w->root);
    const struct frame_header h = make_frame_header(g, w->root, 0);
    uint32_t seq, length;
    struct peer *to;
    int n = 0;
    for (uint32_t i = s->acking; i < s->children; i++)
        while (mcast_sender_next_undelivered(s, i, &seq)) {
            const void *packet = window_packet(g, w, seq, &length);
            if (group_peer(g, mcast_tree_child(&tree, g->setup.me, i), &to) == 0 &&
                peer_send(to, &h, packet, length) == ERR_AGAIN)
                break;
            mcast_sender_delivered(s, i, clock_ns());
            n++;
        }
    counter_add(&delivered, (uint64_t)n);
    return n;
}

static bool window_has_undelivered(const struct mcast_sender *s)
{
    uint32_t seq;
    for (uint32_t i = s->acking; i < s->children; i++)
        if (mcast_sender_next_undelivered(s, i, &seq))
            return true;
    return false;
}

bool group_has_undelivered(struct net_group *g)
{
    bool owes = window_has_undelivered(&g->sender);
    for (uint32_t i = 0; g->setup.deliver && i < g->setup.members && !owes; i++)
        owes = g->streams[i] && g->streams[i]->relay && window_has_undelivered(&g->streams[i]->relay->sender);
    return owes;
}

static void multicast_packet(struct net_group *g, const struct mcast_resend *r)
{
    const uint32_t window = g->setup.rules.window;
    const uint32_t slot = r->ask ? window : r->seq % window;
    if (g->ops->busy(g->member, slot))
        return; /* the slot's packet is being sent */
    struct group_head *h = g->ops->slot(g->member, slot);
    if (r->ask)
        *h = (struct group_head){
            .group = g->setup.id, .seq = r->seq, .from = (uint16_t)g->setup.me, .flags = GROUP_EMPTY};
    h->flags |= GROUP_ASK;
    if (g->ops->send(g->member, slot, r->ask ? sizeof(*h) : g->length[slot]) == 0)
        counter_add(r->ask ? &ack_requests : &again_all, 1);
}

static void group_resend_packets(struct net_group *g, const struct mcast_resend *r, uint32_t n)
{
    const struct mcast_tree tree = group_tree(g, g->setup.me);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t slot = r[i].seq % g->setup.rules.window;
        if (r[i].to == MCAST_ALL)
            multicast_packet(g, &r[i]);
        else
            send_packet_to_member(g, g->setup.me, mcast_tree_child(&tree, g->setup.me, r[i].to), r[i].seq,
                                  g->ops->slot(g->member, slot), r[i].ask ? 0 : g->length[slot]);
    }
}

static void relay_resend(struct net_group *g, const struct group_stream *s, const struct mcast_resend *r,
                         uint32_t n)
{
    const struct mcast_tree tree = group_tree(g, s->from);
    const struct group_relay *y = s->relay;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t slot = r[i].seq % y->rules.window;
        send_packet_to_member(g, s->from, mcast_tree_child(&tree, g->setup.me, r[i].to), r[i].seq,
                              y->packets + slot * (g->payload + sizeof(struct group_head)),
                              r[i].ask ? 0 : y->length[slot]);
    }
}

size_t net_group_send(struct net_group *g, uint32_t channel, const char *message, size_t at, size_t total)
{
    const size_t before = at;
    const uint64_t now = clock_ns();
    while (at < total && mcast_sender_free_slots(&g->sender) > 0) {
        const uint32_t slot = g->sender.next % g->setup.rules.window;
        g->wants_slot = g->ops->busy(g->member, slot);
        if (g->wants_slot)
            return at - before;
        struct group_head *h = g->ops->slot(g->member, slot);
        const size_t n = MIN(g->payload, total - at);
        bool ask;
        *h = (struct group_head){.group = g->setup.id,
                                 .seq = mcast_sender_add_packet(&g->sender, now, &ask),
                                 .from = (uint16_t)g->setup.me,
                                 .total = (uint32_t)total,
                                 .channel = channel};
        h->flags = ask ? GROUP_ASK : 0;
        memcpy(h + 1, message + at, n);
        g->length[slot] = (uint32_t)(sizeof(*h) + n);
        struct group_carried carried;
        if (g->setup.rules.piggyback && group_pop_pending_ack(g, &carried)) {
            memcpy((char *)h + g->length[slot], &carried, sizeof(carried));
            g->length[slot] += (uint32_t)sizeof(carried);
            h->flags |= GROUP_CARRIES;
        }
        if (g->ops->send(g->member, slot, g->length[slot]) == 0)
            counter_add(&packets, 1);
        at += n;
    }
    window_send_to_coroots(g, &(struct group_window){&g->sender, NULL, g->setup.me});
    if (at < total) {
        mcast_sender_window_full(&g->sender, now);
        if (at != before || before == 0)
            counter_add(&waits, 1);
    }
    return at - before;
}

bool net_group_can_send(const struct net_group *g)
{
    return mcast_sender_free_slots(&g->sender) > 0 &&
           !g->ops->busy(g->member, g->sender.next % g->setup.rules.window);
}

bool net_group_is_idle(const struct net_group *g)
{
    return mcast_sender_is_idle(&g->sender);
}

/* ---- acknowledgements in ---- */

static void group_apply_ack(struct net_group *g, uint32_t root, uint32_t index, const struct mcast_ack *ack)
{
    struct mcast_resend out[AGAIN] = {0};
    const uint64_t now = clock_ns();
    struct group_stream *s; /* created here if the packet reached the leaf before this co-root */
    if (root == g->setup.me) {
        mcast_sender_apply_ack(&g->sender, index, ack, now);
        if (ack->early)
            group_resend_packets(g, out, mcast_sender_list_resends(&g->sender, index, now, out, AGAIN));
        return;
    }
    CHECK_MEMORY(group_get_stream(g, root, &s) == 0, "a multicast stream");
    if (!s->relay)
        return;
    mcast_sender_apply_ack(&s->relay->sender, index, ack, now);
    if (ack->early)
        relay_resend(g, s, out, mcast_sender_list_resends(&s->relay->sender, index, now, out, AGAIN));
    group_relay_slots_freed(g, s);
}

void group_handle_ack(struct net_group *g, uint32_t from, uint32_t root, const struct mcast_ack *ack)
{
    if (from >= g->setup.members || root >= g->setup.members || from == root)
        return;
    const struct mcast_tree tree = group_tree(g, root);
    if (mcast_tree_parent(&tree, from) != g->setup.me)
        return;
    counter_add(&acks_read, 1);
    group_apply_ack(g, root, mcast_tree_index(&tree, from), ack);
}

/* Reads the acknowledgements of one root's packets that children have written since the last call. */
static int window_read_acks(struct net_group *g, const struct group_window *w)
{
    const struct mcast_tree tree = group_tree(g, w->root);
    int events = 0;
    for (uint32_t i = 0; g->notes && i < w->sender->children; i++) {
        const uint32_t child = mcast_tree_child(&tree, g->setup.me, i);
        struct group_note *at = &g->notes->note[mcast_tree_place(&tree, child)];
        const uint64_t check = __atomic_load_n(&at->check, __ATOMIC_ACQUIRE);
        if (check == at->pad)
            continue;
        const struct mcast_ack ack = {.next = __atomic_load_n(&at->ack.next, __ATOMIC_RELAXED),
                                      .limit = __atomic_load_n(&at->ack.limit, __ATOMIC_RELAXED),
                                      .early = __atomic_load_n(&at->ack.early, __ATOMIC_RELAXED)};
        if (group_note_checksum(g->setup.id, &ack) != check)
            continue; /* other words of the acknowledgement have not arrived yet */
        at->pad = check;
        counter_add(&notes_read, 1);
        group_apply_ack(g, w->root, i, &ack);
        events++;
    }
    return events;
}

int group_send_poll(struct net_group *g)
{
    int events = 0;
    if (g->wants_slot && net_group_can_send(g)) {
        g->wants_slot = false;
        events++;
    }
    if (mcast_sender_is_idle(&g->sender) && g->sender.deadline == MCAST_NEVER)
        return events;
    const struct group_window own = {&g->sender, NULL, g->setup.me};
    events += window_read_acks(g, &own) + window_send_to_coroots(g, &own);
    if (g->sender.deadline == MCAST_NEVER)
        return events;
    const uint64_t now = clock_ns();
    if (now >= g->sender.deadline) {
        struct mcast_resend out[AGAIN] = {0};
        group_resend_packets(g, out, mcast_sender_timeout(&g->sender, now, out, AGAIN));
    }
    return events;
}

/* ---- co-roots ---- */

int group_relay_open(struct net_group *g, struct group_stream *s)
{
    const struct mcast_tree tree = group_tree(g, s->from);
    if (mcast_tree_children(&tree, g->setup.me) == 0)
        return 0;
    struct group_relay *y = calloc(1, sizeof(*y));
    if (!y)
        return MPI_ERR_NO_MEM;
    s->relay = y;
    y->rules = g->setup.rules;
    y->rules.few = UINT32_MAX;
    y->packets = malloc(y->rules.window * (g->payload + sizeof(struct group_head)));
    return y->packets ? window_open(g, s->from, &y->rules, &y->sender, &y->length) : MPI_ERR_NO_MEM;
}

void group_relay_close(struct group_stream *s)
{
    if (!s->relay)
        return;
    window_close(&s->relay->sender, s->relay->length);
    free(s->relay->packets);
    free(s->relay);
}

void group_relay_push(struct net_group *g, struct group_stream *s, const struct group_head *h,
                      const void *data, size_t len)
{
    struct group_relay *y = s->relay;
    const uint32_t slot = h->seq % y->rules.window;
    bool ask;
    ASSERT(h->seq == y->sender.next);
    char *packet = y->packets + slot * (g->payload + sizeof(*h));
    memcpy(packet, h, sizeof(*h));
    memcpy(packet + sizeof(*h), data, len);
    y->length[slot] = (uint32_t)(sizeof(*h) + len);
    mcast_sender_add_packet(&y->sender, clock_ns(), &ask);
}

int group_relay_poll(struct net_group *g, struct group_stream *s)
{
    struct group_relay *y = s->relay;
    if (mcast_sender_is_idle(&y->sender))
        return 0;
    struct mcast_resend out[AGAIN] = {0};
    const struct group_window w = {&y->sender, y, s->from};
    const int events = window_read_acks(g, &w) + window_send_to_coroots(g, &w);
    const uint64_t now = clock_ns();
    if (now >= y->sender.deadline)
        relay_resend(g, s, out, mcast_sender_timeout(&y->sender, now, out, AGAIN));
    if (g->setup.deliver)
        group_relay_slots_freed(g, s);
    return events;
}
