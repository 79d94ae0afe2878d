/* shm.c: the shared-memory transport: frames through one ring per receiver, put and get by a single copy
 * where the system allows it, and a doorbell for sleepers.
 *
 * A sender must not miss a sleeper: it publishes a frame, then looks whether the receiver sleeps; the
 * receiver announces that it sleeps, then looks for frames. Each needs its store ordered before its load.
 * When every rank has a processor, the sleeper pays for both sides with membarrier(2) and senders pay
 * nothing. When ranks share processors, or a progress thread is announced after every call, sleeping is the
 * common case and a fence in the sender is the cheaper way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "net/shm/shm.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "boot/launch_env.h"
#include "net/lost.h"
#include "net/registry.h"
#include "net/shm/cma.h"
#include "net/thread.h"

#define POLL_BATCH 32

static TUNABLE_SIZE(
    ring_size, "SHM_RING", 256 * 1024, 64 * 1024, 64 << 20,
    "Size in bytes of a rank's ring for messages through shared memory: senders wait when it is full. A "
    "power of two.");
static TUNABLE_SIZE(frame_size, "SHM_FRAME", 16 * 1024, 1024, 512 * 1024,
                    "Size in bytes of the largest piece of a message that is copied through shared memory "
                    "at once.");
static TUNABLE_BOOL(use_cma, "SHM_CMA", 1,
                    "Let the receiver of a large message on the same node copy it directly from the sender's "
                    "memory (process_vm_readv), where the system allows it.");

static COUNTER(frames_refused, "shm_ring_full",
               "Frames that had to wait because the receiver's ring was full.");
static COUNTER(wakeups, "shm_wakeups", "Times a sender woke a sleeping receiver.");
static COUNTER(half_frames, "shm_half_frames",
               "Frames passed over because their sender died while it wrote them.");
static COUNTER(cma_bytes, "shm_cma_bytes", "Bytes moved by a single copy between processes.");

static void announce_cpus(struct segment_rank *me)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return;
    for (size_t i = 0; i < SEGMENT_CPUS && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            me->cpus[i / 64] |= (uint64_t)1 << (i % 64);
}

static int map_ranks(struct shm *s, struct boot *boot)
{
    s->peers = calloc(s->nlocal, sizeof(*s->peers));
    s->local_rank_of = malloc(boot->size * sizeof(*s->local_rank_of));
    if (!s->peers || !s->local_rank_of)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a table of %u ranks", boot->size);
    for (uint32_t r = 0; r < boot->size; r++)
        s->local_rank_of[r] = s->nlocal;
    for (uint32_t i = 0; i < s->nlocal; i++)
        s->local_rank_of[boot->local_ranks[i]] = i;
    return 0;
}

static void announce(struct shm *s, struct segment_rank *me)
{
    s->probe = clock_ns() ^ (uint64_t)getpid() << 32;
    me->pid = getpid();
    me->probe_address = (uintptr_t)&s->probe;
    me->probe_value = s->probe;
    announce_cpus(me);
    s->membarrier =
        !net_thread_wanted() && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    me->fence = !s->membarrier;
    if (use_cma.value)
        cma_permit(env_get(ENV_TRACER));
}

static int shm_start(struct shm *s, struct net *net, struct boot *boot)
{
    uint32_t lines = 1024;
    while ((uint64_t)lines * CACHE_LINE < (uint64_t)ring_size.value)
        lines *= 2;
    int rc = segment_open(boot, lines, &s->segment);
    if (rc != 0)
        return rc;
    struct segment_rank *me = segment_rank(&s->segment, s->local_rank);
    s->receiver =
        (struct ring_receiver){.ring = &me->ring, .data = ring_data(&me->ring), .data_lines = lines};
    announce(s, me);
    rc = map_ranks(s, boot);
    rc = rc ? rc : segment_arrive(&s->segment, boot);
    if (rc != 0) {
        segment_close(&s->segment);
        return rc;
    }
    if (boot->vnode < 0)
        net->oversubscribed = s->nlocal > segment_cpus(&s->segment);
    net->fences = net->oversubscribed;
    for (uint32_t i = 0; i < s->nlocal; i++)
        net->fences |= segment_rank(&s->segment, i)->fence;
    net->doorbell = &me->doorbell;
    net->doorbell_fd = s->segment.fd;
    net->doorbell_offset = (uint64_t)((char *)&me->doorbell - (char *)s->segment.head);
    net->area = s->segment.area;
    net->area_size = SEGMENT_AREA_SIZE;
    net->local = &s->base;
    return 0;
}

static int shm_open_transport(struct net *net, struct boot *boot, struct transport **out)
{
    if (boot->nlocal < 2)
        return 0;
    if (boot->nlocal > RING_SENDERS)
        return err_set(MPI_ERR_OTHER, "the node has %u ranks; shared memory supports at most %u",
                       boot->nlocal, RING_SENDERS);
    struct shm *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(MPI_ERR_NO_MEM, "out of memory at start-up");
    s->base = (struct transport){.ops = &shm_transport, .net = net};
    s->nlocal = boot->nlocal;
    s->local_rank = boot->local_rank;
    s->job_rank_of = boot->local_ranks;
    int rc = shm_start(s, net, boot);
    if (rc != 0) {
        free(s->peers);
        free(s->local_rank_of);
        free(s);
        return rc;
    }
    *out = &s->base;
    return 0;
}

static void shm_close(struct transport *t)
{
    struct shm *s = (struct shm *)t;
    t->net->doorbell = &t->net->own_doorbell;
    t->net->doorbell_fd = -1;
    t->net->area = NULL;
    t->net->local = NULL;
    segment_close(&s->segment);
    free(s->peers);
    free(s->local_rank_of);
    free(s);
}

static bool shm_reaches(struct transport *t, uint32_t rank)
{
    struct shm *s = (struct shm *)t;
    return rank != t->net->rank && s->local_rank_of[rank] < s->nlocal;
}

bool shm_cma_wanted(void)
{
    return use_cma.value != 0;
}

void shm_caps(struct transport_caps *caps, bool cma)
{
    *caps = (struct transport_caps){.frame_max = (size_t)MIN(frame_size.value, ring_size.value / 4),
                                    .inline_max = RING_INLINE_MAX,
                                    .put = cma,
                                    .get = cma,
                                    .cpu_moves = true,
                                    .put_ordered = true,
                                    .last_byte_last = true,
                                    .latency_ns = 150,
                                    .bandwidth_mbs = 10000};
}

static int shm_connect(struct transport *t, struct peer *peer)
{
    struct shm *s = (struct shm *)t;
    struct shm_endpoint *ep = NULL;
    if (posix_memalign((void **)&ep, CACHE_LINE, ALIGN_UP(sizeof(*ep), CACHE_LINE)) != 0)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the connection to rank %u", peer->rank);
    struct segment_rank *it = segment_rank(&s->segment, s->local_rank_of[peer->rank]);
    *ep = (struct shm_endpoint){.sender = {.ring = &it->ring,
                                           .data = ring_data(&it->ring),
                                           .head = atomic_load(&it->ring.head),
                                           .data_lines = s->segment.data_lines,
                                           .id = s->local_rank,
                                           .alone = s->nlocal == 2},
                                .doorbell = &it->doorbell,
                                .rank = it,
                                .pid = it->pid,
                                .fence = it->fence || !s->membarrier || t->net->oversubscribed};
    bool cma = use_cma.value && cma_works(it->pid, it->probe_address, it->probe_value);
    peer->endpoint = ep;
    shm_caps(&peer->caps, cma);
    s->peers[s->local_rank_of[peer->rank]] = peer;
    return 0;
}

static void shm_disconnect(struct transport *t, struct peer *peer)
{
    (void)t;
    free(peer->endpoint);
}

static __attribute__((noinline, cold)) void wake(struct doorbell *bell)
{
    counter_add(&wakeups, 1);
    net_doorbell_ring(bell);
}

/* After a frame has become visible: wake its receiver if it sleeps. */
static inline void knock(struct shm_endpoint *ep)
{
    if (unlikely(ep->fence))
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst);
    if (unlikely(atomic_load_explicit(&ep->doorbell->sleepers, memory_order_relaxed) != 0))
        wake(ep->doorbell);
}

void net_wake_local(struct doorbell *bell)
{
    wake(bell);
}

struct doorbell *net_bell_local(const struct net *net, uint32_t rank)
{
    const struct shm *s = (const struct shm *)net->local;
    return &segment_rank(&s->segment, s->local_rank_of[rank])->doorbell;
}

void net_ring_local(struct net *net, uint32_t rank)
{
    net_ring_bell_local(net, net_bell_local(net, rank));
}

static __attribute__((noinline, cold)) int refuse(void)
{
    counter_add(&frames_refused, 1);
    return ERR_AGAIN;
}

static __attribute__((noinline)) int send_large(struct shm_endpoint *ep, uint64_t head, uint64_t from,
                                                uint64_t word, const void *payload, size_t len)
{
    if (unlikely(ring_send(&ep->sender, head, from, word, payload, len) != 0))
        return refuse();
    knock(ep);
    return 0;
}

int shm_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload, size_t len)
{
    struct shm_endpoint *ep = peer->endpoint;
    if (unlikely(len > RING_INLINE_MAX))
        return send_large(ep, head, from, word, payload, len);
    if (unlikely(ring_send(&ep->sender, head, from, word, payload, len) != 0))
        return refuse();
    knock(ep);
    return 0;
}

int shm_reserve(struct peer *peer, size_t len, void **payload)
{
    struct shm_endpoint *ep = peer->endpoint;
    char *room;
    ep->reserved = ring_reserve(&ep->sender, len, &ep->reserved_position, &room);
    if (!ep->reserved)
        return refuse();
    *payload = room;
    return 0;
}

void shm_commit(struct peer *peer, const struct frame_header *header, size_t len)
{
    struct shm_endpoint *ep = peer->endpoint;
    ring_publish(&ep->sender, ep->reserved, ep->reserved_position, header, len);

    knock(ep);
}

/* The kernel knows the number of a process that has gone, the user its rank. The launcher may tell of the death only a moment
 * later. */
static int moved(const struct peer *peer, int rc)
{
    if (unlikely(rc == MPIX_ERR_PROC_FAILED) && peer->rank < peer->net->size)
        return err_set(rc, "rank %u has died", peer->rank);
    return rc;
}

/* The last byte is written by a call of its own: within one, the kernel copies in any order, and even where
 * it does not, the other processor may see the stores in another one. */
static int put_last_byte_last(pid_t pid, const char *local, uint64_t remote, size_t len)
{
    int rc = cma_write(pid, local, remote, len - 1);
    if (rc != 0)
        return rc;
    atomic_thread_fence(memory_order_seq_cst);
    return cma_write(pid, local + len - 1, remote + len - 1, 1);
}

int shm_put(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
            const struct net_key *key, size_t len, struct net_op *op)
{
    (void)mem, (void)key;
    struct shm_endpoint *ep = peer->endpoint;
    counter_add(&cma_bytes, len);
    op->done(op, moved(peer, put_last_byte_last(ep->pid, local, remote, len)));
    return 0;
}

int shm_get(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
            const struct net_key *key, size_t len, struct net_op *op)
{
    (void)mem, (void)key;
    struct shm_endpoint *ep = peer->endpoint;
    counter_add(&cma_bytes, len);
    op->done(op, moved(peer, cma_read(ep->pid, local, remote, len)));
    return 0;
}

static int shm_move(struct peer *peer, bool put, const struct net_piece *pieces, size_t count)
{
    struct shm_endpoint *ep = peer->endpoint;
    for (size_t i = 0; i < count; i++)
        counter_add(&cma_bytes, pieces[i].length);
    return moved(peer, cma_move_pieces(ep->pid, put, pieces, count));
}

int shm_register(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                 struct net_key *key)
{
    (void)t;
    *mem = (struct net_mem){.address = (uintptr_t)address, .length = len};
    *key = (struct net_key){{0}};
    return 0;
}

void shm_release(struct transport *t, struct net_mem *mem)
{
    (void)t, (void)mem;
}

static struct peer *sender_peer(struct shm *s, uint32_t sender)
{
    struct peer *peer = NULL;
    CHECK(sender < s->nlocal, "a shared-memory frame names a rank that does not exist");
    if (net_is_lost(s->base.net, s->job_rank_of[sender]))
        return NULL; /* it died before this process had ever heard of it */
    if (net_peer(s->base.net, s->job_rank_of[sender], &peer) != 0)
        err_panic(__FILE__, __LINE__, err_detail(MPI_ERR_NO_MEM));
    return peer;
}

/* A rank may die between taking its place in our ring and filling it: everything behind that place would wait for ever. The
 * slot names its sender, but for two instructions at the beginning, where it still has the name of the one before. */
#define STUCK_NAMED_NS 20000000u
#define STUCK_ANY_NS   2000000000u

static void unstick(struct shm *s, bool over)
{
    s->base.net->unrung -= s->stuck && over; /* nobody rings for time that passes */
    s->stuck = s->stuck && !over;
}

static __attribute__((noinline, cold)) void look_for_half_frames(struct shm *s)
{
    const struct ring_receiver *r = &s->receiver;
    uint64_t now = clock_ns();
    if (!ring_empty(r) || !ring_begun(r)) {
        unstick(s, true);
        return;
    }
    if (!s->stuck || s->stuck_slot != r->slot) {
        s->base.net->unrung += !s->stuck;
        s->stuck = true;
        s->stuck_slot = r->slot;
        s->stuck_since = now;
    }
    uint32_t by = ring_begun_by(r);
    bool named = by < s->nlocal && net_is_lost(s->base.net, s->job_rank_of[by]);
    if (now - s->stuck_since < (named ? STUCK_NAMED_NS : STUCK_ANY_NS))
        return;
    counter_add(&half_frames, 1);
    ring_skip(&s->receiver);
    unstick(s, true);
}

static void shm_lost(struct transport *t, struct peer *peer)
{
    (void)peer;
    ((struct shm *)t)->dead = true;
}

static int shm_poll(struct transport *t)
{
    struct shm *s = (struct shm *)t;
    struct net *net = t->net;
    const char *payload;
    size_t len;
    uint32_t sender;
    int events = 0;
    const struct ring_slot *slot;
    while (events < POLL_BATCH && (slot = ring_peek(&s->receiver, &payload, &len, &sender)) != NULL) {
        struct peer *peer = likely(sender < s->nlocal) ? s->peers[sender] : NULL;
        if (unlikely(!peer))
            peer = sender_peer(s, sender);
        if (likely(peer != NULL))
            net->deliver(net->deliver_ctx, peer, &slot->header, payload, len);
        ring_consume(&s->receiver, slot, len);
        events++;
    }
    if (events == 0) {
        ring_idle(&s->receiver);
        if (unlikely(s->dead))
            look_for_half_frames(s);
    }
    return events;
}

/* The caller has announced itself as a sleeper. After the barrier every sender either sees that or has made
 * its frame visible to us. */
static bool shm_arm(struct transport *t)
{
    const struct shm *s = (struct shm *)t;
    if (!t->net->oversubscribed && s->membarrier)
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    else
        atomic_thread_fence(memory_order_seq_cst);
    return ring_empty(&s->receiver);
}

static void shm_disarm(struct transport *t)
{
    (void)t;
}

const struct transport_ops shm_transport = {
    .name = "shm",
    .doc = "shared memory between the ranks of one node",
    .open = shm_open_transport,
    .close = shm_close,
    .reaches = shm_reaches,
    .connect = shm_connect,
    .disconnect = shm_disconnect,
    .lost = shm_lost,
    .send = shm_send,
    .reserve = shm_reserve,
    .commit = shm_commit,
    .put = shm_put,
    .get = shm_get,
    .move = shm_move,
    .mem_register = shm_register,
    .mem_release = shm_release,
    .mem_register_piece = shm_register,
    .poll = shm_poll,
    .arm = shm_arm,
    .disarm = shm_disarm,
};
