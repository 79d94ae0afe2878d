/* lost.c: handles reports of the deaths of processes. A thread sleeps until the launcher reports a death, and
 * then rings this process's doorbell; progress reads the report. While it sleeps the thread uses no processor
 * time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "net/lost.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/small_thread.h"
#include "boot/boot.h"
#include "boot/notice.h"
#include "net/guest.h"

struct net_lost {
    struct notice_page *page;
    uint64_t departures; /* notice_hash_departures() of this job */
    uint32_t next;       /* index of the next notice to process */
    bool *dead;          /* by rank; guests have a flag in struct guest */
    uint32_t *given_up;  /* peers given up by transports; the layers above are not notified yet */
    uint32_t ngiven_up;
    pthread_t thread;
    bool running, looking;
    _Atomic bool stop;
};

static int lost_operation_error(const struct peer *peer)
{
    if (peer == peer->net->revoked_peer)
        return err_set(MPIX_ERR_REVOKED, "the communicator has been revoked");
    return err_set(MPIX_ERR_PROC_FAILED, "the peer process has died");
}

static int lost_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                     size_t len)
{
    (void)head, (void)from, (void)word, (void)payload, (void)len;
    return lost_operation_error(peer);
}

static int lost_reserve(struct peer *peer, size_t len, void **payload)
{
    (void)len, (void)payload;
    return lost_operation_error(peer);
}

static int lost_put(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
                    const struct net_key *key, size_t len, struct net_op *op)
{
    (void)local, (void)mem, (void)remote, (void)key, (void)len, (void)op;
    return lost_operation_error(peer);
}

static int lost_get(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
                    const struct net_key *key, size_t len, struct net_op *op)
{
    (void)local, (void)mem, (void)remote, (void)key, (void)len, (void)op;
    return lost_operation_error(peer);
}

static int lost_move(struct peer *peer, bool put, const struct net_piece *pieces, size_t count)
{
    (void)put, (void)pieces, (void)count;
    return lost_operation_error(peer);
}

static int lost_atomic(struct peer *peer, const struct net_atomic *change, uint64_t *old,
                       const struct net_mem *mem, uint64_t remote, const struct net_key *key,
                       struct net_op *op)
{
    (void)change, (void)old, (void)mem, (void)remote, (void)key, (void)op;
    return lost_operation_error(peer);
}

static void lost_disconnect(struct transport *t, struct peer *peer)
{
    if (t && peer->endpoint)
        t->ops->disconnect(t, peer);
}

const struct transport_ops lost_transport = {
    .name = "lost",
    .doc = "the process has died",
    .send = lost_send,
    .reserve = lost_reserve,
    .put = lost_put,
    .get = lost_get,
    .move = lost_move,
    .atomic = lost_atomic,
    .disconnect = lost_disconnect,
};

struct peer *net_get_revoked_peer(struct net *net)
{
    struct peer *peer = net->revoked_peer;
    if (peer)
        return peer;
    int rc = posix_memalign((void **)&peer, CACHE_LINE, ALIGN_UP(sizeof(*peer), CACHE_LINE));
    CHECK_MEMORY(rc == 0, "the revocation of a communicator");
    *peer = (struct peer){.ops = &lost_transport,
                          .transport = net->transports[net->ntransports - 1],
                          .net = net,
                          .eager_max = UINT64_MAX - 1,
                          .eager_below = UINT64_MAX};
    list_init(&peer->pending);
    list_init(&peer->stalled_link);
    return net->revoked_peer = peer;
}

/* ---- deaths ---- */

bool net_is_lost(const struct net *net, uint32_t number)
{
    if (number < net->size)
        return net->lost && net->lost->dead[number];
    const bool *dead = net_guest_dead_flag(net, number);
    return dead ? *dead : true; /* a guest that has left counts as dead */
}

/* True if the process is among the first `limit` deaths that the launcher has published. */
static bool is_death_published(const struct net *net, uint32_t limit, uint64_t world, uint32_t rank)
{
    const struct net_lost *l = net->lost;
    const struct notice *n;
    for (uint32_t i = 0; i < limit && (n = notice_get(l->page, i)) != NULL; i++)
        if (n->rank == rank && (n->world == world || (n->world == l->departures && world == net->world)))
            return true;
    return false;
}

bool net_lost_is_reported(const struct net *net, uint64_t world, uint32_t rank)
{
    return net->lost && is_death_published(net, UINT32_MAX, world, rank);
}

static bool mark_peer_dead(struct net *net, uint32_t number)
{
    bool *dead = number < net->size ? &net->lost->dead[number] : net_guest_dead_flag(net, number);
    if (!dead || *dead)
        return false;
    return *dead = true;
}

static void lost_remove_peer(struct net *net, uint32_t number)
{
    struct peer **place = net_peer_slot(net, number), *peer = place ? *place : NULL;
    log_debug("process %u has died", number);
    net->ndead++;
    if (peer) {
        peer->ops = &lost_transport; /* callbacks of transfers that end now must not start others */
        if (peer->transport->ops->lost)
            peer->transport->ops->lost(peer->transport, peer);
        peer->opening = false;
        /* A message of any length to this peer is sent as eager, and fails at once. */
        peer->eager_max = UINT64_MAX - 1;
        peer->eager_below = UINT64_MAX;
    }
    if (net->died)
        net->died(net->deliver_ctx, number, peer);
}

static bool notice_peer_number(const struct net *net, const struct notice *n, uint32_t *number)
{
    *number = n->rank;
    if (n->world == net->world || n->world == net->lost->departures)
        return n->rank < net->size && n->rank != net->rank;
    return net_guest_find_number(net, n->world, n->rank, number);
}

/* Delivers the frames that the dead process sent before its death. */
static void lost_deliver_pending_frames(struct net *net)
{
    for (int i = 0, events = 1; i < 1000 && events > 0; i++) {
        events = 0;
        for (int k = 0; k < net->nouter; k++)
            events += net->transports[k]->ops->poll(net->transports[k]);
    }
}

int net_lost_process_notices(struct net *net)
{
    struct net_lost *l = net->lost;
    const struct notice *n;
    uint32_t number;
    int events = 0;
    net->lost_seen = atomic_load_explicit(&l->page->published, memory_order_acquire);
    if (l->looking)
        return 0;
    l->looking = true;
    lost_deliver_pending_frames(net);
    while ((n = notice_get(l->page, l->next)) != NULL) {
        l->next++;
        if (notice_peer_number(net, n, &number) && mark_peer_dead(net, number)) {
            lost_remove_peer(net, number);
            events++;
        }
    }
    while (l->ngiven_up > 0) {
        lost_remove_peer(net, l->given_up[--l->ngiven_up]);
        events++;
    }
    l->looking = false;
    return events;
}

bool net_lost_give_up_peer(struct net *net, uint32_t number)
{
    struct net_lost *l = net->lost;
    if (!l)
        return false;
    if (!mark_peer_dead(net, number))
        return true;
    uint32_t *grown = realloc(l->given_up, (l->ngiven_up + 1) * sizeof(*grown));
    CHECK_MEMORY(grown != NULL, "the list of processes that cannot be reached");
    l->given_up = grown;
    l->given_up[l->ngiven_up++] = number;
    net->lost_seen--; /* makes net_progress process the deaths */
    return true;
}

void net_lost_mark_guest(struct net *net, uint32_t number)
{
    if (number >= net->size && !net_guest_is_shared(net, number) && mark_peer_dead(net, number))
        lost_remove_peer(net, number);
}

void net_lost_process_ended(struct net *net, uint32_t number)
{
    lost_deliver_pending_frames(net);
    if (number >= net->size && mark_peer_dead(net, number))
        lost_remove_peer(net, number);
}

void net_lost_check_new_guest(struct net *net, uint64_t world, uint32_t rank, uint32_t number)
{
    if (net->lost && is_death_published(net, net->lost->next, world, rank) && mark_peer_dead(net, number))
        net->ndead++;
}

/* ---- the thread ---- */

static void *lost_thread_run(void *arg)
{
    struct net *net = arg;
    struct net_lost *l = net->lost;
    uint32_t seen = atomic_load(&l->page->published);
    while (!atomic_load(&l->stop)) {
        uint32_t now = atomic_load(&l->page->published);
        if (now != seen)
            net_doorbell_ring(net->doorbell);
        seen = now;
        notice_wait(l->page, seen, 0);
    }
    return NULL;
}

int net_lost_open(struct net *net)
{
    struct notice_page *page = net->boot->notices;
    if (!page)
        return 0;
    struct net_lost *l = net->lost = calloc(1, sizeof(*l));
    if (!l)
        return err_set(MPI_ERR_NO_MEM, "out of memory at start-up");
    l->page = page;
    l->departures = notice_hash_departures(net->boot->job ? net->boot->job : "");
    l->dead = calloc(net->size, sizeof(*l->dead));
    if (!l->dead)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a table of %u processes", net->size);
    net->notices = &page->published;
    const int error = small_thread_start(&l->thread, lost_thread_run, net);
    l->running = error == 0;
    return l->running
               ? 0
               : err_set(MPI_ERR_NO_MEM, "cannot start the thread that waits for reports of deaths: %s",
                         err_reason(error));
}

void net_lost_close(struct net *net)
{
    struct net_lost *l = net->lost;
    if (!l)
        return;
    atomic_store(&l->stop, true);
    while (l->running && pthread_tryjoin_np(l->thread, NULL) != 0) {
        notice_wake(l->page); /* the thread may be between its check of `stop` and its sleep */
        sched_yield();
    }
    net->notices = NULL;
    net->lost = NULL;
    free(l->dead);
    free(l->given_up);
    free(l);
}
