/* ib_world.h: two or three simulated processes that run the production InfiniBand transport over the
 * network of ib_fabric.h. The processes exchange numbered frames, puts and flags (puts without
 * completion), and close connections; ports go down and queue pairs fail. The test executes each event
 * as one step. Frames must arrive once and in order under all failures. After the network is repaired
 * all frames must arrive, and the two ends of each connection must agree on credits, slots and buffers
 * (world_check).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_IB_WORLD_H
#define FP_TESTS_IB_WORLD_H

#include <time.h>

#include "base/counter.h"
#include "base/log.h"
#include "base/tunable.h"
#include "boot/backend.h"
#include "boot/boot.h"
#include "ib_fabric.h"
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/failover/failover.h"
#include "net/ib/ib.h"
#include "net/ib/policy/posted.h"
#include "net/ib/queue/xrc.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/transfer.h"
#include "net/ib/transport/ib_transport.h"
#include "net/net.h"
#include "net/registry.h"
#include "test.h"

enum {
    WORLD_PUTS = 4,
    WORLD_PUT_MAX = 20000,
    WORLD_FRAME_MAX = 3000,
    WORLD_FLAGS = 64,
    WORLD_RELEASED_MAX = 8
};

struct world_settings {
    uint32_t processes, ports, lanes, buffers;
    enum credit_scheme scheme;
    uint32_t rings;   /* peers that may be polled by RDMA ring */
    bool one_network; /* all ports are on one subnet; false: one subnet per port number */
    bool keeps_completions, keeps_deregistered; /* see struct fabric */
    bool xrc;                                   /* XRC connections: the world has two lanes and one port */
    bool puts_have_status;                      /* the sender may query the receiver whether a put arrived */
    const char *messages, *stripe;              /* values of the tunables IB_MESSAGES and IB_STRIPE */
};

struct world_process;

struct world_put {
    struct net_op op;
    struct net_pending queued; /* entry in the peer's queue while the put waits for resources */
    struct world_process *from;
    uint32_t to, index, length, times;
    bool busy;
    char *bytes;
    struct net_mem memory;
};

/* Traffic from one process to another: numbered frames, puts and flags (puts without completion). */
struct world_flow {
    struct net_pending queued; /* entry in the peer's queue while frames wait for resources */
    struct world_process *from;
    uint32_t to, requested, sent, delivered; /* numbers of frames */
    bool is_queued;
    uint64_t flag; /* value that the newest put without completion wrote */
    struct world_put puts[WORLD_PUTS];
};

struct world_process {
    struct net net;
    struct boot boot;
    struct ib *ib;
    struct net_port ports[FABRIC_PORTS];
    struct ib_device other_devices[FABRIC_PORTS]; /* devices of the rails after the first */
    struct world_flow flows[FABRIC_NODES];        /* indexed by destination */
    char *memory;                                 /* target of the peers' puts */
    struct net_mem mem;
    struct net_key key;
    char *flags; /* target of the peers' puts without completion */
    struct net_mem flags_mem;
    struct net_key flags_key;
    char *released_flags[WORLD_RELEASED_MAX]; /* earlier memory of flags, deregistered and reused */
    uint32_t nreleased;
    uint32_t unreported_ports; /* bit mask: ports whose state changed without a port event yet */
    bool has_ended;
};

static struct world {
    struct world_settings settings;
    struct world_process processes[FABRIC_NODES];
    uint32_t node_of[FABRIC_NODES], all[FABRIC_NODES];
    uint32_t length; /* length in bytes of every new frame; 0: lengths vary */
} world;

static uint64_t world_number; /* seed of this world, printed on failure */
static uint64_t world_now = UINT64_C(1000000000000);
static struct counter world_counter;

/* Time passes only when the test advances it. */
int clock_gettime(clockid_t id, struct timespec *t)
{
    (void)id;
    *t = (struct timespec){(time_t)(world_now / 1000000000u), (long)(world_now % 1000000000u)};
    return 0;
}

/* ---- launcher and receiver of frames ---- */

static inline int world_get_rail_info(struct boot *b, uint32_t rank, const char *key, void **value,
                                      size_t *length)
{
    struct ib_rail_info rails[IB_RAILS_MAX];
    (void)b;
    (void)key;
    memset(rails, 0, sizeof(rails));
    *length = ib_rails_describe(world.processes[rank].ib, rails) * sizeof(*rails);
    *value = malloc(*length);
    memcpy(*value, rails, *length);
    return 0;
}

static inline bool world_report_abort(struct boot *b, int code, const char *text)
{
    (void)code;
    printf("world %llu: rank %u aborts the job: %s\n", (unsigned long long)world_number, b->rank, text);
    return true;
}

static inline uint32_t world_frame_length(uint32_t number)
{
    static const uint32_t lengths[] = {8, 1500, 100, WORLD_FRAME_MAX, 0, 1024, 300};
    return world.length ? world.length : lengths[number % COUNT_OF(lengths)];
}

static inline void world_deliver_frame(void *ctx, struct peer *from, const struct frame_header *h,
                                       const void *payload, size_t length)
{
    struct world_process *p = ctx;
    struct world_flow *f = &world.processes[from->rank].flows[p->net.rank];
    EXPECT_EQ(h->word, f->delivered);
    EXPECT_EQ(length, world_frame_length(f->delivered));
    const unsigned char *bytes = payload;
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != (unsigned char)(f->delivered + i)) {
            printf("frame %u from rank %u to rank %u: byte %zu is %u, expected %u\n", f->delivered,
                   from->rank, p->net.rank, i, bytes[i], (unsigned char)(f->delivered + i));
            test_failures++;
            break;
        }
    f->delivered++;
}

/* ---- puts whose delivery status the receiver can report ---- */

static inline char *world_put_target(const struct world_put *u)
{
    return world.processes[u->to].memory +
           ((size_t)u->from->net.rank * WORLD_PUTS + u->index) * WORLD_PUT_MAX;
}

static inline void world_put_done(struct net_op *op, int status)
{
    struct world_put *u = container_of(op, struct world_put, op);
    EXPECT_EQ(status, 0);
    EXPECT(u->busy);
    EXPECT(memcmp(u->bytes, world_put_target(u), u->length) == 0);
    u->busy = false;
}

static inline enum net_delivery_status world_put_status(void *ctx, struct net_op *op, uint64_t *number)
{
    (void)ctx;
    if (op->done != world_put_done)
        return NET_DELIVERY_REPEAT;
    *number = container_of(op, struct world_put, op)->index;
    return NET_DELIVERY_QUERY;
}

static inline bool world_put_has_arrived(void *ctx, const struct peer *from, uint64_t number)
{
    const struct world_process *p = ctx;
    const struct world_put *u = &world.processes[from->rank].flows[p->net.rank].puts[number];
    return memcmp(u->bytes, world_put_target(u), u->length) == 0;
}

/* ---- creating and destroying a world ---- */

static inline void world_set_tunable(const char *name, const char *value)
{
    struct tunable *t = tunables_find(name);
    if (!t || tunable_set(t, value, SOURCE_PROGRAM) != 0) {
        printf("FISHPLATE_%s does not accept the value %s\n", name, value);
        exit(1);
    }
}

static inline void world_init_device(struct world_process *p, uint32_t port, struct ib_device *d)
{
    struct fabric_adapter *a = &fabric.adapters[p->net.rank][port];
    struct net_port *used = &p->ports[port];
    *used = (struct net_port){.subnet = a->subnet, .rate = 100000, .port = 1, .lid = a->lid};
    snprintf(used->device, sizeof(used->device), "a%u", port);
    *d = (struct ib_device){
        .verbs = fabric_verbs(),
        .context = &a->extended.context,
        .pd = &a->pd,
        .attr = {.max_qp_wr = 4096,
                 .max_cqe = 8192,
                 .max_qp = 1000,
                 .max_qp_rd_atom = 4,
                 .max_qp_init_rd_atom = 4,
                 .max_srq_wr = 256,
                 .device_cap_flags = IBV_DEVICE_XRC},
        .port_attr = {.state = IBV_PORT_ACTIVE, .active_mtu = IBV_MTU_1024, .max_msg_sz = 1u << 30},
        .port = 1,
        .last_byte_last = true,
        .survey = {.ports = p->ports, .count = world.settings.ports, .devices = world.settings.ports},
        .address = {.lid = a->lid, .mtu = IBV_MTU_1024, .subnet = a->subnet},
        .used = used};
    snprintf(d->name, sizeof(d->name), "a%u of rank %u", port, p->net.rank);
}

static inline void world_init_rails(struct world_process *p)
{
    struct ib *ib = p->ib;
    for (uint32_t i = 0; i < world.settings.ports; i++) {
        struct ib_device *d = i == 0 ? &ib->device : &p->other_devices[i];
        world_init_device(p, i, d);
        d->address.rails = world.settings.ports;
        ib->adapters[i] = (struct ib_adapter){
            .device = d, .index = (uint8_t)i, .cq = fabric_cq(d->context), .cq_size = 8192};
        ib->rails[i] = (struct ib_rail){.device = d,
                                        .adapter = &ib->adapters[i],
                                        .bytes = &world_counter,
                                        .stripes = &world_counter,
                                        .frames = &world_counter,
                                        .weight = 1,
                                        .index = (uint8_t)i};
    }
    ib->nadapters = ib->nrails = world.settings.ports;
}

static inline void world_open_transport(struct world_process *p)
{
    struct ib *ib = calloc(1, sizeof(*ib));
    const struct world_settings *s = &world.settings;
    p->ib = ib;
    ib->base = (struct transport){.ops = &ib_transport, .net = &p->net};
    ib->events = &ib_events;
    ib->messages = ib_messages;
    ib->job = p->net.world;
    ib->next_timer = UINT64_MAX;
    ib->stop_fd = -1;
    list_init(&ib->opening);
    list_init(&ib->control_waiting);
    list_init(&ib->multicasts);
    ib->lanes = s->lanes;
    ib->receive = s->xrc ? IB_RECEIVE_XRC : s->lanes > 1 ? IB_RECEIVE_SHARED : IB_RECEIVE_PEER;
    ib->inline_max = FABRIC_INLINE;
    ib->rules =
        (struct credit_rules){.scheme = s->scheme,
                              .growth = CREDIT_LINEAR,
                              .first = s->buffers,
                              .buffers_max = s->scheme == CREDIT_DYNAMIC ? 4 * s->buffers : s->buffers,
                              .step = 1,
                              .calm_after = 3};
    ib->ring_slots = 4;
    ib->ring_slot_size = 512;
    ib->ring_frame_max = ring_frame_max(ib->ring_slot_size);
    ib_pool_init(&ib->small, ib, 1024);
    ib_pool_init(&ib->large, ib, sizeof(struct ib_frame) + WORLD_FRAME_MAX);
    ib_pool_init(&ib->rings, ib, (size_t)ib->ring_slots * ib->ring_slot_size);
    ib_pool_init(&ib->bells, ib, CACHE_LINE);
    world_init_rails(p);
    pollset_open(&ib->pollset, POLLSET_FIRST, POLLSET_SEQUENTIAL, s->rings);
    EXPECT_EQ(ib_stripe_open(ib), 0);
    EXPECT_EQ(ib_xrc_open(ib), 0);
    EXPECT_EQ(ib_memory_open(ib), 0);
    EXPECT_EQ(ib_shared_open(ib, 0), 0);
    EXPECT_EQ(ib_hello_open(ib), 0);
}

static inline void world_open_flags(struct world_process *p)
{
    p->flags = calloc(1, WORLD_FLAGS);
    EXPECT_EQ(ib_memory_register(&p->ib->base, p->flags, WORLD_FLAGS, &p->flags_mem, &p->flags_key), 0);
}

static inline void world_open_process(struct world_process *p, uint32_t rank)
{
    static const struct boot_backend backend = {
        .name = "test", .get = world_get_rail_info, .abort = world_report_abort};
    const uint32_t n = world.settings.processes;
    p->boot = (struct boot){.rank = rank,
                            .size = n,
                            .node = rank,
                            .nnodes = n,
                            .node_of = world.node_of,
                            .nlocal = 1,
                            .local_ranks = &world.all[rank],
                            .vnode = -1,
                            .host = "here",
                            .job = "unit-test",
                            .node_fd = -1,
                            .backend = &backend};
    p->net = (struct net){.boot = &p->boot,
                          .rank = rank,
                          .size = n,
                          .world = 7,
                          .ntransports = 1,
                          .nouter = 1,
                          .doorbell_fd = -1,
                          .deliver = world_deliver_frame,
                          .deliver_ctx = p};
    p->net.fate = world.settings.puts_have_status ? world_put_status : NULL;
    p->net.has_arrived = world_put_has_arrived;
    p->net.doorbell = &p->net.own_doorbell;
    p->net.peers = calloc(n, sizeof(struct peer *));
    list_init(&p->net.stalled);
    list_init(&p->net.hooks);
    list_init(&p->net.groups);
    list_init(&p->net.group_notes);
    world_open_transport(p);
    p->net.transports[0] = &p->ib->base;
    size_t bytes = (size_t)n * WORLD_PUTS * WORLD_PUT_MAX;
    p->memory = calloc(1, bytes);
    EXPECT_EQ(ib_memory_register(&p->ib->base, p->memory, bytes, &p->mem, &p->key), 0);
    world_open_flags(p);
    for (uint32_t to = 0; to < n; to++) {
        struct world_flow *f = &p->flows[to];
        *f = (struct world_flow){.from = p, .to = to};
        for (uint32_t i = 0; i < WORLD_PUTS; i++) {
            struct world_put *u = &f->puts[i];
            *u = (struct world_put){.from = p, .to = to, .index = i, .bytes = calloc(1, WORLD_PUT_MAX)};
            EXPECT_EQ(
                ib_memory_register(&p->ib->base, u->bytes, WORLD_PUT_MAX, &u->memory, &(struct net_key){{0}}),
                0);
        }
    }
}

/* Reports that a shared receive queue is low, as the event thread does. */
static inline void world_report_srq_limit(void *shared)
{
    struct ib_shared *s = shared;
    atomic_store(&s->low, 1);
    atomic_store(&s->ib->attention, 1);
}

static inline void world_open(struct world_settings set)
{
    static bool tuned;
    if (!tuned) {
        world_set_tunable("REG_CACHE", "0");
        world_set_tunable("IB_SEND_DEPTH", "32");
        world_set_tunable("IB_SIGNAL_EVERY", "8");
        world_set_tunable("IB_RAIL_PATIENCE", "3600");
        world_set_tunable("IB_STRIPE_MIN", "4096");
        world_set_tunable("IB_SHARED_BASE", "16");
        world_set_tunable("IB_SHARED_FACTOR", "0");
        log_threshold = LOG_ERROR;
        tuned = true;
    }
    world = (struct world){.settings = set};
    world_set_tunable("IB_MESSAGES", set.messages);
    world_set_tunable("IB_STRIPE", set.stripe);
    fabric_open(set.one_network);
    fabric.keeps_completions = set.keeps_completions;
    fabric.keeps_deregistered = set.keeps_deregistered;
    fabric.report_srq_limit = world_report_srq_limit;
    for (uint32_t i = 0; i < set.processes; i++)
        world.node_of[i] = world.all[i] = i;
    for (uint32_t i = 0; i < set.processes; i++)
        world_open_process(&world.processes[i], i);
}

/* Ends the process: releases its memory and disconnects all its peers. */
static inline void world_process_end(struct world_process *p)
{
    struct ib *ib = p->ib;
    if (p->has_ended)
        return;
    p->has_ended = true;
    ib->closing = true;
    for (uint32_t to = 0; to < world.settings.processes; to++)
        for (uint32_t i = 0; i < WORLD_PUTS; i++)
            ib_memory_release(&ib->base, &p->flows[to].puts[i].memory);
    ib_memory_release(&ib->base, &p->mem);
    ib_memory_release(&ib->base, &p->flags_mem);
    for (uint32_t i = 0; i < p->net.size; i++)
        if (p->net.peers[i]) {
            ib_peer_disconnect(&ib->base, p->net.peers[i]);
            free(p->net.peers[i]);
        }
    ib_hello_close(ib);
    ib_shared_close(ib);
    ib_xrc_close(ib);
    ib_memory_close(ib);
    for (uint32_t i = 0; i < ib->nadapters; i++)
        fabric_cq_destroy(ib->adapters[i].cq);
    ib_buffers_close(ib);
    ib_stripe_close(ib);
    ib_endpoints_free(ib);
    free(ib);
    free(p->net.peers);
}

static inline void world_close_process(struct world_process *p)
{
    world_process_end(p);
    for (uint32_t to = 0; to < world.settings.processes; to++)
        for (uint32_t i = 0; i < WORLD_PUTS; i++)
            free(p->flows[to].puts[i].bytes);
    free(p->flags);
    for (uint32_t i = 0; i < p->nreleased; i++)
        free(p->released_flags[i]);
    free(p->memory);
}

static inline void world_close(void)
{
    for (uint32_t i = 0; i < world.settings.processes; i++)
        world_close_process(&world.processes[i]);
    EXPECT_EQ(fabric.qps_created, fabric.qps_destroyed);
    fabric_close();
}

/* ---- actions of a process ---- */

static inline struct peer *world_find_peer(struct world_process *p, uint32_t rank)
{
    struct peer *peer = NULL;
    EXPECT_EQ(net_peer(&p->net, rank, &peer), 0);
    return peer;
}

static inline struct ib_endpoint *world_endpoint(uint32_t from, uint32_t to)
{
    return world_find_peer(&world.processes[from], to)->endpoint;
}

/* Sends one frame; every third is built in place. */
static inline int world_send_next_frame(struct world_flow *f, struct peer *peer)
{
    const struct frame_header h = {.kind = 1, .word = f->sent};
    const uint32_t length = world_frame_length(f->sent);
    char bytes[WORLD_FRAME_MAX];
    void *at = bytes;
    bool in_place = f->sent % 3 == 2;
    int rc = in_place ? peer->ops->reserve(peer, length, &at) : 0;
    if (rc != 0)
        return rc;
    for (uint32_t i = 0; i < length; i++)
        ((char *)at)[i] = (char)(f->sent + i);
    if (in_place)
        peer->ops->commit(peer, &h, length);
    return in_place ? 0 : peer_send_now(peer, &h, bytes, length);
}

static inline int world_send_requested_frames(struct net_pending *item)
{
    struct world_flow *f = container_of(item, struct world_flow, queued);
    for (; f->sent < f->requested; f->sent++) {
        int rc = world_send_next_frame(f, world_find_peer(f->from, f->to));
        EXPECT(rc == 0 || rc == ERR_AGAIN);
        if (rc != 0)
            return rc;
    }
    f->is_queued = false;
    return 0;
}

static inline void world_request_frame(uint32_t from, uint32_t to)
{
    struct world_flow *f = &world.processes[from].flows[to];
    struct peer *peer = world_find_peer(f->from, to);
    f->requested++;
    if (f->is_queued)
        return;
    f->queued.resume = world_send_requested_frames;
    f->is_queued = true;
    if (!list_empty(&peer->pending) || world_send_requested_frames(&f->queued) != 0)
        peer_queue(peer, &f->queued);
}

static inline int world_post_put(struct net_pending *item)
{
    struct world_put *u = container_of(item, struct world_put, queued);
    u->op.done = world_put_done;
    return ib_put(world_find_peer(u->from, u->to), u->bytes, &u->memory, (uintptr_t)world_put_target(u),
                  &world.processes[u->to].key, u->length, &u->op);
}

static inline void world_put(uint32_t from, uint32_t to, uint32_t index, uint32_t length)
{
    struct world_put *u = &world.processes[from].flows[to].puts[index];
    struct peer *peer = world_find_peer(u->from, to);
    if (u->busy)
        return;
    u->busy = true;
    u->length = length;
    u->times++;
    memset(u->bytes, (int)(u->times + index), length);
    u->queued.resume = world_post_put;
    if (!list_empty(&peer->pending) || world_post_put(&u->queued) != 0)
        peer_queue(peer, &u->queued);
}

/* Writes the next flag value by a put without completion. */
static inline void world_write_flag(uint32_t from, uint32_t to)
{
    struct world_flow *f = &world.processes[from].flows[to];
    uint64_t next = f->flag + 1;
    if (ib_put(world_find_peer(f->from, to), &next, NULL,
               (uintptr_t)world.processes[to].flags + from * sizeof(next), &world.processes[to].flags_key,
               sizeof(next), NULL) == 0)
        f->flag = next;
}

static inline uint64_t world_read_flag(uint32_t from, uint32_t to)
{
    uint64_t flag;
    memcpy(&flag, world.processes[to].flags + from * sizeof(flag), sizeof(flag));
    return flag;
}

/* Once all flags have arrived: deregisters their memory, reuses it for other data, and registers new
 * memory for flags. */
static inline void world_renew_flags(uint32_t rank)
{
    struct world_process *p = &world.processes[rank];
    for (uint32_t i = 0; i < world.settings.processes; i++)
        if (world_read_flag(i, rank) != world.processes[i].flows[rank].flag)
            return;
    if (p->nreleased == WORLD_RELEASED_MAX)
        return;
    ib_memory_release(&p->ib->base, &p->flags_mem);
    memset(p->flags, 0x5b, WORLD_FLAGS);
    p->released_flags[p->nreleased++] = p->flags;
    world_open_flags(p);
    for (uint32_t i = 0; i < world.settings.processes; i++)
        world.processes[i].flows[rank].flag = 0;
}

static inline void world_set_port(uint32_t rank, uint32_t port, bool up)
{
    struct fabric_adapter *a = &fabric.adapters[rank][port];
    if (a->up != up)
        world.processes[rank].unreported_ports ^= 1u << port;
    a->up = up;
}

/* Reports port events and the state of all ports, as the event thread does. */
static inline void world_report_ports(uint32_t rank)
{
    struct world_process *p = &world.processes[rank];
    for (uint32_t i = 0; i < world.settings.ports; i++)
        atomic_store(&p->ib->rails[i].down, fabric.adapters[rank][i].up ? 0 : world_now);
    if (p->unreported_ports)
        atomic_store(&p->ib->ports, 1);
    atomic_store(&p->ib->attention, 1);
    p->unreported_ports = 0;
}

static inline void world_request_heartbeat(uint32_t rank)
{
    atomic_store(&world.processes[rank].ib->pulse, 1);
    atomic_store(&world.processes[rank].ib->attention, 1);
}

#endif
