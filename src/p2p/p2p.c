/* p2p.c: start and end of the engine, the handling of incoming frames, and waiting.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/p2p.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/tunable.h"
#include "net/lost.h"
#include "p2p/message.h"
#include "p2p/offer.h"
#include "p2p/protocol.h"
#include "p2p/rendezvous_map.h"
#include "p2p/rendezvous_staged.h"
#include "p2p/write.h"

static TUNABLE_SIZE(eager_max, "EAGER_MAX", 16 * 1024, 64, 512 * 1024,
                    "Largest message in bytes that is sent at once, before the receiver has answered. "
                    "Unless it is set, the transport chooses; `fishplate info --protocols` shows the "
                    "value in force. At most one frame of the transport.");

static void group_frame_arrived(struct p2p *p, struct peer *from, const struct frame_header *h,
                                const void *payload, size_t len)
{
    net_group_handle_frame(p->net, from, h, payload, len);
}

static void layer_frame_arrived(struct p2p *p, struct peer *from, const struct frame_header *h,
                                const void *payload, size_t len)
{
    const struct layer *l = &p->layers[h->kind];
    CHECK(l->handler || h->kind != FRAME_ONE_SIDED,
          "a one-sided operation arrived, and this process has no window");
    if (l->handler)
        l->handler(l->arg, from, h, payload, len);
}

/* A frame of a rank with FISHPLATE_DEBUG=match, which this rank does not use. */
static void note_ignored(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                         size_t len)
{
    (void)p, (void)from, (void)h, (void)payload, (void)len;
}

static frame_handler *const handlers[FRAME_KINDS] = {[FRAME_EAGER] = eager_handle_frame,
                                                     [FRAME_EAGER_SYNC] = eager_sync_arrived,
                                                     [FRAME_ACK] = ack_arrived,
                                                     [FRAME_RTS] = rts_arrived,
                                                     [FRAME_FIN] = fin_arrived,
                                                     [FRAME_CTS] = cts_arrived,
                                                     [FRAME_PIECE] = piece_arrived,
                                                     [FRAME_CTS_WRITE] = cts_write_arrived,
                                                     [FRAME_WRITTEN] = written_arrived,
                                                     [FRAME_RTR] = rtr_arrived,
                                                     [FRAME_TAKEN] = taken_arrived,
                                                     [FRAME_RECALL] = recall_arrived,
                                                     [FRAME_RECALLED] = recalled_arrived,
                                                     [FRAME_CANCEL] = cancel_arrived,
                                                     [FRAME_CANCELLED] = cancelled_arrived,
                                                     [FRAME_ONE_SIDED] = layer_frame_arrived,
                                                     [FRAME_NOTE] = note_ignored,
                                                     [FRAME_FAULT] = layer_frame_arrived,
                                                     [FRAME_GROUP] = group_frame_arrived,
                                                     [FRAME_CALL] = layer_frame_arrived};

static void p2p_deliver(void *ctx, struct peer *from, const struct frame_header *h, const void *payload,
                        size_t len)
{
    struct p2p *p = ctx;
    if (likely(h->kind == FRAME_EAGER)) {
        eager_handle_frame(p, from, h, payload, len);
        return;
    }
    if (unlikely(peer_is_lost(from)) && h->kind != FRAME_EAGER_SYNC)
        return; /* the frame belongs to a request that has ended */
    CHECK(h->kind < FRAME_KINDS && handlers[h->kind],
          "a frame of an unknown kind arrived; all ranks must use the same version of the library");
    handlers[h->kind](p, from, h, payload, len);
}

/* Replaces p2p_deliver while a tool is attached, so that there is no check without a tool. */
static void deliver_with_tool(void *ctx, struct peer *from, const struct frame_header *h, const void *payload,
                              size_t len)
{
    struct p2p *p = ctx;
    if (h->kind != FRAME_EAGER && h->kind != FRAME_EAGER_SYNC && h->kind != FRAME_RTS) {
        p2p_deliver(ctx, from, h, payload, len);
        return;
    }
    struct p2p_arrival a = {
        .env = header_envelope(h),
        .length = h->kind == FRAME_RTS ? h->word : len,
        .protocol = h->kind == FRAME_EAGER ? PROTOCOL_EAGER
                    : h->kind == FRAME_RTS ? PROTOCOL_RENDEZVOUS
                                           : PROTOCOL_SYNCHRONOUS,
    };
    a.expected = posted_find(&p->posted, a.env) != NULL;
    if (p->watch)
        p->watch->arrived(p, &a);
    p2p_deliver(ctx, from, h, payload, len);
    if (p->watch) /* a callback may have detached the tool */
        p->watch->delivered(p);
}

void p2p_set_watch(struct p2p *p, const struct p2p_watch *watch)
{
    p->watch = watch;
    void (*plain)(void *, struct peer *, const struct frame_header *, const void *, size_t) =
        watch ? deliver_with_tool : p2p_deliver;
    if (p->deliver_without_notes)
        p->deliver_without_notes = plain; /* deliver_with_notes (note.c) calls this function */
    else
        p->net->deliver = plain;
}

size_t p2p_unexpected_length(const struct p2p *p)
{
    return p->unexpected.count;
}

size_t p2p_posted_length(const struct p2p *p)
{
    return p->posted.count + (p->posted.lone != NULL);
}

bool p2p_is_posted(struct p2p *p, struct envelope env)
{
    return posted_find(&p->posted, env) != NULL;
}

uint32_t p2p_new_channel(struct p2p *p)
{
    return p->channels++ & 0x7fffffffu;
}

static void p2p_peer_connected(void *ctx, struct peer *peer)
{
    struct p2p *p = ctx;
    bool suggested = peer->caps.eager_best && eager_max.source == SOURCE_DEFAULT;
    uint64_t best = suggested ? peer->caps.eager_best : (uint64_t)eager_max.value;
    peer->eager_max = MIN(best, peer->caps.frame_max);
    peer->eager_below = p->debug ? 1 : peer->eager_max + 1;
    p->offer_above = MIN(p->offer_above, peer->eager_max);
    p->check_posted_from = MIN(p->check_posted_from, p->offer_above + 1);
}

static enum net_delivery_status p2p_query_op_status(void *ctx, struct net_op *op, uint64_t *number)
{
    bool seen;
    (void)ctx;
    if (read_is_op(op, &seen))
        return seen ? NET_DELIVERY_DONE : NET_DELIVERY_REPEAT;
    return write_is_op(op, &seen, number) && seen ? NET_DELIVERY_QUERY : NET_DELIVERY_REPEAT;
}

/* True if the write into the receive with cookie `number` has arrived; completes the receive in this case. */
static bool p2p_op_completed_at_peer(void *ctx, const struct peer *from, uint64_t number)
{
    struct p2p_request *r = request_find_by_cookie(
        ctx, from, number, STATE_BIT(RECV_OFFERED) | STATE_BIT(RECV_RECALLED) | STATE_BIT(RECV_TAKEN));
    return !r || put_check_arrived(r);
}

/* A process of another job has disconnected: frees its unreceived messages. */
static void p2p_peer_disconnected(void *ctx, struct peer *peer)
{
    messages_free_from(ctx, peer);
    link_close(peer);
}

static void release_shared_request(struct request *r)
{
    (void)r; /* shared by many operations */
}

static const struct request_ops sent_ops = {.name = "send", .release = release_shared_request};
static const struct request_ops no_proc_ops = {.name = "receive", .release = release_shared_request};

int p2p_open(struct net *net, struct p2p **out)
{
    struct p2p *p = objmem_new(sizeof(*p)); /* contains requests of which users have handles */
    if (!p)
        return err_set(MPI_ERR_NO_MEM, "out of memory at start-up");
    int rc = match_open(&p->posted);
    rc = rc ? rc : match_open(&p->unexpected);
    if (rc != 0) {
        objmem_free(p);
        return rc;
    }
    if (net->rank == 0)
        protocol_report_missing();
    p->net = net;
    list_init(&p->links);
    list_init(&p->notes);
    list_init(&p->partitioned);
    staged_open(p);
    last_bytes_open(&p->looks, net);
    traffic_open(&p->traffic[false], PATH_READ);
    traffic_open(&p->traffic[true], PATH_PIECES);
    p->offer_above = (uint64_t)eager_max.value;
    p->check_posted_from = p->offer_above + 1;
    p->dice = (uint32_t)clock_ns() ^ net->rank << 20;
    pool_init_objects(&p->requests, sizeof(struct p2p_request), 64);
    pool_init(&p->messages, sizeof(struct message) + MESSAGE_SMALL, 64);
    request_setup(&p->sent, p, &sent_ops);
    p->sent.complete = p->sent.shared = true;
    request_setup(&p->no_proc, p, &no_proc_ops);
    p->no_proc.complete = p->no_proc.shared = true;
    p->no_proc.source = MPI_PROC_NULL;
    net->deliver = p2p_deliver;
    net->connected = p2p_peer_connected;
    net->parted = p2p_peer_disconnected;
    net->fate = p2p_query_op_status;
    net->has_arrived = p2p_op_completed_at_peer;
    net->deliver_ctx = p;
    *out = p;
    return 0;
}

static void log_protocol_choices(const struct p2p *p)
{
    char text[4096];
    if (log_threshold < LOG_INFO)
        return;
    p2p_describe_choices(p, text, sizeof(text));
    for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        log_info("messages to rank %u: %s", p->net->rank, line);
}

void p2p_close(struct p2p *p)
{
    log_protocol_choices(p);
    maps_close(p);
    list_remove(&p->staged_hook.link);
    messages_free_from(p, NULL); /* messages that were never received */
    notes_close(p);
    last_bytes_close(&p->looks); /* of offered receives that got no message */
    match_close(&p->posted);
    match_close(&p->unexpected);
    pool_destroy(&p->requests);
    pool_destroy(&p->messages);
    pool_destroy(&p->controls);
    pool_destroy(&p->gets);
    pool_destroy(&p->pipes);
    links_close(p);
    ids_close(&p->ids);
    objmem_free(p);
}

void p2p_on_drop_comm(struct p2p *p, void (*drop)(struct comm *comm))
{
    p->drop_comm = drop;
}

void p2p_set_layer_handler(struct p2p *p, enum p2p_layer_frame kind, p2p_layer_handler *handler, void *arg)
{
    p->layers[kind] = (struct layer){handler, arg};
}

void p2p_on_peer_of(struct p2p *p, p2p_peer_of *peer_of, void *arg)
{
    p->peer_of = peer_of;
    p->peer_of_arg = arg;
}

struct request *p2p_completed_send_request(struct p2p *p)
{
    return &p->sent;
}

struct request *p2p_proc_null_request(struct p2p *p)
{
    return &p->no_proc;
}

struct net *p2p_get_net(struct p2p *p)
{
    return p->net;
}

int p2p_wait(struct p2p *p, struct request *r)
{
    return p2p_wait_among(p, r, NULL);
}

int p2p_wait_among(struct p2p *p, struct request *r, const struct request_set *all)
{
    if (atomic_load_explicit(&r->complete, memory_order_acquire) == 0)
        net_wait_among(p->net, &r->complete, all);
    return r->error;
}
