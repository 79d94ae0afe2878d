/* inbox.c: shared memory with processes of other worlds on this machine. The node's segment belongs to the
 * ranks that started together. A process that connects to other worlds creates one more ring, its inbox, in a
 * separate memfd. Guests open the inbox through /proc and send their frames through it.
 *
 * A sender claims a place in the inbox's list by writing its name there; its frames carry the index of the
 * place. The receiver frees the place when it removes that guest, which may have died at any moment.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/err.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/shared_memory.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "boot/launch_env.h"
#include "net/guest.h"
#include "net/lost.h"
#include "net/registry.h"
#include "net/shm/cma.h"
#include "net/shm/process_end.h"
#include "net/shm/shm.h"

#define INBOX_NAME  "fishplate-inbox"
#define INBOX_LINES 4096u /* lines of the data ring: 256 KiB */
#define POLL_BATCH  32

static COUNTER(
    strange, "inbox_strange_frames",
    "Frames from processes of other jobs that this process is not connected to; they were dropped.");

/* A sender's place: net_guest_id of the sender, PLACE_FREE, or PLACE_DEPARTED. */
enum {
    PLACE_FREE,
    PLACE_DEPARTED /* the guest was removed, and may own an unpublished slot */
};
_Static_assert(PLACE_DEPARTED < NET_GUEST_ID_MIN, "no process has this identity");

struct inbox_head {
    uint64_t check;             /* must equal probe_value of the owner's card */
    _Atomic uint32_t is_closed; /* the owner has finished MPI: its end is no failure */
    _Atomic uint64_t places[RING_SENDERS];
    _Alignas(CACHE_LINE) struct doorbell doorbell;
    _Alignas(CACHE_LINE) struct ring ring; /* data and intents of the ring follow */
};

struct inbox {
    struct transport base;
    struct inbox_head *head;
    struct ring_receiver receiver;
    struct peer **peers; /* by place */
    int fd;
    uint64_t check;
    bool naps;         /* see shm_skip_dead_slot */
    uint32_t departed; /* places in state PLACE_DEPARTED */
    struct process_ends ends;
    struct list gone;   /* struct inbox_watch: processes that had ended before they could be watched */
    bool refused_watch; /* a process could not be watched, and the user was warned */
};

struct inbox_watch {
    struct process_end end;
    struct inbox_head *page; /* first page of the guest's inbox; NULL: the guest had ended before */
    bool has_ended;
};

/* The connection of a sender to another process's inbox. The members that shm.c uses come first. */
struct inbox_endpoint {
    struct shm_endpoint shm;
    struct inbox_head *head;
    void *bell_page;
};

static size_t inbox_size(void)
{
    return ALIGN_UP(sizeof(struct inbox_head) + ring_extra_bytes(INBOX_LINES, RING_SENDERS),
                    (size_t)sysconf(_SC_PAGESIZE));
}

/* Moves the doorbell to the inbox, so that guests can ring it, unless the doorbell is shared already. Threads
 * that sleep on the old doorbell are woken and sleep on the new one. */
static void move_doorbell(struct net *net, struct inbox *in)
{
    struct doorbell *old = net->doorbell;
    if (net->doorbell_fd >= 0)
        return;
    atomic_store(&in->head->doorbell.sleepers, atomic_load(&old->sleepers));
    net->doorbell = &in->head->doorbell;
    net_doorbell_ring(old);
}

static int inbox_open(struct net *net, struct boot *boot, struct transport **out)
{
    struct inbox *in = calloc(1, sizeof(*in));
    struct peer **peers = calloc(RING_SENDERS, sizeof(struct peer *));
    int fd = in && peers ? shared_memory_create(INBOX_NAME, inbox_size()) : -1;
    void *base = fd >= 0 ? mmap(NULL, inbox_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0)
                         : MAP_FAILED;
    if (base == MAP_FAILED) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        free(in);
        free(peers);
        return err_set(MPI_ERR_NO_MEM, "cannot share %zu bytes of memory on %s with other jobs: %s",
                       inbox_size(), boot->host, err_reason(why));
    }
    in->base = (struct transport){.ops = &inbox_transport, .net = net};
    in->head = base;
    in->peers = peers;
    in->fd = fd;
    list_init(&in->gone);
    in->check = in->head->check = clock_ns() ^ (uint64_t)getpid() << 32;
    in->receiver = ring_receiver(&in->head->ring, INBOX_LINES);
    if (shm_cma_is_enabled())
        cma_permit_access(env_get(ENV_TRACER));
    move_doorbell(net, in);
    *out = &in->base;
    return 0;
}

static void inbox_close(struct transport *t)
{
    struct inbox *in = (struct inbox *)t;
    process_ends_close(&in->ends);
    atomic_store(&in->head->is_closed, 1);
    if (t->net->doorbell == &in->head->doorbell)
        t->net->doorbell = &t->net->own_doorbell;
    munmap(in->head, inbox_size());
    close(in->fd);
    free(in->peers);
    free(in);
}

static void inbox_fill_card(struct transport *t, struct net_card *card)
{
    struct inbox *in = (struct inbox *)t;
    card->inbox_fd = in->fd;
    card->bell_fd = t->net->doorbell_fd;
    card->bell_offset = t->net->doorbell_offset;
    card->probe_address = (uintptr_t)&in->check;
    card->probe_value = in->check;
}

/* True if the process with this card can be reached through its inbox. By definition, virtual nodes of one
 * fabric share no memory. */
static bool inbox_can_connect(struct transport *t, const struct net_card *card)
{
    struct net_card mine;
    if (card->inbox_fd < 0 || net_fill_card(t->net, &mine) != 0 || card->machine != mine.machine)
        return false;
    if (card->fabric && card->fabric == mine.fabric && card->vnode != mine.vnode)
        return false;
    int fd = shared_memory_open(card->pid, card->inbox_fd, INBOX_NAME, inbox_size());
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Maps a part of another process's memory file. */
static void *map_shared(const struct net_card *card, int from, const char *name, uint64_t offset, size_t size)
{
    int fd = shared_memory_open(card->pid, from, name, offset + size);
    void *base = fd >= 0
                     ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset)
                     : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    return base == MAP_FAILED ? NULL : base;
}

static void unmap_endpoint(struct inbox_endpoint *ep)
{
    if (ep->bell_page)
        munmap(ep->bell_page, (size_t)sysconf(_SC_PAGESIZE));
    if (ep->head)
        munmap(ep->head, inbox_size());
    free(ep);
}

static struct doorbell *map_doorbell(const struct net_card *card, struct inbox_endpoint *ep)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (card->bell_fd < 0)
        return &ep->head->doorbell;
    const uint64_t within = card->bell_offset & (page - 1);
    if (within % CACHE_LINE || card->bell_offset > INT64_MAX - page)
        return NULL;
    ep->bell_page =
        map_shared(card, card->bell_fd, SHARED_MEMORY_NODE, card->bell_offset - within, (size_t)page);
    return ep->bell_page ? (struct doorbell *)(void *)((char *)ep->bell_page + within) : NULL;
}

/* Claims a sender's place. Returns its index, or RING_SENDERS if all are in use. */
static uint32_t claim_sender_entry(struct inbox_head *head, const struct net *net)
{
    const uint64_t id = net_guest_id(net->world, net->rank);
    for (uint32_t i = 0; i < RING_SENDERS; i++) {
        uint64_t seen = PLACE_FREE;
        if (!atomic_compare_exchange_strong(&head->places[i], &seen, id))
            continue;
        KILL_POINT(inbox_place_named);
        return i;
    }
    return RING_SENDERS;
}

static int inbox_connect(struct transport *t, struct peer *peer)
{
    const struct net_card *card = peer->card;
    struct inbox_endpoint *ep = NULL;
    if (posix_memalign((void **)&ep, CACHE_LINE, ALIGN_UP(sizeof(*ep), CACHE_LINE)) != 0)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the connection to process %d of another job",
                       card->pid);
    memset(ep, 0, sizeof(*ep));
    ep->head = map_shared(card, card->inbox_fd, INBOX_NAME, 0, inbox_size());
    struct doorbell *bell = ep->head && ep->head->check == card->probe_value ? map_doorbell(card, ep) : NULL;
    uint32_t place = bell ? claim_sender_entry(ep->head, t->net) : RING_SENDERS;
    if (place == RING_SENDERS) {
        unmap_endpoint(ep);
        return err_set(MPI_ERR_OTHER,
                       "process %d of another job has ended, or its memory cannot be opened through /proc",
                       card->pid);
    }
    ep->shm = (struct shm_endpoint){.sender = ring_sender(&ep->head->ring, INBOX_LINES, place, false),
                                    .doorbell = bell,
                                    .pid = card->pid,
                                    .fence = true};
    peer->endpoint = &ep->shm;
    shm_fill_caps(&peer->caps,
                  shm_cma_is_enabled() && cma_test_read(card->pid, card->probe_address, card->probe_value));
    peer->caps.frame_max = MIN(peer->caps.frame_max, (size_t)INBOX_LINES * CACHE_LINE / 4);
    return 0;
}

/* True if this sender's intent is a slot that was not consumed yet: the sender may own that slot. */
static bool has_open_intent(const struct inbox *in, uint32_t place)
{
    const uint64_t slot = atomic_load_explicit(&in->receiver.intents[place].slot, memory_order_acquire);
    return slot != 0 && (int32_t)((uint32_t)slot - in->receiver.slot) >= 0;
}

/* Frees the places of removed guests that can own no slot any more. */
static void free_departed_places(struct inbox *in)
{
    for (uint32_t i = 0; in->departed > 0 && i < RING_SENDERS; i++)
        if (atomic_load(&in->head->places[i]) == PLACE_DEPARTED && !has_open_intent(in, i)) {
            atomic_store(&ring_intents(&in->head->ring, INBOX_LINES)[i].slot, 0);
            atomic_store(&in->head->places[i], PLACE_FREE);
            in->departed--;
        }
}

void inbox_remove_sender(struct transport *t, const struct net_card *card)
{
    struct inbox *in = (struct inbox *)t;
    const uint64_t id = net_guest_id(card->world, card->rank);
    for (uint32_t i = 0; i < RING_SENDERS; i++) {
        if (atomic_load(&in->head->places[i]) != id)
            continue;
        in->peers[i] = NULL;
        atomic_store(&in->head->places[i], PLACE_DEPARTED);
        in->departed++;
    }
    free_departed_places(in);
}

static void inbox_disconnect(struct transport *t, struct peer *peer)
{
    (void)t;
    unmap_endpoint((struct inbox_endpoint *)peer->endpoint);
}

/* Finds the peer of a place. Called for its first frame. */
static __attribute__((noinline)) struct peer *inbox_find_sender(struct inbox *in, uint32_t place)
{
    struct net *net = in->base.net;
    uint32_t number;
    struct peer *peer;
    if (!net_guest_find_id(net, atomic_load(&in->head->places[place]), &number) ||
        net_peer(net, number, &peer) != 0 || peer->transport != &in->base) {
        counter_add(&strange, 1);
        return NULL;
    }
    return in->peers[place] = peer;
}

/* ---- the end of guests ---- */

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void watch_failed(struct inbox *in, int error)
{
    if (!in->refused_watch)
        log_warn("the end of processes of another job will not be noticed (%s): a call that waits for such a "
                 "process does not end",
                 err_reason(error));
    in->refused_watch = true;
}

/* True for errors of opening a process or one of its descriptors that mean that the process has ended. An
 * ending process loses its descriptors first. */
static bool error_means_process_ended(int error)
{
    return error == ESRCH || error == ENOENT;
}

struct inbox_watch *inbox_watch_process(struct transport *t, const struct net_card *card, uint32_t number)
{
    struct inbox *in = (struct inbox *)t;
    struct inbox_watch *w = calloc(1, sizeof(*w));
    int error = w ? 0 : ENOMEM;
    if (w) {
        w->end = (struct process_end){.number = number, .owner = w};
        error = process_ends_add(&in->ends, t->net, card->pid, &w->end);
    }
    /* Mapped after the process was opened: if the inbox is found, the process id was not reused before. */
    if (!error && !(w->page = map_shared(card, card->inbox_fd, INBOX_NAME, 0, page_size()))) {
        error = errno;
        process_ends_remove(&in->ends, &w->end);
    }
    if (!error)
        return w;
    if (error_means_process_ended(
            error)) { /* the process has ended since it sent its card; the next poll reports this */
        w->has_ended = true;
        list_append(&in->gone, &w->end.link);
        process_ends_set_pending(&in->ends);
        return w;
    }
    free(w);
    watch_failed(in, error);
    return NULL;
}

void inbox_unwatch(struct transport *t, struct inbox_watch *w)
{
    struct inbox *in = (struct inbox *)t;
    if (!w->has_ended)
        process_ends_remove(&in->ends, &w->end);
    else
        list_remove(&w->end.link);
    if (w->page)
        munmap(w->page, page_size());
    free(w);
}

bool inbox_watch_has_ended(const struct inbox_watch *w)
{
    return w->has_ended;
}

static struct process_end *inbox_pop_ended(struct inbox *in)
{
    if (list_empty(&in->gone))
        return process_ends_pop(&in->ends);
    struct process_end *end = list_entry(in->gone.next, struct process_end, link);
    list_remove(&end->link);
    return end;
}

/* Reports processes that have ended. net_lost_process_ended first delivers the frames that they sent. */
static int inbox_report_ended(struct inbox *in)
{
    struct process_end *end;
    int events = 0;
    while ((end = inbox_pop_ended(in)) != NULL) {
        struct inbox_watch *w = end->owner;
        w->has_ended = true;
        if (!w->page || !atomic_load(&w->page->is_closed))
            net_lost_process_ended(in->base.net, end->number);
        events++;
    }
    return events;
}

static bool inbox_sender_is_dead(void *arg, uint32_t sender)
{
    const struct inbox *in = arg;
    const uint64_t id = atomic_load(&in->head->places[sender]);
    uint32_t number;
    return id == PLACE_DEPARTED ||
           (net_guest_find_id(in->base.net, id, &number) && net_guest_has_ended(in->base.net, number));
}

/* Skips the slot of a sender that died or was disconnected before it published its frame. */
static int inbox_skip_dead_slot(struct inbox *in)
{
    const int skipped =
        shm_skip_dead_slot(in->base.net, &in->receiver, RING_SENDERS, inbox_sender_is_dead, in, &in->naps);
    free_departed_places(in);
    return skipped;
}

static int inbox_poll(struct transport *t)
{
    struct inbox *in = (struct inbox *)t;
    const struct ring_slot *slot;
    const char *payload;
    size_t len;
    uint32_t sender;
    int events = 0;
    while (events < POLL_BATCH && (slot = ring_peek(&in->receiver, &payload, &len, &sender)) != NULL) {
        struct peer *peer =
            likely(in->peers[sender] != NULL) ? in->peers[sender] : inbox_find_sender(in, sender);
        if (likely(peer != NULL))
            t->net->deliver(t->net->deliver_ctx, peer, &slot->header, payload, len);
        ring_consume(&in->receiver, slot, len);
        events++;
    }
    if (events == 0) {
        ring_return_when_idle(&in->receiver);
        if (unlikely(t->net->ndead != 0 || in->departed != 0))
            events = inbox_skip_dead_slot(in);
        if (unlikely(process_ends_is_pending(&in->ends)))
            events += inbox_report_ended(in);
    }
    return events;
}

/* Arms the inbox. The caller has announced a sleeper; senders check for sleepers after a fence. */
static bool inbox_arm(struct transport *t)
{
    const struct inbox *in = (struct inbox *)t;
    atomic_thread_fence(memory_order_seq_cst);
    return ring_empty(&in->receiver) && !process_ends_is_pending(&in->ends);
}

const struct transport_ops inbox_transport = {
    .name = "inbox",
    .doc = "shared memory between processes of different jobs on one machine",
    .open = inbox_open,
    .close = inbox_close,
    .card = inbox_fill_card,
    .reaches_card = inbox_can_connect,
    .connect = inbox_connect,
    .disconnect = inbox_disconnect,
    .send = shm_send,
    .reserve = shm_reserve,
    .commit = shm_commit,
    .put = shm_put,
    .get = shm_get,
    .mem_register = transport_register_nothing,
    .mem_release = transport_release_nothing,
    .mem_register_piece = transport_register_nothing,
    .poll = inbox_poll,
    .arm = inbox_arm,
};
