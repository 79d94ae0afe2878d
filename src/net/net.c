/* net.c: opens the transports, connects peers when they are first used, and makes progress.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "boot/boot.h"
#include "net/mcast_group.h"
#include "net/guest.h"
#include "net/lost.h"
#include "net/adapter_port.h"
#include "net/registry.h"

static COUNTER(open_us, "start_transports_us", "Microseconds to open all transports, fences among them.");

int transport_register_nothing(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                               struct net_key *key)
{
    (void)t;
    *mem = (struct net_mem){.address = (uintptr_t)address, .length = len};
    *key = (struct net_key){{0}};
    return 0;
}

void transport_release_nothing(struct transport *t, struct net_mem *mem)
{
    (void)t, (void)mem;
}

struct transport *net_transport_for(struct net *net, uint32_t number)
{
    const struct net_card *card = net_guest_get_card(net, number);
    for (int i = 0; i < net->ntransports; i++) {
        struct transport *t = net->transports[i];
        if (card ? t->ops->reaches_card && t->ops->reaches_card(t, card)
                 : number < net->size && t->ops->reaches && t->ops->reaches(t, number))
            return t;
    }
    return NULL;
}

/* Checks at the start of the job, not in the middle of it, that every rank can be reached. */
static int check_all_ranks_reachable(struct net *net)
{
    for (uint32_t r = 0; r < net->size; r++)
        if (!net_transport_for(net, r))
            return err_set(
                MPI_ERR_OTHER,
                "no network path from %s to rank %u, which is on another of the job's %u nodes: %s",
                net->boot->host, r, net->boot->nnodes,
                net->why_missing ? net->why_missing : "this library was built without InfiniBand");
    return 0;
}

/* Guesses whether ranks share processors. Virtual nodes share one machine. A rank that may use only one
 * processor is bound, and other ranks may be bound to others. If the ranks share memory, shm.c later compares
 * their processors. */
static bool net_is_crowded(const struct boot *boot)
{
    long allowed = cpu_count_allowed();
    if (boot->vnode < 0)
        return boot->nlocal > allowed;
    return boot->size > (allowed > 1 ? allowed : sysconf(_SC_NPROCESSORS_ONLN));
}

/* Transports are in the order of the registry, but those that reach only this process come last. */
void net_add_transport(struct net *net, struct transport *t)
{
    CHECK(net->ntransports < NET_TRANSPORTS_MAX, "there are more transports than places for them");
    int at = net->ntransports++;
    if (!t->inner) {
        for (; at > net->nouter; at--)
            net->transports[at] = net->transports[at - 1];
        net->nouter++;
    }
    net->transports[at] = t;
}

int net_open(struct boot *boot, struct net **out)
{
    struct net *net = calloc(1, sizeof(*net));
    if (!net)
        return err_set(MPI_ERR_NO_MEM, "out of memory at start-up");
    net->boot = boot;
    net->rank = boot->rank;
    net->size = boot->size;
    net->world = hash_text(HASH_START, boot->job ? boot->job : "");
    net->doorbell_fd = -1;
    net->doorbell = &net->own_doorbell;
    net->oversubscribed = net_is_crowded(boot);
    net->cpus = cpu_count_allowed();
    list_init(&net->stalled);
    list_init(&net->hooks);
    list_init(&net->groups);
    list_init(&net->group_notes);
    net->peers = calloc(net->size, sizeof(*net->peers));
    int rc = net->peers ? 0 : err_set(MPI_ERR_NO_MEM, "out of memory for a table of %u peers", net->size);

    uint64_t began = clock_ns();
    for (const struct transport_ops *const *ops = net_transports; *ops && rc == 0; ops++) {
        struct transport *t = NULL;
        rc = (*ops)->open(net, boot, &t);
        if (rc == 0 && t)
            net_add_transport(net, t);
    }
    rc = rc ? rc : net_lost_open(net);
    rc = rc ? rc : check_all_ranks_reachable(net);
    if (rc == 0 && net->published)
        rc = boot_fence(boot);
    counter_add(&open_us, (clock_ns() - began) / 1000);
    if (rc != 0) {
        net_close(net);
        return rc;
    }
    *out = net;
    return 0;
}

void net_close(struct net *net)
{
    for (uint32_t i = 0; net->peers && i < net->size; i++) {
        struct peer *peer = net->peers[i];
        if (!peer)
            continue;
        peer->ops->disconnect(peer->transport, peer);
        net->peers[i] = NULL; /* disconnect may wait, and the status page describes all peers */
        free(peer);
    }
    net_guests_close(net);
    net_groups_close(net);
    net_lost_close(net); /* disconnect may wait for a lock whose owner dies */
    for (int i = net->ntransports; i-- > 0;)
        net->transports[i]->ops->close(net->transports[i]);
    free(net->peers);
    paces_free(&net->paces);
    free(net->why_missing);
    free(net->revoked_peer);
    free(net);
}

int net_open_requested_connections(struct net *net)
{
    int rc = 0;
    for (int i = 0; i < net->ntransports && rc == 0; i++)
        if (net->transports[i]->ops->settle)
            rc = net->transports[i]->ops->settle(net->transports[i]);
    return rc;
}

void net_finish(struct net *net, bool together)
{
    for (int i = 0; i < net->ntransports; i++)
        if (net->transports[i]->ops->finish)
            net->transports[i]->ops->finish(net->transports[i], together);
}

/* True if the guest has died. Otherwise this process cannot reach the guest for a reason of its own, such as no
 * free descriptors. Of another machine only the launcher reports deaths. */
static bool is_guest_gone(const struct net *net, uint32_t number)
{
    return net_guest_is_on_this_machine(net, number) ? net_guest_is_gone(net, number) : net->lost != NULL;
}

/* Sets the error for a guest that has died, even if its death was not reported yet. */
static int report_guest_died(void)
{
    return err_set(MPIX_ERR_PROC_FAILED, "the process of another job cannot be reached any more");
}

int net_peer(struct net *net, uint32_t rank, struct peer **out)
{
    const struct net_card *card = net_guest_get_card(net, rank);
    if (unlikely(rank >= net->size && !card))
        return err_set(MPI_ERR_COMM, "the process of another job is no longer connected");
    struct peer **place = net_peer_slot(net, rank);
    if (*place) {
        *out = *place;
        return 0;
    }
    if (unlikely(net_is_lost(net, rank)))
        return err_set(MPIX_ERR_PROC_FAILED, "that process has died");
    struct transport *t = net_transport_for(net, rank);
    if (!t) /* only for a guest: check_all_ranks_reachable found a transport for every rank */
        return is_guest_gone(net, rank) ? report_guest_died() : net_guest_check_reachable(net, rank);
    struct peer *peer = NULL;
    if (posix_memalign((void **)&peer, CACHE_LINE, ALIGN_UP(sizeof(*peer), CACHE_LINE)) != 0)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the connection to rank %u", rank);
    *peer = (struct peer){.ops = t->ops,
                          .transport = t,
                          .net = net,
                          .rank = rank,
                          .node = card ? UINT32_MAX : net->boot->node_of[rank],
                          .local = !card && net->boot->node_of[rank] == net->boot->node,
                          .self = rank == net->rank,
                          .card = card};
    list_init(&peer->pending);
    list_init(&peer->stalled_link);
    int rc = t->ops->connect(t, peer);
    if (rc != 0) {
        free(peer);
        return card && is_guest_gone(net, rank) ? report_guest_died() : rc;
    }
    if (net->connected)
        net->connected(net->deliver_ctx, peer);
    *place = peer;
    *out = peer;
    return 0;
}

void net_adapter(const struct net *net, char *out, size_t size)
{
    *out = '\0';
    for (int i = 0; i < net->ntransports; i++)
        if (net->transports[i]->port)
            net_port_describe(net->transports[i]->port, out, size);
}

void peer_describe(const struct peer *peer, char *out, size_t size)
{
    char port[160];
    if (peer->transport->port) {
        net_port_describe(peer->transport->port, port, sizeof(port));
        snprintf(out, size, "%s over %s", peer->ops->name, port);
    } else {
        snprintf(out, size, "%s (%s)", peer->ops->name, peer->ops->doc);
    }
}

void peer_queue(struct peer *peer, struct net_pending *item)
{
    if (!peer->stalled)
        list_append(&peer->net->stalled, &peer->stalled_link);
    peer->stalled = true;
    list_append(&peer->pending, &item->link);
    if (peer->net->lock)
        net_ring_own_doorbell(
            peer->net); /* a thread that sleeps without a time limit must resume the queue from now on */
}

void peer_remove_stalled(struct peer *peer)
{
    if (!peer->stalled || !list_empty(&peer->pending))
        return;
    list_remove(&peer->stalled_link);
    peer->stalled = false;
}

int peer_resume(struct peer *peer)
{
    int events = 0;
    while (!list_empty(&peer->pending)) {
        struct net_pending *item = list_entry(peer->pending.next, struct net_pending, link);
        list_remove(&item->link);
        int rc = item->resume(item);
        if (rc == ERR_AGAIN) {
            list_prepend(&peer->pending, &item->link);
            return events;
        }
        events++;
    }
    peer_remove_stalled(peer);
    return events;
}

uint64_t net_hooks_next_deadline(const struct net *net, bool all)
{
    uint64_t least = NET_FOREVER, now = 0;
    list_foreach(pos, &net->hooks)
    {
        struct net_hook *hook = list_entry(pos, struct net_hook, link);
        if (!hook->rests && !all)
            continue;
        now = now || !hook->rests ? now : clock_ns();
        least = MIN(least, hook->rests ? hook->rests(hook, now) : 0);
    }
    return least;
}

int net_progress(struct net *net)
{
    int events = 0;
    if (unlikely(net->notices != NULL) && net_has_new_deaths(net))
        events += net_lost_process_notices(net);
    for (int i = 0; i < net->ntransports; i++)
        if (!net->transports[i]->idle)
            events += net->transports[i]->ops->poll(net->transports[i]);
    if (unlikely(!list_empty(&net->stalled)))
        list_foreach_safe(pos, after, &net->stalled) events +=
            peer_resume(list_entry(pos, struct peer, stalled_link));
    if (unlikely(!list_empty(&net->hooks)))
        list_foreach_safe(pos, after, &net->hooks)
        {
            struct net_hook *hook = list_entry(pos, struct net_hook, link);
            events += hook->progress(hook);
        }
    return events;
}
