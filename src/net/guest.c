/* guest.c: the table of guests; see guest.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/shared_memory.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "boot/launch_env.h"
#include "net/lost.h"
#include "net/net.h"
#include "net/registry.h"
#include "net/shm/shm.h"

#define GUEST_NUMBERS ((uint32_t)INT32_MAX) /* ranks and guests together: some tables store int32_t */

struct guest {
    struct net_card card;
    struct peer *peer;         /* NULL: not connected */
    struct inbox_watch *watch; /* NULL: the kernel does not report the end of the process */
    uint32_t number;
    uint32_t holders;
    bool dead;
    bool parting; /* a thread is disconnecting from the guest */
};

struct guests {
    struct guest **list; /* present guests, by number; entries of guests that have left are freed */
    uint32_t count, room;
    uint32_t met; /* number of guests ever added; the next guest gets net->size + met */
    uint64_t machine;
    struct transport *inbox;
};

static uint64_t hash_link(uint64_t hash, const char *path)
{
    char text[64];
    ssize_t n = readlink(path, text, sizeof(text));
    return n > 0 ? hash_add(hash, text, (size_t)n) : hash;
}

/* A number that identifies machine, user and process-id namespace: processes with the same number see each other in
 * /proc. */
static uint64_t compute_machine_id(void)
{
    char boot_id[64] = "";
    uint32_t user = (uint32_t)getuid();
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f) {
        if (!fgets(boot_id, sizeof(boot_id), f))
            boot_id[0] = '\0';
        fclose(f);
    }
    uint64_t hash = hash_text(HASH_START, boot_id);
    hash = hash_link(hash, "/proc/self/ns/pid");
    return hash_add(hash, &user, sizeof(user));
}

static int guests_create_table(struct net *net)
{
    if (net->guests)
        return 0;
    struct guests *g = calloc(1, sizeof(*g));
    if (!g)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the connection to processes of another job");
    g->machine = compute_machine_id();
    int rc = inbox_transport.open(net, net->boot, &g->inbox);
    if (rc != 0) {
        free(g);
        return rc;
    }
    net_add_transport(net, g->inbox);
    net->guests = g;
    return 0;
}

int net_fill_card(struct net *net, struct net_card *out)
{
    int rc = guests_create_table(net);
    if (rc != 0)
        return rc;
    const char *fabric = env_get(ENV_SOFTIB_FABRIC);
    *out = (struct net_card){.world = net->world,
                             .rank = net->rank,
                             .vnode = net->boot->vnode,
                             .machine = net->guests->machine,
                             .fabric = fabric ? hash_text(HASH_START, fabric) : 0,
                             .pid = getpid(),
                             .inbox_fd = -1,
                             .bell_fd = -1};
    for (int i = 0; i < net->ntransports; i++)
        if (net->transports[i]->ops->card)
            net->transports[i]->ops->card(net->transports[i], out);
    return 0;
}

bool net_guest_find_number(const struct net *net, uint64_t world, uint32_t rank, uint32_t *number)
{
    const struct guests *g = net->guests;
    if (world == net->world && rank < net->size) {
        *number = rank;
        return true;
    }
    for (uint32_t i = 0; g && i < g->count; i++)
        if (g->list[i]->card.world == world && g->list[i]->card.rank == rank) {
            *number = g->list[i]->number;
            return true;
        }
    return false;
}

uint64_t net_guest_id(uint64_t world, uint32_t rank)
{
    return hash_add(world, &rank, sizeof(rank)) | NET_GUEST_ID_MIN;
}

bool net_guest_find_id(const struct net *net, uint64_t id, uint32_t *number)
{
    const struct guests *g = net->guests;
    for (uint32_t i = 0; g && i < g->count; i++)
        if (net_guest_id(g->list[i]->card.world, g->list[i]->card.rank) == id) {
            *number = g->list[i]->number;
            return true;
        }
    return false;
}

static int guests_grow(struct guests *g)
{
    if (g->count < g->room)
        return 0;
    uint32_t room = MAX(16u, 2 * g->room);
    struct guest **list = realloc(g->list, room * sizeof(struct guest *));
    if (!list)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a table of %u processes of other jobs", room);
    g->list = list;
    g->room = room;
    return 0;
}

int net_guest_add(struct net *net, const struct net_card *card, uint32_t *number)
{
    if (net_guest_find_number(net, card->world, card->rank, number))
        return 0;
    int rc = guests_create_table(net);
    struct guests *g = net->guests;
    if (!rc && g->met >= GUEST_NUMBERS - net->size)
        rc = err_set(MPI_ERR_OTHER, "this process has met %u processes of other jobs, and can meet no more",
                     g->met);
    rc = rc ? rc : guests_grow(g);
    struct guest *guest = rc ? NULL : calloc(1, sizeof(*guest));
    if (!guest)
        return rc ? rc
                  : err_set(MPI_ERR_NO_MEM, "out of memory for the connection to a process of another job");
    guest->card = *card;
    guest->number = *number = net->size + g->met++;
    g->list[g->count++] = guest;
    net_lost_check_new_guest(net, card->world, card->rank, *number);
    return 0;
}

static struct guest *find_guest(const struct net *net, uint32_t number)
{
    const struct guests *g = net->guests;
    uint32_t from = 0, to = g && number >= net->size ? g->count : 0;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (g->list[middle]->number == number)
            return g->list[middle];
        if (g->list[middle]->number < number)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

struct peer **net_peer_slot(struct net *net, uint32_t number)
{
    if (number < net->size)
        return &net->peers[number];
    struct guest *guest = find_guest(net, number);
    return guest ? &guest->peer : NULL;
}

bool *net_guest_dead_flag(const struct net *net, uint32_t number)
{
    struct guest *guest = find_guest(net, number);
    return guest ? &guest->dead : NULL;
}

const struct net_card *net_guest_get_card(const struct net *net, uint32_t number)
{
    struct guest *guest = find_guest(net, number);
    return guest ? &guest->card : NULL;
}

struct net_name net_process_name(const struct net *net, uint32_t number)
{
    const struct net_card *card = net_guest_get_card(net, number);
    if (card)
        return (struct net_name){card->world, card->rank};
    return (struct net_name){number < net->size ? net->world : 0, number};
}

int net_guest_check_reachable(struct net *net, uint32_t number)
{
    const struct net_card *card = net_guest_get_card(net, number);
    if (number < net->size)
        return 0;
    if (!card)
        return err_set(MPI_ERR_GROUP, "a process of another job is no longer connected");
    if (net_transport_for(net, number))
        return 0;
    if (net_guest_is_gone(net, number))
        return err_set(MPIX_ERR_PROC_FAILED, "process %d, rank %u of another job, has died", card->pid,
                       card->rank);
    struct net_card mine;
    int rc = net_fill_card(net, &mine);
    if (rc)
        return rc;
    if (card->machine == net->guests->machine)
        return err_set(
            MPI_ERR_OTHER,
            "process %d on this machine, rank %u of another job, cannot be reached: its memory cannot be "
            "opened through /proc, and the two jobs have no network adapter in common",
            card->pid, card->rank);
    if (card->has_ib && mine.has_ib)
        return err_set(
            MPI_ERR_OTHER,
            "rank %u of another job is on another machine, and the two jobs use different software fabrics: "
            "set SOFTIB_FABRIC to the same text for both, or use hosts with InfiniBand or RoCE ports",
            card->rank);
    return err_set(
        MPI_ERR_OTHER,
        "rank %u of another job is on another machine, and %s: start the jobs on several nodes (or with "
        "FISHPLATE_REQUIRE=ib), so that both open the network adapter",
        card->rank, card->has_ib ? "this job uses no network adapter" : "it uses no network adapter");
}

void net_guest_retain(struct net *net, uint32_t number)
{
    struct guest *guest = find_guest(net, number);
    if (guest)
        guest->holders++;
}

void net_guest_release(struct net *net, uint32_t number)
{
    struct guest *guest = find_guest(net, number);
    if (guest)
        guest->holders--;
}

bool net_guest_is_shared(const struct net *net, uint32_t number)
{
    const struct guest *guest = find_guest(net, number);
    return guest && guest->holders > 1;
}

static bool is_on_this_machine(const struct net *net, const struct guest *guest)
{
    return guest->card.machine == net->guests->machine && guest->card.inbox_fd >= 0;
}

void net_guest_watch(struct net *net, uint32_t number)
{
    struct guest *guest = find_guest(net, number);
    if (guest && !guest->watch && is_on_this_machine(net, guest))
        guest->watch = inbox_watch_process(net->guests->inbox, &guest->card, number);
}

bool net_guest_is_on_this_machine(const struct net *net, uint32_t number)
{
    const struct guest *guest = find_guest(net, number);
    return guest && is_on_this_machine(net, guest);
}

/* Uses no descriptor, because this process may have none left. */
bool net_guest_is_gone(const struct net *net, uint32_t number)
{
    const struct guest *guest = find_guest(net, number);
    return guest && is_on_this_machine(net, guest) &&
           ((guest->watch && inbox_watch_has_ended(guest->watch)) ||
            shared_memory_is_gone(guest->card.pid, guest->card.inbox_fd));
}

bool net_guest_has_ended(const struct net *net, uint32_t number)
{
    const struct guest *guest = find_guest(net, number);
    return guest && ((guest->watch && inbox_watch_has_ended(guest->watch)) ||
                     net_lost_is_reported(net, guest->card.world, guest->card.rank));
}

static void guest_free(struct guests *g, struct guest *guest)
{
    if (guest->watch)
        inbox_unwatch(g->inbox, guest->watch);
    inbox_remove_sender(g->inbox, &guest->card);
    free(guest);
}

static void peer_close(struct net *net, struct peer *peer)
{
    if (!peer)
        return;
    if (net->parted)
        net->parted(net->deliver_ctx, peer);
    peer->ops->disconnect(peer->transport, peer);
    if (peer->stalled)
        list_remove(&peer->stalled_link);
    paces_forget(&net->paces, &peer->paces);
    free(peer);
}

/* Finds the next guest to disconnect from. Waiting makes progress, which may add guests, so the table is
 * searched again each time. `parting` marks guests that another thread disconnects. */
static struct guest *find_guest_to_disconnect(const struct guests *g)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (g->list[i]->holders == 0 && !g->list[i]->parting)
            return g->list[i];
    return NULL;
}

static void guest_remove(struct guests *g, const struct guest *guest)
{
    uint32_t at = 0;
    while (g->list[at] != guest)
        at++;
    memmove(&g->list[at], &g->list[at + 1], (--g->count - at) * sizeof(struct guest *));
}

void net_guests_disconnect_unused(struct net *net)
{
    struct guests *g = net->guests;
    for (uint32_t i = 0; g && i < g->count; i++) {
        struct peer *peer = g->list[i]->peer;
        if (g->list[i]->holders == 0 && !g->list[i]->parting && peer && peer->ops->part)
            peer->ops->part(peer->transport, peer, true);
    }
    for (struct guest *guest; g && (guest = find_guest_to_disconnect(g)) != NULL; guest_free(g, guest)) {
        guest->parting = true;
        if (guest->peer && guest->peer->ops->part)
            guest->peer->ops->part(guest->peer->transport, guest->peer, false);
        peer_close(net, guest->peer);
        guest_remove(g, guest);
    }
}

void net_guests_close(struct net *net)
{
    struct guests *g = net->guests;
    while (g && g->count > 0) {
        struct guest *guest = g->list[g->count - 1];
        if (guest->peer)
            guest->peer->ops->disconnect(guest->peer->transport, guest->peer);
        free(guest->peer);
        g->count--;
        guest_free(g, guest);
    }
    if (g)
        free(g->list);
    free(g);
    net->guests = NULL;
}
