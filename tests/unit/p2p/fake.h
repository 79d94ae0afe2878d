/* fake.h: two ranks in one process, connected by a simulated transport with random timing: when a frame
 * arrives, when each half of a put or get is copied, when its completion is reported, and when an
 * operation is refused, cannot be registered or fails. The transport guarantees only what its capabilities
 * (caps) promise.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TEST_P2P_FAKE_H
#define FP_TEST_P2P_FAKE_H

#include <stdlib.h>

#include "p2p/engine.h"
#include "test.h"

enum { RANKS = 2, FAKE_FRAME = 256 };

static uint32_t fake_seed;
static bool fake_random_is_max; /* random_below(n) returns n - 1 (test_suspended.c) */

static inline uint32_t random_below(uint32_t n)
{
    if (fake_random_is_max)
        return n - 1;
    fake_seed = fake_seed * 1664525u + 1013904223u;
    return (fake_seed >> 8) % n;
}

/* Behaviour of the transport: operations are refused (ERR_AGAIN), memory cannot be registered, or transfers
 * fail once in n times on average; 0: never. */
struct fake_rules {
    struct transport_caps caps;
    uint32_t refuses_one_in, unregistrable_one_in, fails_one_in;
};

/* A frame, put or get in flight. Frames and puts from one rank to another share a queue, in the order of
 * posting. */
struct fake_item {
    struct list link;
    struct net_op *op; /* NULL: a frame */
    char *to;
    const char *from;
    size_t len;
    int phase; /* 0: nothing copied, 1: one half copied, 2: everything copied, completion to be reported */
    struct frame_header header;
    char payload[];
};

struct fake_rank {
    struct transport t; /* first member: the engine passes a pointer to it */
    struct net net;
    struct p2p *p2p;
    struct peer peers[RANKS];
    struct peer *table[RANKS];
    struct list out[RANKS]; /* frames and puts in flight, by destination rank */
    struct list gets;
    void *reserved;
    int registered;
};

static struct fake_rules fake;
static struct fake_rank fake_ranks[RANKS];

static inline bool happens_by_chance(uint32_t n)
{
    return n && random_below(n) == 0;
}

static inline struct fake_rank *fake_rank_of_peer(struct peer *peer)
{
    return (struct fake_rank *)peer->transport;
}

static int fake_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                     size_t len)
{
    EXPECT(len <= fake.caps.frame_max);
    if (happens_by_chance(fake.refuses_one_in))
        return ERR_AGAIN;
    struct fake_item *f = calloc(1, sizeof(*f) + len);
    frame_write(&f->header, head, from, word);
    f->len = len;
    if (len)
        memcpy(f->payload, payload, len);
    list_append(&fake_rank_of_peer(peer)->out[peer->rank], &f->link);
    return 0;
}

static int fake_reserve(struct peer *peer, size_t len, void **payload)
{
    (void)peer, (void)len, (void)payload;
    return ERR_AGAIN; /* in-place frames are not part of these tests */
}

static void fake_commit(struct peer *peer, const struct frame_header *header, size_t len)
{
    (void)peer, (void)header, (void)len;
}

/* Copies one half of the data. With last_byte_last the last byte is in the second half, else the order is
 * random. */
static void fake_copy_half(struct fake_item *i)
{
    size_t half = i->len / 2;
    bool front = fake.caps.last_byte_last ? i->phase == 0 : i->phase != 0;
    if (front)
        memmove(i->to, i->from, half);
    else
        memmove(i->to + half, i->from + half, i->len - half);
    i->phase++;
}

static int fake_queue_transfer(struct list *queue, char *to, const char *from, size_t len, struct net_op *op)
{
    EXPECT(len > 0);
    if (happens_by_chance(fake.refuses_one_in))
        return ERR_AGAIN;
    if (fake.caps.cpu_moves) {
        bool fails = happens_by_chance(fake.fails_one_in);
        if (!fails)
            memmove(to, from, len);
        op->done(op, fails ? MPI_ERR_OTHER : 0);
        return 0;
    }
    struct fake_item *i = calloc(1, sizeof(*i));
    *i = (struct fake_item){.op = op, .to = to, .from = from, .len = len};
    list_append(queue, &i->link);
    return 0;
}

static int fake_put(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
                    const struct net_key *key, size_t len, struct net_op *op)
{
    EXPECT(mem->handle != NULL && key->word[0] == 77 && len <= key->word[1]);
    return fake_queue_transfer(&fake_rank_of_peer(peer)->out[peer->rank], (char *)(uintptr_t)remote, local,
                               len, op);
}

static int fake_get(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
                    const struct net_key *key, size_t len, struct net_op *op)
{
    EXPECT(mem->handle != NULL && key->word[0] == 77 && len <= key->word[1]);
    return fake_queue_transfer(&fake_rank_of_peer(peer)->gets, local, (const char *)(uintptr_t)remote, len,
                               op);
}

static int fake_register(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                         struct net_key *key)
{
    if (happens_by_chance(fake.unregistrable_one_in))
        return MPI_ERR_OTHER;
    ((struct fake_rank *)t)->registered++;
    *mem = (struct net_mem){.address = (uintptr_t)address, .length = len, .handle = t};
    *key = (struct net_key){{77, len}};
    return 0;
}

static void fake_release(struct transport *t, struct net_mem *mem)
{
    EXPECT(mem->handle == t);
    mem->handle = NULL;
    ((struct fake_rank *)t)->registered--;
}

/* Executes one step of the adapter for a random transfer. */
static inline void fake_step_hardware(void)
{
    struct fake_rank *r = &fake_ranks[random_below(RANKS)];
    struct list *queue = random_below(2) ? &r->gets : &r->out[random_below(RANKS)];
    list_foreach(pos, queue)
    {
        struct fake_item *i = list_entry(pos, struct fake_item, link);
        if (!i->op || i->phase == 2)
            continue;
        fake_copy_half(i);
        if (fake.caps.put_ordered || random_below(2))
            return;
    }
}

/* Reports the first one-sided transfer that is complete or has failed. A failed put breaks the connection,
 * so the frames queued after it fail too. */
static int fake_report_completion(struct list *queue, bool may_fail)
{
    list_foreach(pos, queue)
    {
        struct fake_item *i = list_entry(pos, struct fake_item, link);
        if (!i->op)
            continue;
        bool fails = may_fail && i->phase < 2 && happens_by_chance(fake.fails_one_in);
        if (i->phase < 2 && !fails)
            return 0;
        struct net_op *op = i->op;
        list_remove(&i->link);
        free(i);
        op->done(op, fails ? MPI_ERR_OTHER : 0);
        return 1;
    }
    return 0;
}

static int fake_deliver_frame(struct fake_rank *to, struct fake_rank *from)
{
    uint32_t me = to->net.rank;
    list_foreach(pos, &from->out[me])
    {
        struct fake_item *i = list_entry(pos, struct fake_item, link);
        if (i->op && fake.caps.put_ordered && i->phase < 2)
            return 0; /* the frame must not overtake the data of the put */
        if (i->op)
            continue;
        list_remove(&i->link);
        to->net.deliver(to->net.deliver_ctx, &to->peers[from->net.rank], &i->header, i->payload, i->len);
        free(i);
        return 1;
    }
    return 0;
}

static int fake_poll(struct transport *t)
{
    struct fake_rank *me = (struct fake_rank *)t;
    int events = 0;
    for (int r = 0; r < RANKS; r++) {
        if (random_below(2))
            events += fake_deliver_frame(me, &fake_ranks[r]);
        if (random_below(2))
            events += fake_report_completion(&me->out[r], !fake.caps.put_ordered);
    }
    return events + (random_below(2) ? fake_report_completion(&me->gets, true) : 0);
}

static const struct transport_ops fake_ops = {.name = "fake",
                                              .send = fake_send,
                                              .reserve = fake_reserve,
                                              .commit = fake_commit,
                                              .put = fake_put,
                                              .get = fake_get,
                                              .mem_register = fake_register,
                                              .mem_release = fake_release,
                                              .mem_register_piece = fake_register,
                                              .poll = fake_poll};

static struct peer *fake_find_peer(void *arg, struct envelope env)
{
    return &((struct fake_rank *)arg)->peers[env.source];
}

static void fake_open(struct fake_rules rules)
{
    fake = rules;
    if (fake.caps.frame_max == 0)
        fake.caps.frame_max = FAKE_FRAME;
    fake.caps.inline_max = 32;
    for (uint32_t i = 0; i < RANKS; i++) {
        struct fake_rank *r = &fake_ranks[i];
        *r = (struct fake_rank){.t = {.ops = &fake_ops, .net = &r->net}};
        r->net = (struct net){
            .rank = i, .size = RANKS, .transports = {&r->t}, .ntransports = 1, .peers = r->table};
        r->net.doorbell = &r->net.own_doorbell;
        list_init(&r->net.stalled);
        list_init(&r->net.hooks);
        list_init(&r->net.groups);
        list_init(&r->net.group_notes);
        list_init(&r->gets);
        EXPECT_EQ(p2p_open(&r->net, &r->p2p), 0);
        p2p_on_peer_of(r->p2p, fake_find_peer, r);
        for (uint32_t k = 0; k < RANKS; k++) {
            struct peer *peer = r->table[k] = &r->peers[k];
            *peer = (struct peer){.ops = &fake_ops,
                                  .transport = &r->t,
                                  .net = &r->net,
                                  .rank = k,
                                  .self = k == i,
                                  .caps = fake.caps};
            list_init(&r->out[k]);
            list_init(&peer->pending);
            list_init(&peer->stalled_link);
            r->net.connected(r->net.deliver_ctx, peer);
        }
    }
}

static inline bool fake_is_idle(void)
{
    for (int i = 0; i < RANKS; i++) {
        struct fake_rank *r = &fake_ranks[i];
        if (!list_empty(&r->net.stalled) || !list_empty(&r->gets))
            return false;
        for (int k = 0; k < RANKS; k++)
            if (!list_empty(&r->out[k]))
                return false;
    }
    return true;
}

static inline void fake_close(void)
{
    for (int i = 0; i < RANKS; i++) {
        struct fake_rank *r = &fake_ranks[i];
        EXPECT_EQ(r->registered, 0);
        EXPECT_EQ(r->net.unrung, 0);
        EXPECT(list_empty(&r->net.hooks));
        p2p_close(r->p2p);
        paces_free(&r->net.paces);
    }
}

#endif
