/* mcast_group_receive.c: the receiving side of a group member: puts packets in order, delivers them to the broadcast that
 * waits for them, and acknowledges them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "net/mcast_group_part.h"

#define NO_HANDLE UINT32_MAX
#define ASIDE_MAX ((size_t)16 << 20) /* bytes */

static COUNTER(received, "mcast_received", "Multicast packets received, without duplicates.");
static COUNTER(duplicates, "mcast_duplicates",
               "Multicast packets received more than once; the copies were dropped.");
static COUNTER(refused, "mcast_refused",
               "Multicast packets dropped because no buffer was free; the sender sends them again.");
static COUNTER(
    early, "mcast_packets_stored",
    "Multicast packets that arrived out of order or before their MPI_Bcast was called, and were stored.");
static COUNTER(asides, "mcast_put_aside",
               "Multicast messages stored because this process needed a later one first.");
static COUNTER(acks_written, "mcast_acks_written",
               "Acknowledgements of multicast packets written by RDMA into the memory of the process that "
               "collects them.");
static COUNTER(
    acks_carried, "mcast_acks_carried",
    "Acknowledgements of multicast packets that a multicast packet of the same process took along.");
static COUNTER(acks_sent, "mcast_acks_sent", "Acknowledgements of multicast packets sent as messages.");

static uint32_t relay_free_slots(const struct group_stream *s)
{
    const struct group_relay *y = s->relay;
    return y ? y->rules.window - (y->sender.next - y->sender.base) : UINT32_MAX;
}

static void mark_stream_dirty(struct net_group *g, struct group_stream *s)
{
    if ((s->in.owe || s->in.due != MCAST_NEVER) && list_empty(&s->dirty))
        list_append(&g->dirty, &s->dirty);
}

int group_get_stream(struct net_group *g, uint32_t from, struct group_stream **out)
{
    *out = g->streams[from];
    if (*out)
        return 0;
    struct group_stream *s = calloc(1, sizeof(*s));
    if (!s)
        return MPI_ERR_NO_MEM;
    const struct mcast_tree tree = group_tree(g, from);
    s->from = from;
    s->parent = mcast_tree_parent(&tree, g->setup.me);
    s->index = mcast_tree_index(&tree, g->setup.me);
    s->kept = calloc(g->setup.rules.ring, sizeof(*s->kept));
    list_init(&s->dirty);
    mcast_stream_open(&s->in, &g->setup.rules);
    if (g->setup.deliver && s->index >= mcast_tree_leaves(&tree, s->parent))
        mcast_stream_set_delivered(&s->in);
    if (!s->kept || group_relay_open(g, s) != 0) {
        group_relay_close(s);
        free(s->kept);
        free(s);
        return MPI_ERR_NO_MEM;
    }
    *out = g->streams[from] = s;
    return 0;
}

/* ---- delivery to receivers that wait ---- */

static struct net_group_want *want_find(const struct list *among, uint32_t from, uint32_t channel)
{
    list_foreach(pos, among)
    {
        struct net_group_want *w = list_entry(pos, struct net_group_want, link);
        if (w->from == from && w->channel == channel)
            return w;
    }
    return NULL;
}

/* True if a receive waits for a message of this sender that has not begun. */
static bool sender_is_awaited(const struct net_group *g, uint32_t from)
{
    list_foreach(pos, &g->wants)
    {
        const struct net_group_want *w = list_entry(pos, struct net_group_want, link);
        if (w->from == from && !w->begun)
            return true;
    }
    return false;
}

/* Sets a message aside until its receive is posted, if a receive waits for a later message of the same
 * sender: one message of each private channel (channel != 0), and up to ASIDE_MAX bytes on channel 0. */
static struct net_group_want *store_unexpected_message(struct net_group *g, uint32_t from, uint32_t channel,
                                                       uint32_t total)
{
    if (!sender_is_awaited(g, from) || (channel != 0 && want_find(&g->aside, from, channel)) ||
        (channel == 0 && g->aside_bytes + total > ASIDE_MAX))
        return NULL;
    struct group_aside *a = malloc(sizeof(*a) + total);
    if (!a)
        return NULL;
    a->want = (struct net_group_want){
        .from = from, .channel = channel, .message = a->data, .length = total, .aside = true};
    list_append(&g->aside, &a->want.link);
    g->aside_bytes += total;
    counter_add(&asides, 1);
    return &a->want;
}

/* True if the next packet of a stream has a receive or can be set aside. */
static bool stream_match_receive(struct net_group *g, struct group_stream *s, uint32_t channel,
                                 uint32_t total)
{
    if (s->current)
        return true;
    struct net_group_want *w = want_find(&g->wants, s->from, channel);
    s->current = w && !w->begun ? w : store_unexpected_message(g, s->from, channel, total);
    if (s->current)
        s->current->begun = true;
    return s->current != NULL;
}

static void stream_deliver_packet(struct group_stream *s, uint32_t total, const void *data, size_t len)
{
    struct net_group_want *w = s->current;
    const size_t at = MIN(w->got, w->length);
    memcpy(w->message + at, data, MIN(len, w->length - at));
    w->got += len;
    w->total = total;
    if (w->got < total)
        return;
    w->complete = true;
    s->current = NULL;
    if (!w->aside)
        list_remove(&w->link);
}

static void release_stored_packet(struct net_group *g, struct group_kept *k)
{
    const bool no_buffer = k->block != NULL;
    if (no_buffer)
        free(k->block);
    else
        g->ops->give_back(g->member, k->handle);
    *k = (struct group_kept){0};
    if (no_buffer || g->room++ > 0)
        return;
    for (uint32_t i = 0; i < g->setup.members; i++)
        if (g->streams[i]) {
            mcast_stream_buffers_freed(&g->streams[i]->in);
            mark_stream_dirty(g, g->streams[i]);
        }
}

static void stream_drain_stash(struct net_group *g, struct group_stream *s)
{
    while (mcast_stream_has_packet(&s->in)) {
        struct group_kept *k = &s->kept[s->in.taken % g->setup.rules.ring];
        if (!stream_match_receive(g, s, k->channel, k->total))
            break;
        stream_deliver_packet(s, k->total, k->data, k->length);
        mcast_stream_packet_taken(&s->in);
        release_stored_packet(g, k);
    }
    mark_stream_dirty(g, s);
}

/* Moves the part of a message that was set aside into its receive. */
static void move_to_receive(struct net_group *g, struct net_group_want *w, struct net_group_want *aside)
{
    struct group_aside *a = container_of(aside, struct group_aside, want);
    memcpy(w->message, a->data, MIN(MIN(aside->got, aside->length), w->length));
    w->got = aside->got;
    w->total = aside->total;
    w->begun = true;
    w->complete = aside->complete;
    if (!w->complete) {
        g->streams[w->from]->current = w;
        list_append(&g->wants, &w->link);
    }
    g->aside_bytes -= aside->length;
    list_remove(&aside->link);
    free(a);
}

void net_group_post_receive(struct net_group *g, struct net_group_want *w)
{
    struct net_group_want *aside = want_find(&g->aside, w->from, w->channel);
    w->got = w->total = 0;
    w->begun = w->aside = w->complete = false;
    list_init(&w->link);
    if (aside)
        move_to_receive(g, w, aside);
    else
        list_append(&g->wants, &w->link);
    if (g->streams[w->from])
        stream_drain_stash(g, g->streams[w->from]);
}

/* ---- packets in ---- */

/* Forwards all packets that are in order now to the leaves of this co-root. */
static void stream_relay_to_leaves(struct net_group *g, struct group_stream *s, const struct group_head *now,
                                   const char *data, size_t len)
{
    while (s->relay && s->relay->sender.next != s->in.next) {
        const uint32_t seq = s->relay->sender.next;
        const struct group_kept *k = &s->kept[seq % g->setup.rules.ring];
        struct group_head h = *now;
        h.seq = seq;
        if (seq != now->seq) {
            h.total = k->total;
            h.channel = k->channel;
        }
        group_relay_push(g, s, &h, seq == now->seq ? data : k->data, seq == now->seq ? len : k->length);
    }
}

static void stream_stash_packet(struct net_group *g, struct group_stream *s, const struct group_head *h,
                                const char *data, size_t len, uint32_t handle, char *block)
{
    struct group_kept *k = &s->kept[h->seq % g->setup.rules.ring];
    *k = (struct group_kept){.data = block ? block : (char *)(uintptr_t)data,
                             .length = (uint32_t)len,
                             .total = h->total,
                             .channel = h->channel,
                             .handle = handle,
                             .block = block};
    if (block)
        memcpy(block, data, len);
    else
        g->room--;
    counter_add(&early, 1);
}

static bool stream_process_packet(struct net_group *g, struct group_stream *s, const struct group_head *h,
                                  const char *data, size_t len, uint32_t handle)
{
    char *block =
        handle == NO_HANDLE ? malloc(len) : NULL; /* the payload of a frame is valid only during this call */
    CHECK_MEMORY(block || handle != NO_HANDLE || !s->in.delivered, "a packet of a multicast");
    const bool next = h->seq == s->in.next && !mcast_stream_has_packet(&s->in);
    const struct mcast_arrival a = {.seq = h->seq,
                                    .wanted = next && stream_match_receive(g, s, h->channel, h->total),
                                    .ask = h->flags & GROUP_ASK,
                                    .room = handle == NO_HANDLE ? block != NULL : g->room,
                                    .relay = relay_free_slots(s),
                                    .now = clock_ns()};
    const enum mcast_verdict v = mcast_stream_classify_packet(&s->in, &g->setup.rules, s->index, &a);
    if (v == MCAST_TAKE)
        stream_deliver_packet(s, h->total, data, len);
    else if (v == MCAST_KEEP)
        stream_stash_packet(g, s, h, data, len, handle, block);
    if (v != MCAST_KEEP)
        free(block);
    if (v == MCAST_TAKE || v == MCAST_KEEP) {
        counter_add(&received, 1);
        stream_relay_to_leaves(g, s, h, data, len);
    } else {
        counter_add(v == MCAST_DUPLICATE ? &duplicates : &refused, 1);
    }
    stream_drain_stash(g, s);
    group_relay_slots_freed(g, s);
    return v == MCAST_KEEP && !block;
}

static size_t packet_max_data(const struct net_group *g)
{
    return g->payload + (g->setup.rules.piggyback ? sizeof(struct group_carried) : 0);
}

bool group_handle_packet(struct net_group *g, const void *packet, size_t length, uint32_t handle)
{
    struct group_head h;
    struct group_stream *s;
    if (length < sizeof(h))
        return false;
    memcpy(&h, packet, sizeof(h));
    const char *data = (const char *)packet + sizeof(h);
    size_t len = length - sizeof(h);
    if (h.group != g->setup.id || h.from >= g->setup.members || h.from == g->setup.me ||
        len > packet_max_data(g))
        return false; /* a packet of another group, or a copy of one that this member sent */
    if (group_get_stream(g, h.from, &s) != 0) {
        CHECK_MEMORY(!g->setup.deliver, "a multicast stream");
        return false; /* the sender repeats the packet */
    }
    if (h.flags & GROUP_CARRIES && len > sizeof(struct group_carried)) {
        struct group_carried carried;
        len -= sizeof(carried);
        memcpy(&carried, data + len, sizeof(carried));
        group_handle_ack(g, h.from, (uint32_t)carried.root, &carried.ack);
        h.flags &= (uint16_t)~GROUP_CARRIES;
    }
    if (len > g->payload) /* relays have slots of this size */
        return false;
    if (!(h.flags & GROUP_EMPTY))
        return len > 0 && stream_process_packet(g, s, &h, data, len, handle);
    mcast_stream_request_ack(&s->in);
    mark_stream_dirty(g, s);
    return false;
}

/* ---- acknowledgements out ---- */

static int write_ack_remotely(struct net_group *g, struct peer *to, const struct group_stream *s,
                              const struct mcast_ack *ack)
{
    const struct net_group_card *card = &g->cards[s->parent];
    const struct mcast_tree tree = group_tree(g, s->from);
    struct {
        struct mcast_ack ack;
        uint64_t check;
    } note = {*ack, group_note_checksum(g->setup.id, ack)};
    const uint64_t address = card->address + mcast_tree_place(&tree, g->setup.me) * sizeof(struct group_note);
    int rc = to->ops->put(to, &note, NULL, address, &card->key, sizeof(note), NULL);
    if (rc == 0)
        counter_add(&acks_written, 1);
    return rc;
}

static int send_ack(struct net_group *g, struct peer *to, uint32_t root, const struct mcast_ack *ack)
{
    const struct frame_header h = {.kind = NET_FRAME_GROUP,
                                   .flags = GROUP_ACK,
                                   .aux = (uint16_t)root,
                                   .context = (uint32_t)g->setup.id,
                                   .source = (int32_t)(g->setup.id >> 32),
                                   .tag = (int32_t)g->setup.me};
    int rc = peer_send(to, &h, ack, sizeof(*ack));
    if (rc == 0)
        counter_add(&acks_sent, 1);
    return rc;
}

/* Sends an acknowledgement to the stream's parent. ERR_AGAIN: no room; 0 also if the parent is lost. */
static int stream_acknowledge(struct net_group *g, struct group_stream *s)
{
    struct mcast_stream after = s->in;
    struct peer *to;
    const struct mcast_ack ack = mcast_stream_ack(&after, &g->setup.rules, g->room, relay_free_slots(s));
    if (group_peer(g, s->parent, &to) != 0)
        return 0;
    const bool written = g->cards[s->parent].address != 0 &&
                         to->caps.put_silent >= sizeof(struct mcast_ack) + sizeof(uint64_t);
    int rc = written ? write_ack_remotely(g, to, s, &ack) : send_ack(g, to, s->from, &ack);
    if (rc == ERR_AGAIN)
        return rc;
    s->in = after;
    return 0;
}

static int acknowledge_dirty_streams(struct net_group *g)
{
    int events = 0;
    if (list_empty(&g->dirty))
        return 0;
    const uint64_t now = clock_ns();
    list_foreach_safe(pos, after, &g->dirty)
    {
        struct group_stream *s = list_entry(pos, struct group_stream, dirty);
        if (!mcast_stream_ack_is_due(&s->in, now) || stream_acknowledge(g, s) != 0)
            continue;
        events++;
        list_remove(&s->dirty);
    }
    return events;
}

void group_relay_slots_freed(struct net_group *g, struct group_stream *s)
{
    mcast_stream_offer_window(&s->in, &g->setup.rules, relay_free_slots(s));
    mark_stream_dirty(g, s);
}

bool group_pop_pending_ack(struct net_group *g, struct group_carried *out)
{
    if (list_empty(&g->dirty))
        return false;
    struct group_stream *s = list_entry(g->dirty.next, struct group_stream, dirty);
    out->ack = mcast_stream_ack(&s->in, &g->setup.rules, g->room, relay_free_slots(s));
    out->root = s->from;
    list_remove(&s->dirty);
    counter_add(&acks_carried, 1);
    return true;
}

bool group_has_pending_acks(const struct net_group *g)
{
    return !list_empty(&g->dirty);
}

uint64_t group_ack_deadline(const struct net_group *g, uint64_t soon)
{
    uint64_t at = MCAST_NEVER;
    list_foreach(pos, &g->dirty)
    {
        const struct mcast_stream *s = &list_entry(pos, struct group_stream, dirty)->in;
        at = MIN(at, s->owe ? soon : s->due);
    }
    return at;
}

int group_receive_poll(struct net_group *g)
{
    struct net_packet in[16];
    const int n = g->ops->poll(g->member, in, (int)COUNT_OF(in));
    for (int i = 0; i < n; i++)
        if (!group_handle_packet(g, in[i].data, in[i].length, in[i].handle))
            g->ops->give_back(g->member, in[i].handle);
    return n + acknowledge_dirty_streams(g);
}

void group_receive_close(struct net_group *g)
{
    for (uint32_t i = 0; g->streams && i < g->setup.members; i++) {
        struct group_stream *s = g->streams[i];
        if (!s)
            continue;
        for (uint32_t k = 0; k < g->setup.rules.ring; k++)
            free(s->kept[k].block);
        group_relay_close(s);
        free(s->kept);
        free(s);
    }
    free(g->streams);
    list_foreach_safe(pos, after, &g->aside)
        free(container_of(list_entry(pos, struct net_group_want, link), struct group_aside, want));
}
