/* shm.c: the shared-memory transport: frames through one ring per receiver, put and get by a single copy if
 * the system allows it, and a doorbell for sleepers.
 *
 * A sender must not miss a sleeper: it publishes a frame, then checks whether the receiver sleeps; the
 * receiver announces that it sleeps, then checks for frames. Each must order its store before its load. If
 * every rank has a processor, the sleeper executes a barrier for both sides with membarrier(2), and senders
 * need no fence. If ranks share processors, or a progress thread is announced after every call, sleeping is
 * the common case and a fence in the sender costs less.
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
#include "base/kill_point.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "boot/launch_env.h"
#include "boot/nodemap.h"
#include "net/lost.h"
#include "net/registry.h"
#include "net/shm/cma.h"
#include "net/thread.h"

#define POLL_BATCH 32

static TUNABLE_SIZE(
    ring_size, "SHM_RING", 256 * 1024, 64 * 1024, 64 << 20,
    "Size in bytes of a rank's ring for messages through shared memory: senders wait when it is full. A "
    "power of two.");
static LABORATORY_SIZE(frame_size, "SHM_FRAME", 16 * 1024, 1024, 512 * 1024,
                       "Size in bytes of the largest piece of a message that is copied through shared memory "
                       "at once.");
static TUNABLE_BOOL(use_cma, "SHM_CMA", 1,
                    "Let the receiver of a large message on the same node copy it directly from the sender's "
                    "memory (process_vm_readv), where the system allows it.");

static COUNTER(frames_refused, "shm_ring_full",
               "Frames that had to wait because the receiver's ring was full.");
static COUNTER(wakeups, "shm_wakeups", "Times a sender woke a sleeping receiver.");
static COUNTER(half_frames, "shm_half_frames",
               "Frames skipped because their sender died before it had written them.");
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

static void shm_announce(struct shm *s, struct segment_rank *me)
{
    s->probe = clock_ns() ^ (uint64_t)getpid() << 32;
    me->pid = getpid();
    me->probe_address = (uintptr_t)&s->probe;
    me->probe_value = s->probe;
    announce_cpus(me);
    s->membarrier = !net_thread_is_enabled() &&
                    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    me->fence = !s->membarrier;
    if (use_cma.value)
        cma_permit_access(env_get(ENV_TRACER));
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
    s->receiver = ring_receiver(&me->ring, lines);
    shm_announce(s, me);
    rc = map_ranks(s, boot);
    rc = rc ? rc : segment_wait_all_present(&s->segment, boot);
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
        return fdpass_join_barrier(boot);
    _Static_assert(NODE_RANKS_MAX == RING_SENDERS, "mpiexec refuses larger jobs");
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

static bool shm_can_reach(struct transport *t, uint32_t rank)
{
    struct shm *s = (struct shm *)t;
    return rank != t->net->rank && s->local_rank_of[rank] < s->nlocal;
}

bool shm_cma_is_enabled(void)
{
    return use_cma.value != 0;
}

void shm_fill_caps(struct transport_caps *caps, bool cma)
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
    *ep = (struct shm_endpoint){
        .sender = ring_sender(&it->ring, s->segment.data_lines, s->local_rank, s->nlocal == 2),
        .doorbell = &it->doorbell,
        .rank = it,
        .pid = it->pid,
        .fence = it->fence || !s->membarrier || t->net->oversubscribed};
    bool cma = use_cma.value && cma_test_read(it->pid, it->probe_address, it->probe_value);
    peer->endpoint = ep;
    shm_fill_caps(&peer->caps, cma);
    s->peers[s->local_rank_of[peer->rank]] = peer;
    return 0;
}

static void shm_disconnect(struct transport *t, struct peer *peer)
{
    (void)t;
    free(peer->endpoint);
}

static __attribute__((noinline, cold)) void doorbell_wake(struct doorbell *bell)
{
    counter_add(&wakeups, 1);
    net_doorbell_ring(bell);
}

/* Wakes the receiver of a published frame if the receiver sleeps. */
static inline void endpoint_wake_receiver(struct shm_endpoint *ep)
{
    if (unlikely(ep->fence))
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst);
    if (unlikely(atomic_load_explicit(&ep->doorbell->sleepers, memory_order_relaxed) != 0))
        doorbell_wake(ep->doorbell);
}

void net_wake_doorbell(struct doorbell *bell)
{
    doorbell_wake(bell);
}

static struct doorbell *shm_doorbell(const struct transport *t, uint32_t rank)
{
    const struct shm *s = (const struct shm *)t;
    return &segment_rank(&s->segment, s->local_rank_of[rank])->doorbell;
}

static __attribute__((noinline, cold)) int count_refusal(void)
{
    counter_add(&frames_refused, 1);
    return ERR_AGAIN;
}

static __attribute__((noinline)) int send_large(struct shm_endpoint *ep, uint64_t head, uint64_t from,
                                                uint64_t word, const void *payload, size_t len)
{
    if (unlikely(ring_send(&ep->sender, head, from, word, payload, len) != 0))
        return count_refusal();
    endpoint_wake_receiver(ep);
    return 0;
}

int shm_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload, size_t len)
{
    struct shm_endpoint *ep = peer->endpoint;
    if (unlikely(len > RING_INLINE_MAX))
        return send_large(ep, head, from, word, payload, len);
    if (unlikely(ring_send(&ep->sender, head, from, word, payload, len) != 0))
        return count_refusal();
    endpoint_wake_receiver(ep);
    return 0;
}

int shm_reserve(struct peer *peer, size_t len, void **payload)
{
    struct shm_endpoint *ep = peer->endpoint;
    char *room;
    ep->reserved = ring_reserve(&ep->sender, len, &ep->reserved_position, &room);
    if (!ep->reserved)
        return count_refusal();
    *payload = room;
    KILL_POINT(shm_frame_reserved);
    return 0;
}

void shm_commit(struct peer *peer, const struct frame_header *header, size_t len)
{
    struct shm_endpoint *ep = peer->endpoint;
    ring_publish(&ep->sender, ep->reserved, ep->reserved_position, header, len);
    KILL_POINT(shm_frame_published);
    endpoint_wake_receiver(ep);
}

/* Replaces the process id in the error text by the rank, because the launcher may report the death later. */
static int shm_check_copy(const struct peer *peer, int rc)
{
    if (unlikely(rc == MPIX_ERR_PROC_FAILED) && peer->rank < peer->net->size)
        return err_set(rc, "rank %u has died", peer->rank);
    return rc;
}

/* The last byte is written by a separate call: within one call the kernel copies in any order, and another
 * processor may see the stores in a different order. */
static int put_ordered_last_byte(pid_t pid, const char *local, uint64_t remote, size_t len)
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
    op->done(op, shm_check_copy(peer, put_ordered_last_byte(ep->pid, local, remote, len)));
    return 0;
}

int shm_get(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
            const struct net_key *key, size_t len, struct net_op *op)
{
    (void)mem, (void)key;
    struct shm_endpoint *ep = peer->endpoint;
    counter_add(&cma_bytes, len);
    op->done(op, shm_check_copy(peer, cma_read(ep->pid, local, remote, len)));
    return 0;
}

static int shm_move(struct peer *peer, bool put, const struct net_piece *pieces, size_t count)
{
    struct shm_endpoint *ep = peer->endpoint;
    for (size_t i = 0; i < count; i++)
        counter_add(&cma_bytes, pieces[i].length);
    return shm_check_copy(peer, cma_move_pieces(ep->pid, put, pieces, count));
}

static struct peer *find_sender_peer(struct shm *s, uint32_t sender)
{
    struct peer *peer = NULL;
    CHECK(sender < s->nlocal, "a shared-memory frame names a rank that does not exist");
    if (net_is_lost(s->base.net, s->job_rank_of[sender]))
        return NULL; /* the sender died before this process used it */
    if (net_peer(s->base.net, s->job_rank_of[sender], &peer) != 0)
        err_panic(__FILE__, __LINE__, err_detail(MPI_ERR_NO_MEM));
    return peer;
}

int shm_skip_dead_slot(struct net *net, struct ring_receiver *r, uint32_t senders,
                       bool (*shm_sender_is_dead)(void *arg, uint32_t sender), void *arg, bool *naps)
{
    const enum ring_block block = ring_blocked_reason(r, senders, shm_sender_is_dead, arg);
    const bool unsure = block == RING_OWNER_UNSURE;
    if (*naps != unsure)
        net->unrung +=
            unsure ? 1 : (uint32_t)-1; /* the living sender rings the doorbell only when it sends */
    *naps = unsure;
    if (block != RING_OWNER_DEAD)
        return 0;
    counter_add(&half_frames, 1);
    ring_skip(r);
    return 1;
}

static bool shm_sender_is_dead(void *arg, uint32_t local_rank)
{
    const struct shm *s = arg;
    return net_lost_is_reported(s->base.net, s->base.net->world, s->job_rank_of[local_rank]);
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
            peer = find_sender_peer(s, sender);
        if (likely(peer != NULL))
            net->deliver(net->deliver_ctx, peer, &slot->header, payload, len);
        ring_consume(&s->receiver, slot, len);
        events++;
    }
    if (events == 0) {
        ring_return_when_idle(&s->receiver);
        if (unlikely(net->ndead != 0))
            events = shm_skip_dead_slot(net, &s->receiver, s->nlocal, shm_sender_is_dead, s, &s->naps);
    }
    return events;
}

/* Arms the transport. The caller has announced a sleeper. After the barrier every sender either sees the
 * sleeper or has made its frame visible to this process. */
static bool shm_arm(struct transport *t)
{
    const struct shm *s = (struct shm *)t;
    if (!t->net->oversubscribed && s->membarrier)
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    else
        atomic_thread_fence(memory_order_seq_cst);
    return ring_empty(&s->receiver);
}

const struct transport_ops shm_transport = {
    .name = "shm",
    .doc = "shared memory between the ranks of one node",
    .open = shm_open_transport,
    .close = shm_close,
    .reaches = shm_can_reach,
    .connect = shm_connect,
    .disconnect = shm_disconnect,
    .send = shm_send,
    .reserve = shm_reserve,
    .commit = shm_commit,
    .put = shm_put,
    .get = shm_get,
    .move = shm_move,
    .mem_register = transport_register_nothing,
    .mem_release = transport_release_nothing,
    .mem_register_piece = transport_register_nothing,
    .doorbell = shm_doorbell,
    .poll = shm_poll,
    .arm = shm_arm,
};
