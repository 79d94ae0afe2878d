/* ib.c: fuzzes the data that another rank, or a process outside the job, sends over InfiniBand: HELLO
 * datagrams, messages through lanes (frames, credits, rings, closing), bytes in rings. Connections,
 * credits, rings and the polling set are the production code; the adapter is simulated, and its requests
 * do nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/channel/channel.h"
#include "net/ib/connection/connection.h"
#include "net/ib/failover/failover.h"
#include "net/ib/ib.h"
#include "net/ib/rails/rails.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "net/guest.h"

enum { PEERS = 3, BUFFER = 1024, SLOTS = 4, SLOT = 256, DEPTH = 32, RAILS = 2 };

static struct ib ib;
static struct net net;
static struct peer peers[PEERS], *table[PEERS];
static struct ib_endpoint endpoints[PEERS], *by_id[PEERS];
static struct net_port ports[RAILS];
static struct ibv_context context, lane_context;
static struct ibv_qp ud, qps[PEERS][IB_LANES + RAILS_MAX];
static unsigned byte_sum;     /* sum of all bytes of all frames, so that every byte is read */
static char *arrived_message; /* an arrived message in memory of exactly its size */

_Noreturn void __wrap_ib_fatal(struct ib *i, const struct ib_endpoint *ep, const char *fmt, ...);
_Noreturn void __wrap_ib_fatal(struct ib *i, const struct ib_endpoint *ep, const char *fmt, ...)
{
    (void)i, (void)ep, (void)fmt;
    fuzz_refused();
}

/* ---- memory ---- */

static char registered[64];

bool __wrap_ib_memory_is_registered(const struct ib *i, uint64_t address, size_t len,
                                    const struct net_key *key);
bool __wrap_ib_memory_is_registered(const struct ib *i, uint64_t address, size_t len,
                                    const struct net_key *key)
{
    const uintptr_t begin = (uintptr_t)registered, end = begin + sizeof(registered);
    (void)i, (void)key;
    return address >= begin && address <= end && len <= end - address;
}

static struct ib_buffer *all_buffers; /* list of all buffers, freed after the input */

struct ib_buffer *__wrap_ib_buffer_get(struct ib_pool *pool);
struct ib_buffer *__wrap_ib_buffer_get(struct ib_pool *pool)
{
    struct ib_buffer *b = calloc(1, sizeof(*b));
    b->data = calloc(1, pool->size);
    list_init(&b->link);
    b->next = all_buffers;
    all_buffers = b;
    return b;
}

void __wrap_ib_buffer_put(struct ib_pool *pool, struct ib_buffer *b);
void __wrap_ib_buffer_put(struct ib_pool *pool, struct ib_buffer *b)
{
    (void)pool;
    FUZZ_CHECK(b != NULL);
}

static void free_all_buffers(void)
{
    while (all_buffers) {
        struct ib_buffer *b = all_buffers;
        all_buffers = b->next;
        free(b->data);
        free(b);
    }
}

/* ---- lanes ---- */

int __wrap_ib_lane_create(struct ib_lane *lane);
int __wrap_ib_lane_create(struct ib_lane *lane)
{
    lane->qp = &qps[lane->endpoint->peer->rank][lane->index];
    *lane->qp = (struct ibv_qp){.context = &lane_context, .qp_context = lane};
    /* Freed by the library with the lane's pair of rails, or by this program after the input. */
    if (!lane->work)
        lane->work = calloc(DEPTH, sizeof(*lane->work));
    lane->depth = DEPTH;
    lane->signal_every = DEPTH / 4;
    FUZZ_CHECK(!lane->bare || (lane->rail >= ib.rails && lane->rail < ib.rails + RAILS));
    lane->head = lane->tail = 0;
    return 0;
}
int __wrap_ib_lane_connect(struct ib_lane *lane, const struct ib_address *to, uint32_t qpn, uint32_t psn,
                           uint32_t rd_atomic);
int __wrap_ib_lane_connect(struct ib_lane *lane, const struct ib_address *to, uint32_t qpn, uint32_t psn,
                           uint32_t rd_atomic)
{
    (void)to, (void)qpn, (void)psn, (void)rd_atomic;
    FUZZ_CHECK(lane->qp != NULL);
    return 0;
}
void __wrap_ib_lane_destroy(struct ib_lane *lane);
void __wrap_ib_lane_destroy(struct ib_lane *lane)
{
    lane->qp = NULL;
}
void __wrap_ib_lane_destroy_queue_pair(struct ib_lane *lane);
void __wrap_ib_lane_destroy_queue_pair(struct ib_lane *lane)
{
    FUZZ_CHECK(lane->bare);
    lane->qp = NULL;
}
void __wrap_ib_lane_post_receives(struct ib_lane *lane, uint32_t n);
void __wrap_ib_lane_post_receives(struct ib_lane *lane, uint32_t n)
{
    (void)lane;
    FUZZ_CHECK(n <= 1u << 20);
}
void __wrap_ib_lane_post_receive(struct ib_lane *lane, struct ib_buffer *b);
void __wrap_ib_lane_post_receive(struct ib_lane *lane, struct ib_buffer *b)
{
    FUZZ_CHECK(lane->qp != NULL && b != NULL);
}
void __wrap_ib_lane_retire_sends(struct ib_lane *lane, uint32_t place);
void __wrap_ib_lane_retire_sends(struct ib_lane *lane, uint32_t place)
{
    (void)lane, (void)place;
}
void __wrap_ib_lane_report_refusal(struct ib_lane *lane, int rc);
void __wrap_ib_lane_report_refusal(struct ib_lane *lane, int rc)
{
    (void)lane;
    FUZZ_CHECK(rc == 0); /* lane_post_send never fails */
}
void __wrap_ib_lane_set_error(struct ib_lane *lane);
void __wrap_ib_lane_set_error(struct ib_lane *lane)
{
    (void)lane;
}

int __wrap_ib_adapter_reserve_completions(struct ib_adapter *a, int more);
int __wrap_ib_adapter_reserve_completions(struct ib_adapter *a, int more)
{
    (void)a, (void)more;
    return 0;
}

/* ---- other modules ---- */

int __wrap_net_peer(struct net *n, uint32_t r, struct peer **out);
int __wrap_net_peer(struct net *n, uint32_t r, struct peer **out)
{
    FUZZ_CHECK(r < n->size);
    *out = n->peers[r];
    return 0;
}
int __wrap_net_progress(struct net *n);
int __wrap_net_progress(struct net *n)
{
    (void)n;
    return 0;
}
struct net_name __wrap_net_process_name(const struct net *n, uint32_t number);
struct net_name __wrap_net_process_name(const struct net *n, uint32_t number)
{
    return (struct net_name){n->world, number};
}
bool __wrap_net_guest_find_number(const struct net *n, uint64_t world, uint32_t rank, uint32_t *number);
bool __wrap_net_guest_find_number(const struct net *n, uint64_t world, uint32_t rank, uint32_t *number)
{
    *number = rank;
    return world == n->world && rank < n->size;
}
int __wrap_boot_get(struct boot *b, uint32_t r, const char *key, void **val, size_t *len);
int __wrap_boot_get(struct boot *b, uint32_t r, const char *key, void **val, size_t *len)
{
    (void)b, (void)r, (void)key, (void)val, (void)len;
    return MPI_ERR_OTHER;
}
void __wrap_regcache_sweep(struct regcache *c);
void __wrap_regcache_sweep(struct regcache *c)
{
    (void)c;
}

static int refuse_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)qp, (void)wr, (void)bad;
    return 0;
}
static int refuse_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void)qp, (void)wr, (void)bad;
    return 1; /* fails; the transport then treats the request as lost */
}
/* Completes each request as soon as it is posted. */
static int lane_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct ib_lane *lane = qp->qp_context;
    (void)bad;
    FUZZ_CHECK(lane->qp == qp && wr != NULL);
    lane->tail = lane->head;
    return 0;
}
static int poll_nothing(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    (void)cq, (void)n, (void)wc;
    return 0;
}
static int ignore_destroy_ah(struct ibv_ah *ah)
{
    (void)ah;
    return 0;
}
static struct ibv_ah *refuse_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    static struct ibv_ah ah;
    (void)pd, (void)attr;
    return &ah;
}
void __wrap_ib_device_fill_route(const struct ib_device *d, const struct ib_address *to,
                                 struct ibv_ah_attr *out);
void __wrap_ib_device_fill_route(const struct ib_device *d, const struct ib_address *to,
                                 struct ibv_ah_attr *out)
{
    (void)d, (void)to;
    memset(out, 0, sizeof(*out));
}

static void read_frame(void *ctx, struct peer *from, const struct frame_header *h, const void *payload,
                       size_t len)
{
    (void)ctx, (void)h;
    FUZZ_CHECK(from >= peers && from < peers + PEERS && len <= BUFFER);
    for (size_t i = 0; i < len; i++)
        byte_sum += ((const uint8_t *)payload)[i];
}

/* ---- the world ---- */

static void open_world(uint8_t bits)
{
    context = (struct ibv_context){
        .ops = {.post_recv = refuse_post_recv, .post_send = refuse_post_send, .poll_cq = poll_nothing}};
    lane_context = (struct ibv_context){.ops = {.post_send = lane_post_send}};
    ud = (struct ibv_qp){.context = &context};
    net = (struct net){.rank = 0, .world = 7, .size = PEERS, .peers = table, .deliver = read_frame};
    ib = (struct ib){.base = {.net = &net},
                     .events = &ib_events,
                     .messages = ib_messages,
                     .lanes = 1,
                     .job = 7,
                     .endpoints = by_id};
    static struct ibv_cq cq;
    cq = (struct ibv_cq){.context = &context};
    ib.adapters[0].cq = &cq;
    ib.adapters[0].device = &ib.device;
    ib.nendpoints = PEERS;
    ib.nadapters = 1;
    ib.nrails = RAILS;
    for (uint8_t r = 0; r < RAILS; r++) {
        ib.rails[r] = (struct ib_rail){.device = &ib.device, .adapter = &ib.adapters[0], .index = r};
        ports[r].subnet = 0;
        ib.uds[r] = (struct ib_ud){.qp = &ud, .depth = 4};
    }
    ib.device.used = &ports[0];
    ib.device.last_byte_last = bits & 1;
    ib.device.verbs.create_ah = refuse_create_ah;
    ib.device.verbs.destroy_ah = ignore_destroy_ah;
    ib.rules = (struct credit_rules){.scheme = (enum credit_scheme)(bits % 3), .first = 4, .buffers_max = 16};
    ib.ring_slots = SLOTS;
    ib.ring_slot_size = SLOT;
    ib.ring_frame_max = ring_frame_max(SLOT);
    ib.next_timer = UINT64_MAX;
    list_init(&ib.opening);
    list_init(&ib.control_waiting);
    ib_pool_init(&ib.ud_pool, &ib, 40 + 4096);
    ib_pool_init(&ib.small, &ib, BUFFER);
    ib_pool_init(&ib.large, &ib, BUFFER);
    ib_pool_init(&ib.rings, &ib, SLOTS * SLOT);
    ib_pool_init(&ib.bells, &ib, 64);
    pollset_open(&ib.pollset, (enum pollset_policy)0, (enum pollset_order)0, 2);
    for (uint32_t r = 0; r < PEERS; r++) {
        struct ib_endpoint *ep = by_id[r] = &endpoints[r];
        table[r] = &peers[r];
        peers[r] = (struct peer){.transport = &ib.base, .net = &net, .rank = r, .endpoint = ep};
        list_init(&peers[r].pending);
        *ep = (struct ib_endpoint){.ib = &ib, .peer = &peers[r], .id = r, .bell = ib_buffer_get(&ib.bells)};
        list_init(&ep->held);
        list_init(&ep->control_link);
        list_init(&ep->opening_link);
        list_init(&ep->unacknowledged);
        list_init(&ep->unacknowledged_rdma);
        for (uint8_t i = 0; i < IB_LANES; i++) {
            ep->lanes[i] = (struct ib_lane){
                .endpoint = ep, .pool = &ib.large, .index = i, .depth = DEPTH, .frame_max = 900};
            list_init(&ep->lanes[i].posted);
            ib_lane_use_primary(&ep->lanes[i]);
        }
        struct ib_rail_info said[IB_RAILS_MAX];
        ib_rails_describe(&ib, said);
        if (bits & 4)
            ib_paths_find(ep, said, RAILS);
    }
}

static void fuzz_hello(struct fuzz_in *in, bool sound)
{
    struct ib_buffer *b = ib_buffer_get(&ib.ud_pool);
    struct ib_hello h;
    size_t length = sound ? sizeof(h) : fuzz_u8(in);
    fuzz_bytes(in, &h, sizeof(h));
    if (sound) /* a HELLO with this job's id, so that the checks of its other members are reached */
        h.magic = IB_HELLO_MAGIC, h.version = IB_HELLO_VERSION, h.rail %= IB_RAILS_MAX, h.adapter = 0,
        h.job = h.to_job = 7, h.to = 0, h.from = 1 + h.from % (PEERS - 1), h.lanes = 1,
        h.scheme = (uint32_t)ib.rules.scheme, h.mine = 1 + h.mine % 4;
    memcpy(b->data + 40, &h, sizeof(h));
    b->rail = h.up % RAILS; /* the rail on which the datagram arrives */
    ib_hello_receive(&ib, b, (uint32_t)(40 + length));
    ib_failover_reopen_all(&ib);
}

/* True from the HELLO that connects the queue pair until the queue pair is destroyed. */
static bool can_receive(const struct ib_endpoint *ep)
{
    return ep->lanes[0].qp && ep->conn.state != CONN_ASKING;
}

/* Sets the peer's rails, mostly to possible values. */
static void fuzz_peer_rails(struct fuzz_in *in, struct ib_endpoint *ep)
{
    struct ib_rails_message said = {.rails = fuzz_u8(in) % 10, .pairs = fuzz_u8(in) % 18};
    for (uint32_t i = 0; i < IB_RAILS_MAX; i++)
        said.rail[i] = (struct ib_rail_info){
            .network = fuzz_u8(in) % 2, .adapter = fuzz_u8(in) % 5, .up = fuzz_u8(in) % 2};
    for (uint32_t k = 0; k < RAILS_MAX; k++) {
        uint8_t bits = fuzz_u8(in);
        said.pair[k] = (struct ib_pair_info){
            .generation = bits >> 4, .qpn = bits, .made = bits & 1, .joined = bits >> 1 & 1};
    }
    if (can_receive(ep))
        ib_pairs_take_message(ep, &said);
}

static void fuzz_message(struct fuzz_in *in, struct ib_endpoint *ep)
{
    struct ib_buffer *b = ib_buffer_get(&ib.large);
    size_t length;
    arrived_message = fuzz_copy(in, fuzz_u8(in), &length);
    memcpy(b->data, arrived_message, length);
    free(arrived_message);
    arrived_message = NULL;
    if (length >= sizeof(struct ib_head) && fuzz_u8(in) % 4) /* usually the expected sequence number */
        ((struct ib_head *)(void *)b->data)->seq = ep->expected;
    if (can_receive(ep))
        ib_lane_receive_message(&ep->lanes[0], b, (uint32_t)length);
}

static void fuzz_ring(struct fuzz_in *in, struct ib_endpoint *ep)
{
    uint8_t at = fuzz_u8(in), n = fuzz_u8(in);
    for (uint32_t i = 0; i < n && ep->rx_memory; i++)
        ep->rx_memory->data[(at * 8u + i) % (SLOTS * SLOT)] = (char)fuzz_u8(in);
    ib_rings_poll(&ib);
}

static void run_step(struct fuzz_in *in)
{
    uint8_t what = fuzz_u8(in);
    struct ib_endpoint *ep = &endpoints[1 + (what >> 4) % (PEERS - 1)];
    switch (what % 8) {
    case 0:
        fuzz_hello(in, false);
        break;
    case 1:
        fuzz_hello(in, true);
        break;
    case 2:
        ib_endpoint_open(ep);
        break;
    case 3:
        fuzz_ring(in, ep);
        break;
    case 4:
        ib_ring_count_candidate(ep);
        break;
    case 5:
        if (what & 8)
            fuzz_peer_rails(in, ep);
        break;
    default:
        fuzz_message(in, ep);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    open_world(fuzz_u8(&in));
    if (setjmp(fuzz_end) == 0)
        while (in.left > 0)
            run_step(&in);
    free(arrived_message);
    arrived_message = NULL;
    for (uint32_t r = 0; r < PEERS; r++) {
        ib_resend_free(&endpoints[r], 0);
        ib_pairs_free(&endpoints[r]);
        free(endpoints[r].paths);
        for (uint8_t i = 0; i < IB_LANES; i++)
            free(endpoints[r].lanes[i].work);
    }
    free_all_buffers();
    return 0;
}
