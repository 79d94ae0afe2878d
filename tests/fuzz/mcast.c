/* mcast.c: fuzzes the data that arrives at a member of a multicast group: packets from any sender, packets
 * resent and acknowledgements over connections, acknowledgements written to memory, while this member
 * broadcasts, receives, and is a co-root. The network is simulated. Every receive buffer is returned once,
 * and a message is written only to its receive buffer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "net/mcast_group_part.h"
#include "panic.h"

enum { MEMBERS = 5, ME = 1, PACKET = 128, WINDOW = 4, RECEIVES = 128, MESSAGE = 300, ID = 7, CHANNELS = 3 };

static struct net net;
static struct transport transport;
static struct peer peer[MEMBERS];
static struct net_group *group;
static char *buffer[RECEIVES]; /* received packets, of exactly their length, until they are returned */
static char slots[WINDOW + 1][PACKET];
static char *next;
static size_t next_length;
static struct net_group_want wants[CHANNELS];
static char *message[CHANNELS];
static uint8_t fault_bits; /* bit 0: connections refuse frames, bit 1: the send queue is full */

static size_t fake_packet_max(struct transport *t)
{
    (void)t;
    return PACKET;
}
static int fake_open(struct transport *t, uint64_t id, uint32_t receives, uint32_t n, void **member)
{
    FUZZ_CHECK(id == ID && receives <= RECEIVES && n == WINDOW + 1);
    *member = t;
    return 0;
}
static void *fake_slot(void *member, uint32_t i)
{
    (void)member;
    FUZZ_CHECK(i <= WINDOW);
    return slots[i];
}
static bool fake_busy(void *member, uint32_t i)
{
    (void)member, (void)i;
    return fault_bits & 2;
}
static int fake_multicast(void *member, uint32_t i, size_t len)
{
    (void)member;
    FUZZ_CHECK(i <= WINDOW && len <= PACKET);
    return 0;
}
static int fake_packets(void *member, struct net_packet *out, int most)
{
    uint32_t i = 0;
    (void)member;
    if (!next || most == 0)
        return 0;
    while (i < RECEIVES && buffer[i])
        i++;
    if (i == RECEIVES) { /* no receive buffer is posted: the packet is lost, as on an adapter */
        free(next);
        next = NULL;
        return 0;
    }
    buffer[i] = next;
    next = NULL;
    *out = (struct net_packet){.data = buffer[i], .length = next_length, .handle = i};
    return 1;
}
static void fake_return_buffer(void *member, uint32_t handle)
{
    (void)member;
    FUZZ_CHECK(handle < RECEIVES && buffer[handle]);
    free(buffer[handle]);
    buffer[handle] = NULL;
}
static void fake_begin(void *member)
{
    (void)member;
}
static void fake_close(void *member)
{
    (void)member;
}

static int fake_send(struct peer *to, uint64_t head, uint64_t from, uint64_t word, const void *data,
                     size_t len)
{
    static char copy[PACKET];
    (void)to, (void)head, (void)from, (void)word;
    FUZZ_CHECK(len <= sizeof(copy));
    memcpy(copy, data, len);
    return fault_bits & 1 ? ERR_AGAIN : 0;
}
static int fake_put(struct peer *to, const void *local, const struct net_mem *mem, uint64_t remote,
                    const struct net_key *key, size_t len, struct net_op *op)
{
    (void)to, (void)local, (void)mem, (void)key, (void)op;
    FUZZ_CHECK(remote >= 4096 && remote + len <= 4096 + MEMBERS * sizeof(struct group_note));
    return fault_bits & 1 ? ERR_AGAIN : 0;
}
static int fake_register(struct transport *t, const void *at, size_t len, struct net_mem *mem,
                         struct net_key *key)
{
    (void)t, (void)at, (void)len;
    *mem = (struct net_mem){0};
    *key = (struct net_key){{1, 2}};
    return 0;
}
static void fake_release(struct transport *t, struct net_mem *mem)
{
    (void)t, (void)mem;
}
static int find_peer(void *arg, uint32_t member, struct peer **out)
{
    (void)arg;
    FUZZ_CHECK(member < MEMBERS && member != ME);
    *out = &peer[member];
    return 0;
}

static void open_world(uint8_t bits)
{
    static const struct transport_multicast multicast = {.packet_max = fake_packet_max,
                                                         .open = fake_open,
                                                         .begin = fake_begin,
                                                         .slot = fake_slot,
                                                         .busy = fake_busy,
                                                         .send = fake_multicast,
                                                         .poll = fake_packets,
                                                         .give_back = fake_return_buffer,
                                                         .close = fake_close};
    static const struct transport_ops ops = {.name = "fuzz",
                                             .send = fake_send,
                                             .put = fake_put,
                                             .mem_register = fake_register,
                                             .mem_release = fake_release};
    transport = (struct transport){.ops = &ops, .net = &net, .multicast = &multicast};
    net = (struct net){.rank = ME, .size = MEMBERS, .transports = {&transport}, .ntransports = 1};
    net.doorbell = &net.own_doorbell;
    list_init(&net.stalled);
    list_init(&net.hooks);
    list_init(&net.groups);
    list_init(&net.group_notes);
    struct net_group_card *cards = calloc(MEMBERS, sizeof(*cards));
    for (int i = 0; i < MEMBERS; i++) {
        peer[i] = (struct peer){.ops = &ops, .transport = &transport, .net = &net, .rank = (uint32_t)i};
        peer[i].caps = (struct transport_caps){.frame_max = PACKET, .put = true, .put_silent = 64};
        list_init(&peer[i].pending);
        list_init(&peer[i].stalled_link);
        cards[i] =
            (struct net_group_card){.address = i % 2 ? 4096 : 0, .packet = PACKET, .receives = RECEIVES};
    }
    const struct net_group_setup setup = {.id = ID,
                                          .members = MEMBERS,
                                          .me = ME,
                                          .collectors = 1 + bits % 3,
                                          .rules =
                                              net_group_make_rules(WINDOW, 1 + (bits >> 2) % 3, bits & 16, 1),
                                          .by_write = true,
                                          .peer = find_peer};
    fault_bits = 0;
    for (int i = 0; i < CHANNELS; i++) {
        message[i] = malloc(MESSAGE);
        wants[i] = (struct net_group_want){.complete = true};
    }
    if (net_group_open(&net, &transport, &setup, &group) != 0 || !message[CHANNELS - 1] || !cards)
        abort();
    net_group_connect_members(group, cards);
}

static void poll_once(void)
{
    group->hook.progress(&group->hook);
    FUZZ_CHECK(group->room <= RECEIVES / 2);
}

/* Makes a packet with plausible sequence number, sender and group, unless the input selects others. */
static char *make_packet(struct fuzz_in *in, size_t *length)
{
    char *packet = fuzz_copy(in, fuzz_u8(in) % (PACKET + 8), length);
    struct group_head h;
    if (*length < sizeof(h))
        return packet;
    memcpy(&h, packet, sizeof(h));
    if (h.group % 16 != 0)
        h.group = ID;
    h.from %= MEMBERS + 1;
    if (h.seq >> 24 != 0x55)
        h.seq %= 4 * WINDOW;
    h.channel %= CHANNELS;
    h.total %= 2 * MESSAGE; /* bounds the memory for early packets, which the input must not choose freely */
    memcpy(packet, &h, sizeof(h));
    return packet;
}

static void fuzz_frame(struct fuzz_in *in, uint8_t what)
{
    struct frame_header h = {.kind = NET_FRAME_GROUP, .context = ID, .aux = fuzz_u8(in) % (MEMBERS + 1)};
    h.tag = fuzz_u8(in) % (MEMBERS + 1);
    h.flags = what & 64 ? GROUP_ACK : 0;
    size_t length;
    next = h.flags ? fuzz_copy(in, sizeof(struct mcast_ack), &length) : make_packet(in, &length);
    net_group_handle_frame(&net, &peer[0], &h, next, length);
    free(next);
    next = NULL;
}

/* Writes to the memory of acknowledgements, as a member or another process with its key may. */
static void fuzz_ack_memory(struct fuzz_in *in, uint8_t what)
{
    struct group_note *at = &group->notes->note[fuzz_u8(in) % MEMBERS];
    fuzz_bytes(in, &at->ack, sizeof(at->ack));
    at->check = what & 64 ? group_note_checksum(ID, &at->ack) : fuzz_u8(in);
}

/* Starts a receive on a channel; several channels are used at once, each from one of two senders. */
static void start_receive(unsigned what)
{
    struct net_group_want *w = &wants[what / 2 % CHANNELS];
    if (!w->complete)
        return;
    *w = (struct net_group_want){.from = what & 1 ? 0 : 3,
                                 .channel = what / 2 % CHANNELS,
                                 .message = message[what / 2 % CHANNELS],
                                 .length = MESSAGE - what};
    net_group_post_receive(group, w);
}

static void fuzz_events(struct fuzz_in *in)
{
    static const char data[MESSAGE];
    size_t at = MESSAGE;
    while (in->left > 0) {
        const uint8_t what = fuzz_u8(in);
        switch (what % 8) {
        case 0:
        case 1:
            next = make_packet(in, &next_length);
            break;
        case 2:
            fuzz_frame(in, what);
            break;
        case 3:
            fuzz_ack_memory(in, what);
            break;
        case 4:
            start_receive(what >> 3);
            break;
        case 5:
            at = at == MESSAGE ? 0 : at;
            at += net_group_send(group, 0, data, at, MESSAGE);
            FUZZ_CHECK(at <= MESSAGE);
            break;
        default:
            fault_bits = what >> 6;
        }
        poll_once();
        free(next);
        next = NULL;
    }
}

static void close_world(void)
{
    mcast_sender_open(&group->sender, &group->setup.rules, group->sender.child, 0, group->sender.sent);
    for (int i = 0; i < MEMBERS; i++)
        if (group->streams[i]) {
            list_remove(&group->streams[i]->dirty);
            if (group->streams[i]->relay)
                group->streams[i]->relay->sender.base = group->streams[i]->relay->sender.next;
        }
    net_group_close(group);
    net_groups_close(&net);
    FUZZ_CHECK(net.unrung == 0 && list_empty(&net.hooks) && list_empty(&net.groups));
    for (int i = 0; i < RECEIVES; i++) {
        free(buffer[i]);
        buffer[i] = NULL;
    }
    for (int i = 0; i < CHANNELS; i++)
        free(message[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    open_world(fuzz_u8(&in));
    if (setjmp(fuzz_end) == 0)
        fuzz_events(&in);
    free(next);
    next = NULL;
    close_world();
    return 0;
}
