/* mcast_group.c: opens and closes multicast groups, finds the group of a frame, and makes progress of groups.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/mcast_group.h"

#include <stdlib.h>
#include <string.h>

#include "net/mcast_group_part.h"

#define US    1000ull /* ns */
#define QUIET 64      /* consecutive empty polls after which polls are skipped */
#define SKIPS 32      /* then the queue is polled once in SKIPS calls */

struct mcast_rules net_group_make_rules(uint32_t window, uint32_t aggregate, bool skew, uint64_t timeout_us)
{
    return mcast_rules_derive(window, aggregate, skew, timeout_us * US);
}

int group_peer(struct net_group *g, uint32_t member, struct peer **out)
{
    *out = g->peers[member];
    if (*out)
        return 0;
    int rc = g->setup.peer(g->setup.arg, member, out);
    if (rc == 0)
        g->peers[member] = *out;
    return rc;
}

static bool relays_are_idle(const struct net_group *g)
{
    for (uint32_t i = 0; g->setup.collectors > 1 && i < g->setup.members; i++)
        if (g->streams[i] && g->streams[i]->relay && !mcast_sender_is_idle(&g->streams[i]->relay->sender))
            return false;
    return true;
}

/* An acknowledgement that is written rings no doorbell: while one is awaited, this rank sleeps only for short times. */
static void update_sleep_limit(struct net_group *g)
{
    const bool awake = g->notes && (g->sender.deadline != MCAST_NEVER || !mcast_sender_is_idle(&g->sender) ||
                                    !relays_are_idle(g));
    if (awake == g->awake)
        return;
    g->net->unrung += awake ? 1 : (uint32_t)-1;
    g->awake = awake;
}

/* The time until the group must be polled even if no doorbell rings. */
static uint64_t group_next_deadline(struct net_hook *hook, uint64_t now)
{
    struct net_group *g = container_of(hook, struct net_group, hook);
    uint64_t at = MIN(g->sender.deadline, group_ack_deadline(g, now + NET_NAP_NS));
    for (uint32_t i = 0; g->setup.collectors > 1 && i < g->setup.members; i++)
        if (g->streams[i] && g->streams[i]->relay && !mcast_sender_is_idle(&g->streams[i]->relay->sender))
            at = MIN(at, g->streams[i]->relay->sender.deadline);
    if (group_has_undelivered(g))
        at = MIN(at, now + NET_NAP_NS);
    update_sleep_limit(g);
    return at == MCAST_NEVER ? NET_FOREVER : at > now ? at - now : 0;
}

/* True if no thread waits for a packet or an acknowledgement, and none has arrived for a while: then the
 * queue is polled rarely. A program may have hundreds of groups, and polling one costs as much as polling the
 * main completion queue. Before sleep the transport polls all queues. */
static bool may_skip_poll(struct net_group *g)
{
    return ++g->empty > QUIET && g->empty % SKIPS != 0 && list_empty(&g->wants) &&
           mcast_sender_is_idle(&g->sender) && g->sender.deadline == MCAST_NEVER && !g->wants_slot &&
           !group_has_pending_acks(g) && relays_are_idle(g);
}

static int group_progress(struct net_hook *hook)
{
    struct net_group *g = container_of(hook, struct net_group, hook);
    if (may_skip_poll(g))
        return 0;
    int events = group_receive_poll(g);
    events += group_send_poll(g);
    for (uint32_t i = 0; g->setup.collectors > 1 && i < g->setup.members; i++)
        if (g->streams[i] && g->streams[i]->relay)
            events += group_relay_poll(g, g->streams[i]);
    update_sleep_limit(g);
    if (events > 0) {
        g->empty = 0;
        net_ring_own_doorbell(g->net); /* another thread may wait for a message or for room */
    }
    return events;
}

/* ---- frames ---- */

static struct net_group *group_find(struct net *net, uint64_t id)
{
    list_foreach(pos, &net->groups)
    {
        struct net_group *g = list_entry(pos, struct net_group, link);
        if (g->setup.id == id)
            return g;
    }
    return NULL;
}

/* Stores a frame that arrived before this member has all cards. Its sender may already have closed the group,
 * so that a dropped packet or acknowledgement would never be repeated. */
static void group_store_early_frame(struct net_group *g, const struct frame_header *h, const void *payload,
                                    size_t len)
{
    struct group_early *grown = realloc(g->early, (g->nearly + 1) * sizeof(*grown));
    CHECK_MEMORY(grown != NULL, "a frame of a multicast");
    struct group_early *it = &grown[g->nearly++];
    *it = (struct group_early){*h, len, malloc(len)};
    CHECK_MEMORY(it->payload != NULL, "a frame of a multicast");
    memcpy(it->payload, payload, len);
    g->early = grown;
}

static void group_handle_frame(struct net_group *g, const struct frame_header *h, const void *payload,
                               size_t len)
{
    struct mcast_ack ack;
    if (!(h->flags & GROUP_ACK)) {
        group_handle_packet(g, payload, len, UINT32_MAX);
    } else if (len == sizeof(ack)) {
        memcpy(&ack, payload, sizeof(ack));
        group_handle_ack(g, (uint32_t)h->tag, h->aux, &ack);
    }
}

void net_group_handle_frame(struct net *net, struct peer *from, const struct frame_header *h,
                            const void *payload, size_t len)
{
    struct net_group *g = group_find(net, (uint64_t)(uint32_t)h->source << 32 | h->context);
    (void)from;
    if (!g)
        return; /* a repeated packet of a closed group */
    if (!g->cards) {
        if (len > 0)
            group_store_early_frame(g, h, payload, len);
        return;
    }
    group_handle_frame(g, h, payload, len);
    update_sleep_limit(g);
    net_ring_own_doorbell(net);
}

/* ---- open and close ---- */

/* Maps the memory into which members write their acknowledgements; NULL: members send them instead. */
static struct group_notes *notes_map_memory(struct net *net, struct transport *t, uint32_t members)
{
    const size_t size = ALIGN_UP(members * sizeof(struct group_note), 4096);
    list_foreach(pos, &net->group_notes)
    {
        struct group_notes *n = list_entry(pos, struct group_notes, link);
        if (n->transport != t || n->memory.length < size)
            continue;
        list_remove(&n->link);
        return n;
    }
    struct group_notes *n = calloc(1, sizeof(*n));
    if (!n)
        return NULL;
    if (!mapping_open(&n->memory, "fishplate-acks", size) ||
        t->ops->mem_register(t, n->memory.at, size, &n->mem, &n->key) != 0) {
        mapping_close(&n->memory);
        free(n);
        return NULL;
    }
    mapping_close_file(&n->memory);
    list_init(&n->link);
    n->transport = t;
    n->note = n->memory.at;
    return n;
}

void net_groups_close(struct net *net)
{
    list_foreach_safe(pos, after, &net->group_notes)
    {
        struct group_notes *n = list_entry(pos, struct group_notes, link);
        list_remove(&n->link);
        n->transport->ops->mem_release(n->transport, &n->mem);
        mapping_close(&n->memory);
        free(n);
    }
}

static void group_free(struct net_group *g)
{
    list_remove(&g->link);
    list_remove(&g->hook.link);
    if (g->awake)
        g->net->unrung--;
    group_receive_close(g);
    group_send_close(g);
    if (g->member)
        g->ops->close(g->member);
    if (g->notes)
        list_append(&g->net->group_notes, &g->notes->link);
    for (uint32_t i = 0; i < g->nearly; i++)
        free(g->early[i].payload);
    free(g->early);
    free(g->peers);
    free(g->cards);
    free(g);
}

static uint32_t receive_buffer_count(const struct mcast_rules *rules)
{
    return MAX(4 * rules->window, 128u);
}

size_t net_group_max_payload(const struct net_group *g)
{
    return g->payload;
}

size_t net_group_max_burst(const struct net_group *g)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < g->setup.members; i++)
        least = MIN(least, g->cards[i].receives);
    return least / 2;
}

int net_group_open(struct net *net, struct transport *t, const struct net_group_setup *setup,
                   struct net_group **out)
{
    const uint32_t window = setup->rules.window, receives = receive_buffer_count(&setup->rules);
    struct net_group *g = calloc(1, sizeof(*g));
    if (!g)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a multicast group");
    g->net = net;
    g->transport = t;
    g->ops = t->multicast;
    g->setup = *setup;
    g->hook.progress = group_progress;
    g->hook.rests = group_next_deadline;
    g->room = receives / 2;
    list_init(&g->link);
    list_init(&g->hook.link);
    list_init(&g->dirty);
    list_init(&g->wants);
    list_init(&g->aside);
    g->peers = calloc(setup->members, sizeof(struct peer *));
    g->streams = calloc(setup->members, sizeof(struct group_stream *));
    int rc = g->peers && g->streams ? group_send_open(g)
                                    : err_set(MPI_ERR_NO_MEM, "out of memory for a multicast group");
    rc = rc ? rc : g->ops->open(t, setup->id, receives, window + 1, &g->member);
    if (rc) {
        group_free(g);
        return rc;
    }
    if (setup->by_write)
        g->notes = notes_map_memory(net, t, setup->members);
    list_append(&net->groups, &g->link);
    *out = g;
    return 0;
}

void net_group_fill_card(const struct net_group *g, struct net_group_card *card)
{
    *card = (struct net_group_card){.packet = (uint32_t)g->ops->packet_max(g->transport),
                                    .receives = receive_buffer_count(&g->setup.rules)};
    if (!g->notes)
        return;
    card->address = (uintptr_t)g->notes->note;
    card->key = g->notes->key;
}

void net_group_connect_members(struct net_group *g, struct net_group_card *cards)
{
    size_t packet = cards[0].packet;
    for (uint32_t i = 1; i < g->setup.members; i++)
        packet = MIN(packet, cards[i].packet);
    g->payload =
        packet - sizeof(struct group_head) - (g->setup.rules.piggyback ? sizeof(struct group_carried) : 0);
    g->cards = cards;
    list_append(&g->net->hooks, &g->hook.link);
    g->ops->begin(g->member);
    for (uint32_t i = 0; i < g->nearly; i++) {
        group_handle_frame(g, &g->early[i].header, g->early[i].payload, g->early[i].length);
        free(g->early[i].payload);
    }
    free(g->early);
    g->early = NULL;
    g->nearly = 0;
    update_sleep_limit(g);
}

static bool is_fully_acknowledged(const struct net_group *g)
{
    bool done = mcast_sender_is_idle(&g->sender) && !group_has_pending_acks(g);
    for (uint32_t i = 0; i < g->setup.members && done; i++)
        done = !g->streams[i] || !g->streams[i]->relay || mcast_sender_is_idle(&g->streams[i]->relay->sender);
    return done;
}

void net_group_close(struct net_group *g)
{
    struct net_waiter w = {.awaited_kind = NET_ROOM};
    while (g->cards && !is_fully_acknowledged(g))
        net_wait_step(g->net, &w);
    net_wait_end(g->net, &w);
    group_free(g);
}
