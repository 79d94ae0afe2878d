/* self.c: the smallest possible transport, a model for new ones: frames to oneself are listed until the next
 * poll; put and get are memcpy.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "net/net.h"
#include "net/registry.h"

#define FRAME_MAX (64 * 1024)

struct self_frame {
    struct list link;
    struct peer *peer;
    struct frame_header header;
    size_t len;
    char payload[];
};

struct self {
    struct transport base;
    struct list frames;
    struct self_frame *reserved;
};

static int self_open(struct net *net, struct boot *boot, struct transport **out)
{
    (void)boot;
    struct self *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(MPI_ERR_NO_MEM, "out of memory at start-up");
    s->base = (struct transport){.ops = &self_transport, .net = net, .idle = true, .inner = true};
    list_init(&s->frames);
    *out = &s->base;
    return 0;
}

static void self_close(struct transport *t)
{
    struct self *s = (struct self *)t;
    list_foreach_safe(pos, after, &s->frames) free(list_entry(pos, struct self_frame, link));
    free(s->reserved);
    free(s);
}

static bool self_can_reach(struct transport *t, uint32_t rank)
{
    return rank == t->net->rank;
}

static int self_connect(struct transport *t, struct peer *peer)
{
    (void)t;
    peer->caps = (struct transport_caps){.frame_max = FRAME_MAX,
                                         .inline_max = 32,
                                         .put = true,
                                         .get = true,
                                         .cpu_moves = true,
                                         .put_ordered = true,
                                         .last_byte_last = true,
                                         .latency_ns = 50,
                                         .bandwidth_mbs = 10000};
    return 0;
}

static void self_disconnect(struct transport *t, struct peer *peer)
{
    (void)t;
    (void)peer;
}

static int self_reserve(struct peer *peer, size_t len, void **payload)
{
    struct self *s = (struct self *)peer->transport;
    struct self_frame *f = malloc(sizeof(*f) + len);
    if (!f)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a message of %zu bytes to oneself", len);
    s->reserved = f;
    *payload = f->payload;
    return 0;
}

static void self_commit(struct peer *peer, const struct frame_header *header, size_t len)
{
    struct self *s = (struct self *)peer->transport;
    struct self_frame *f = s->reserved;
    s->reserved = NULL;
    f->peer = peer;
    f->header = *header;
    f->len = len;
    list_append(&s->frames, &f->link);
    s->base.idle = false;
    net_ring_own_doorbell(s->base.net); /* another thread may wait for this frame */
}

static int self_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                     size_t len)
{
    struct frame_header header;
    void *room = NULL;
    int rc = self_reserve(peer, len, &room);
    if (rc != 0)
        return rc;
    if (len)
        memcpy(room, payload, len);
    frame_write(&header, head, from, word);
    self_commit(peer, &header, len);
    return 0;
}

static int self_put(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
                    const struct net_key *key, size_t len, struct net_op *op)
{
    (void)peer, (void)mem, (void)key;
    memmove((void *)(uintptr_t)remote, local, len);
    op->done(op, 0);
    return 0;
}

static int self_get(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
                    const struct net_key *key, size_t len, struct net_op *op)
{
    (void)peer, (void)mem, (void)key;
    memmove(local, (const void *)(uintptr_t)remote, len);
    op->done(op, 0);
    return 0;
}

static int self_poll(struct transport *t)
{
    struct self *s = (struct self *)t;
    int events = 0;
    s->base.idle = true; /* a frame sent during the loop clears the flag, and is delivered by the loop */
    while (!list_empty(&s->frames)) {
        struct self_frame *f = list_entry(s->frames.next, struct self_frame, link);
        list_remove(&f->link);
        t->net->deliver(t->net->deliver_ctx, f->peer, &f->header, f->payload, f->len);
        free(f);
        events++;
    }
    return events;
}

static bool self_arm(struct transport *t)
{
    return list_empty(&((struct self *)t)->frames);
}

const struct transport_ops self_transport = {
    .name = "self",
    .doc = "messages of a rank to itself",
    .open = self_open,
    .close = self_close,
    .reaches = self_can_reach,
    .connect = self_connect,
    .disconnect = self_disconnect,
    .send = self_send,
    .reserve = self_reserve,
    .commit = self_commit,
    .put = self_put,
    .get = self_get,
    .mem_register = transport_register_nothing,
    .mem_release = transport_release_nothing,
    .poll = self_poll,
    .arm = self_arm,
};
